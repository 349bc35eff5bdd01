//! What runs on this machine, as `/proc` tells. Elsewhere nothing does, and the demo only simulates.

use std::collections::BTreeMap;

/// A process.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) id: i32,
    parent: i32,
    /// Its program and its arguments.
    pub(super) line: String,
}

/// All processes that can be seen.
pub(super) fn all() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn read(id: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // After the name, which is in brackets and may hold anything: the state, then the parent.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    // What has ended and waits to be asked about runs no more.
    let runs = fields.next()? != "Z";
    let parent = fields.next()?.parse().ok()?;
    let line = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned();
    runs.then_some(Process { id, parent, line })
}

/// The processes of a program in a pod: those below its shim.
pub(super) fn in_pod(uid: &str, program: &str) -> Vec<Process> {
    let all = all();
    let parents: BTreeMap<i32, i32> = all.iter().map(|one| (one.id, one.parent)).collect();
    let shims: Vec<i32> = all
        .iter()
        .filter(|one| one.line.contains("pod-shim") && one.line.contains(uid))
        .map(|one| one.id)
        .collect();
    let below = |id: i32| {
        let mut above = std::iter::successors(Some(id), |id| parents.get(id).copied().filter(|id| *id > 1));
        above.any(|id| shims.contains(&id))
    };
    let runs = |one: &&Process| one.line.split(' ').next().is_some_and(|first| first.ends_with(program));
    all.iter().filter(runs).filter(|one| below(one.id)).cloned().collect()
}

/// The processes whose command line names one of these.
pub(super) fn that_name(any: &[String]) -> Vec<Process> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    all()
        .into_iter()
        .filter(|one| one.id != own && any.iter().any(|name| one.line.contains(name.as_str())))
        .collect()
}
