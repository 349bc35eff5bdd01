//! What containers hold and use, read from `/proc`; and the limit on memory, kept by looking.

use super::super::spec::{Container, Processes, Usage};
use super::containers::Entry;
use super::requests::Pod;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// The kernel counts processor time to programs in these, on every machine Linux runs on.
const TICK_NANOSECONDS: u64 = 10_000_000;
/// Memory is looked at as often as a program that takes a gigabyte in a second could reach its limit, within these bounds.
const SOONEST: Duration = Duration::from_millis(50);
const LATEST: Duration = Duration::from_secs(1);

/// What each running container holds.
pub fn usage(pod: &Pod) -> Vec<Usage> {
    pod.running()
        .iter()
        .filter_map(|entry| summed(&entry.spec.name, &processes_of(&entry.spec, entry.pid.get()?)))
        .collect()
}

/// Kills the container when it holds more than its limit.
pub async fn watch(pod: Rc<Pod>, entry: Rc<Entry>, pid: i32, limit: u64) {
    loop {
        let processes = processes_of(&entry.spec, pid);
        // What is shared is counted more than once here, which is quick; only where that is too much is it counted well.
        let mut held: u64 = processes.iter().map(|process| resident(process)).sum();
        if held > limit {
            held = processes.iter().map(|process| proportional(process)).sum();
        }
        if held > limit {
            entry.over_memory.set(true);
            let _ = pod.children.signal(pid, 9);
            return;
        }
        pod.clock.sleep(pause(limit - held)).await;
    }
}

fn pause(room: u64) -> Duration {
    Duration::from_nanos(room).clamp(SOONEST, LATEST)
}

fn summed(name: &str, processes: &[PathBuf]) -> Option<Usage> {
    let mut usage = Usage { name: name.to_owned(), ..Usage::default() };
    for process in processes {
        usage.memory_bytes += proportional(process);
        usage.cpu_nanoseconds +=
            fs::read_to_string(process.join("stat")).ok().and_then(|stat| ticks(&stat)).unwrap_or(0);
        usage.processes += 1;
    }
    usage.cpu_nanoseconds *= TICK_NANOSECONDS;
    (!processes.is_empty()).then_some(usage)
}

/// The processes of a container: those in its namespace of processes, or of mounts where it shares the first.
fn processes_of(container: &Container, pid: i32) -> Vec<PathBuf> {
    let own = container.processes == Processes::Own;
    let name = if own { "ns/pid" } else { "ns/mnt" };
    within(name, fs::metadata(format!("/proc/{pid}/{name}")).ok())
}

/// Kills all in a namespace of mounts.
pub fn kill_within(mounts: &File) {
    for process in within("ns/mnt", mounts.metadata().ok()) {
        let pid = process.file_name().and_then(|name| name.to_str()?.parse().ok());
        if let Some(pid) = pid {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// The processes in the same namespace as this one.
fn within(name: &str, wanted: Option<Metadata>) -> Vec<PathBuf> {
    let Some(wanted) = wanted.map(|wanted| wanted.ino()) else { return Vec::new() };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit))
        .map(|entry| entry.path())
        .filter(|process| fs::metadata(process.join(name)).is_ok_and(|found| found.ino() == wanted))
        .collect()
}

/// Processor time of a process and of the children it waited for.
fn ticks(stat: &str) -> Option<u64> {
    let fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11).take(4);
    fields.map(|field| field.parse::<u64>().ok()).sum()
}

fn resident(process: &Path) -> u64 {
    let pages = fs::read_to_string(process.join("statm")).ok();
    let pages = pages.and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Its own memory, and its part of what it shares.
fn proportional(process: &Path) -> u64 {
    let rollup = fs::read_to_string(process.join("smaps_rollup")).unwrap_or_default();
    let kilobytes = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kilobytes.map_or_else(|| resident(process), |kilobytes: u64| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_is_counted_and_brackets_in_names_do_not_confuse() {
        assert_eq!(ticks("7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711"), Some(5 + 6 + 7 + 8));
        assert_eq!(ticks("7 (a) S 1"), Some(0));
        assert_eq!(ticks("nonsense"), None);
    }

    #[test]
    fn the_nearer_the_limit_the_sooner_it_is_looked_at() {
        assert_eq!(pause(0), SOONEST);
        assert_eq!(pause(100 << 20), Duration::from_nanos(100 << 20));
        assert_eq!(pause(64 << 30), LATEST);
    }

    #[test]
    fn this_process_is_found_and_holds_memory() {
        let own = i32::try_from(std::process::id()).unwrap();
        let processes = within("ns/pid", fs::metadata(format!("/proc/{own}/ns/pid")).ok());
        let usage = summed("own", &processes).unwrap();
        assert!(usage.processes >= 1 && usage.memory_bytes > 100 << 10, "{usage:?}");
    }
}
