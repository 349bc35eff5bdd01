//! That nothing is left behind, whoever is killed: processes, their namespaces, mounts and links are counted.
//!
//! All of it happens below a process of its own that inherits every orphan: whatever descends from it is counted, and nothing
//! of other tests. A namespace lives as long as a process is in it or a mount shows it, so that there is none without either.

mod host;

pub(crate) use host::host;

use anyhow::{Context, bail, ensure};
use libtest_mimic::Failed;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;
use windlass_clock::Clock;

/// What this program is told to be a cluster with a node.
pub(crate) const HOST: &str = "host-a-node";
/// What this program is told to kill and count.
pub(crate) const SCENARIO: &str = "leave-nothing-behind";
/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// In a pod each of its programs is found by what it is told to sleep for.
const SLEEPS: u32 = 770_000;

pub(crate) fn test() -> Result<(), Failed> {
    let output = Command::new(std::env::current_exe()?).arg(SCENARIO).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

pub(crate) fn scenario() -> ExitCode {
    match kill_and_count() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            // What is left must not stay because a test failed.
            descendants().keys().for_each(|pid| _ = kill(Pid::from_raw(*pid), Signal::SIGKILL));
            ExitCode::FAILURE
        }
    }
}

fn kill_and_count() -> anyhow::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let folder = tempfile::Builder::new().prefix("windlass-left").tempdir()?;
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let place = Place { folder: folder.path().to_owned(), links: links()? };
    ensure!(descendants().is_empty(), "there is somebody already");

    // The node is killed: its pods run on, and the next one takes them up without starting anything twice.
    let mut host = place.start()?;
    host.ask("run 1")?;
    host.ask("ready 1 0")?;
    let before = place.shims()?;
    ensure!(namespaces().len() > 6, "there are namespaces to be left: {:?}", namespaces());
    host.kill()?;
    let mut host = place.start()?;
    host.ask("ready 1 0")?;
    ensure!(place.shims()? == before, "it was taken up as it was");
    runs_once(1)?;
    // A shim is killed: all of its pod goes, and comes back.
    for pid in before.values() {
        kill(Pid::from_raw(*pid), Signal::SIGKILL)?;
    }
    host.ask("ready 1 1")?;
    runs_once(1)?;
    host.ask("leave")?;
    place.nothing_left(&mut host)?;

    // All that is ours is killed at once; what ran in pods goes with it.
    let mut host = place.start()?;
    host.ask("run 2")?;
    host.ask("ready 2 0")?;
    for (pid, name) in descendants() {
        if name != "sleep" && name != "sh" {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    place.nothing_runs()?;
    // The next node finds that it is dead, and starts it once.
    let mut host = place.start()?;
    host.ask("ready 2 1")?;
    runs_once(2)?;
    // Killed again, and nobody comes back: who clears up finds everything.
    host.kill()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(windlass_node::kill_processes(&place.root()));
    place.nothing_runs()?;

    // Killed in whatever phase of a start: the next node makes it whole, once.
    for (number, after) in [(3, 0), (4, 10), (5, 25), (6, 60), (7, 150)] {
        let mut host = place.start()?;
        host.ask(&format!("run {number}"))?;
        pause(Duration::from_millis(after));
        host.kill()?;
        let mut host = place.start()?;
        host.ask(&format!("ready {number} *"))?;
        runs_once(number)?;
        host.ask("leave")?;
        place.nothing_left(&mut host)?;
    }
    Ok(())
}

/// Where clusters come and go.
struct Place {
    folder: PathBuf,
    /// The machine's links, at first.
    links: BTreeSet<String>,
}

impl Place {
    fn root(&self) -> PathBuf {
        self.folder.join("node")
    }

    fn start(&self) -> anyhow::Result<Host> {
        let log = std::fs::File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg(HOST)
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let asks = child.stdin.take().context("piped")?;
        let answers = BufReader::new(child.stdout.take().context("piped")?);
        let mut host = Host { child, asks, answers, log: self.folder.join("log") };
        host.hear()?;
        Ok(host)
    }

    /// The process of each pod's shim.
    fn shims(&self) -> anyhow::Result<BTreeMap<PathBuf, i32>> {
        let mut all = BTreeMap::new();
        for pod in std::fs::read_dir(self.root().join("pods"))? {
            let path = pod?.path();
            let record: serde_json::Value = serde_json::from_slice(&std::fs::read(path.join("shim.json"))?)?;
            let pid = record["pid"].as_i64().context("a pid")?;
            all.insert(path, i32::try_from(pid)?);
        }
        Ok(all)
    }

    /// No process, so no namespace; no mount, no link.
    fn nothing_runs(&self) -> anyhow::Result<()> {
        eventually("no process is left", || Ok(descendants().is_empty()))
            .with_context(|| format!("there are {:?}", descendants()))?;
        ensure!(namespaces().is_empty(), "namespaces are left: {:?}", namespaces());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        let ours = self.folder.to_string_lossy();
        let left: Vec<&str> = mounts.lines().filter(|line| line.contains(&*ours)).collect();
        ensure!(left.is_empty(), "mounts are left: {left:#?}");
        let links = links()?;
        ensure!(links == self.links, "links are left: {links:?}");
        Ok(())
    }

    /// The same after a node left, and no folder of a pod either.
    fn nothing_left(&self, host: &mut Host) -> anyhow::Result<()> {
        let status = host.child.wait()?;
        ensure!(status.success(), "the host ended with {status}");
        self.nothing_runs()?;
        for folder in ["pods", "logs"] {
            let left: Vec<_> = std::fs::read_dir(self.root().join(folder))?.flatten().collect();
            ensure!(left.is_empty(), "folders are left: {left:?}");
        }
        Ok(())
    }
}

/// A process that is a cluster with a node.
struct Host {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    log: PathBuf,
}

impl Host {
    fn ask(&mut self, what: &str) -> anyhow::Result<()> {
        writeln!(self.asks, "{what}")?;
        self.hear().with_context(|| what.to_owned())
    }

    fn hear(&mut self) -> anyhow::Result<()> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        match line.trim() {
            "done" => Ok(()),
            said => bail!("{said}\n{}", std::fs::read_to_string(&self.log).unwrap_or_default()),
        }
    }

    fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// All processes that descend from this one, by pid, with their names. Those that wait for their parent to hear of their end are
/// heard of here.
fn descendants() -> BTreeMap<i32, String> {
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)) {
        if status == WaitStatus::StillAlive {
            break;
        }
    }
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((before, after)) = stat.rsplit_once(')') else { continue };
        let Some((pid, name)) = before.split_once(" (") else { continue };
        let mut fields = after.split_whitespace();
        let (state, parent) = (fields.next(), fields.next());
        if let (Ok(pid), Some(Ok(parent))) = (pid.parse::<i32>(), parent.map(str::parse::<i32>)) {
            parents.insert(pid, (parent, name.to_owned(), state == Some("Z")));
        }
    }
    let own = nix::unistd::getpid().as_raw();
    let descends = |pid: i32| {
        let mut at = pid;
        // No line of parents is longer than there are processes.
        for _ in 0..parents.len() {
            match parents.get(&at) {
                Some((parent, ..)) if *parent == own => return true,
                Some((parent, ..)) => at = *parent,
                None => return false,
            }
        }
        false
    };
    let all = parents.iter().filter(|(pid, _)| descends(**pid));
    all.map(|(pid, (_, name, _))| (*pid, name.clone())).collect()
}

/// The namespaces that they are in, and this process is not.
fn namespaces() -> BTreeSet<PathBuf> {
    let of = |process: &str| -> BTreeSet<PathBuf> {
        let entries = std::fs::read_dir(format!("/proc/{process}/ns")).into_iter().flatten().flatten();
        entries.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
    };
    let own = of("self");
    let all: BTreeSet<PathBuf> = descendants().keys().flat_map(|pid| of(&pid.to_string())).collect();
    all.difference(&own).cloned().collect()
}

/// The links of this machine.
fn links() -> anyhow::Result<BTreeSet<String>> {
    let text = std::fs::read_to_string("/proc/self/net/dev")?;
    Ok(text.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect())
}

/// How many programs of the pod of this number run.
fn sleeping(number: u32) -> usize {
    let argument = (SLEEPS + number).to_string();
    let is_one = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.len() >= 2 && words[0].ends_with(b"sleep") && words[1] == argument.as_bytes()
    };
    descendants().keys().filter(|pid| is_one(pid)).count()
}

/// Its two programs run, and no others.
fn runs_once(number: u32) -> anyhow::Result<()> {
    eventually("both programs of the pod run, once", || Ok(sleeping(number) == 2))
}

fn eventually(what: &str, mut holds: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let clock = Clock::real();
    let due = clock.moment() + LIMIT;
    while !holds()? {
        ensure!(clock.moment() < due, "in vain: {what}");
        pause(Duration::from_millis(20));
    }
    Ok(())
}

fn pause(duration: Duration) {
    let time = nix::sys::time::TimeSpec::from_duration(duration);
    let _ = nix::poll::ppoll(&mut [], Some(time), None);
}
