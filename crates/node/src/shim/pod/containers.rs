//! A container's life, from its first stage to its last word in the log.

use super::super::protocol::{Making, Order, Reply, Staged};
use super::super::running::Output;
use super::super::spec::{Container, ContainerState, Phase, Processes};
use super::children::{Child, Place};
use super::logs::Log;
use super::memory;
use super::output::{Attached, pump};
use super::requests::Pod;
use super::setup::shared_memory;
use crate::ipc;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A container's pipes end with its last process; should something else hold them, the log is closed without it.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A container that this shim started.
pub struct Entry {
    /// What was asked for.
    pub spec: Container,
    /// Its first process, while that is not reaped.
    pub pid: Cell<Option<i32>>,
    /// What to join to be in it.
    pub namespaces: RefCell<Option<Namespaces>>,
    /// Its input, where it stays open.
    pub stdin: RefCell<Option<OwnedFd>>,
    /// Its terminal's other side.
    pub terminal: RefCell<Option<OwnedFd>>,
    /// Who is attached to its output.
    pub stdout: Attached,
    /// Who is attached to its error output.
    pub stderr: Attached,
    /// Whether it was killed for the memory it held.
    pub over_memory: Cell<bool>,
    /// How far it is.
    pub progress: watch::Sender<Progress>,
}

/// How far a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    Starting,
    Running,
    Ended,
}

/// A container's own namespaces.
pub struct Namespaces {
    pub processes: File,
    pub mounts: File,
    pub users: File,
}

impl Namespaces {
    fn of(pid: i32) -> io::Result<Self> {
        let open = |name| File::open(format!("/proc/{pid}/ns/{name}"));
        Ok(Self { processes: open("pid")?, mounts: open("mnt")?, users: open("user")? })
    }
}

/// What is left to do while a container runs.
struct Begun {
    child: Child,
    pumps: Vec<JoinHandle<()>>,
}

impl Entry {
    pub fn new(spec: Container) -> Self {
        Self {
            spec,
            pid: Cell::default(),
            namespaces: RefCell::default(),
            stdin: RefCell::default(),
            terminal: RefCell::default(),
            stdout: Attached::default(),
            stderr: Attached::default(),
            over_memory: Cell::default(),
            progress: watch::Sender::new(Progress::Starting),
        }
    }

    /// Returns when it is at least so far.
    pub async fn reaches(&self, progress: Progress) {
        let _ = self.progress.subscribe().wait_for(|now| *now >= progress).await;
    }
}

/// Starts a container, unless this attempt was made before; answers when its program runs.
pub async fn start(pod: &Rc<Pod>, spec: Container) -> Reply {
    let name = spec.name.clone();
    if name.is_empty() || name.starts_with('.') || name.contains('/') || spec.command.is_empty() {
        return Reply::Failed("a container needs a name without slashes, and a command".into());
    }
    let attempt = spec.attempt;
    let current = pod.entry(&name);
    match current {
        Some(entry) if entry.spec.attempt == attempt => entry.reaches(Progress::Running).await,
        _ if pod.state(&name, attempt).is_some() => {}
        Some(entry) if *entry.progress.borrow() < Progress::Ended => {
            return Reply::Failed(format!(
                "attempt {} of container {name} has not ended",
                entry.spec.attempt
            ));
        }
        _ => {
            if let Processes::Of(target) = &spec.processes
                && pod.entry(target).is_none_or(|target| target.namespaces.borrow().is_none())
            {
                return Reply::Failed(format!(
                    "container {target}, whose processes it is to see, does not run"
                ));
            }
            let entry = Rc::new(Entry::new(spec));
            pod.enter(entry.clone());
            tokio::task::spawn_local(live(pod.clone(), entry.clone()));
            entry.reaches(Progress::Running).await;
        }
    }
    match pod.state(&name, attempt).map(|state| state.phase) {
        Some(Phase::Failed { code, message, .. }) => Reply::NotStarted(code, message),
        Some(_) => Reply::Done,
        None => Reply::Failed(format!("container {name} was forgotten")),
    }
}

async fn live(pod: Rc<Pod>, entry: Rc<Entry>) {
    let begun = begin(&pod, &entry).await;
    let started = pod.clock.now().as_millisecond();
    let phase = match begun {
        Err((code, message)) => Phase::Failed { at: started, code, message },
        Ok(begun) => {
            pod.tell(&entry, Phase::Running { pid: begun.child.pid, started });
            entry.progress.send_replace(Progress::Running);
            let code = run(&pod, &entry, begun).await;
            let finished = pod.clock.now().as_millisecond();
            Phase::Exited { started, finished, code, out_of_memory: entry.over_memory.get() }
        }
    };
    entry.pid.set(None);
    entry.namespaces.take();
    entry.stdin.take();
    entry.terminal.take();
    pod.tell(&entry, phase);
    entry.progress.send_replace(Progress::Ended);
}

/// Waits for the end, and for the last words.
async fn run(pod: &Rc<Pod>, entry: &Rc<Entry>, begun: Begun) -> i32 {
    let Begun { child, pumps } = begun;
    let watcher = entry
        .spec
        .memory_limit
        .map(|limit| tokio::task::spawn_local(memory::watch(pod.clone(), entry.clone(), child.pid, limit)));
    // The sender is dropped only with the shim.
    let code = child.exit.await.unwrap_or(128);
    if let Some(watcher) = watcher {
        watcher.abort();
    }
    if entry.spec.processes != Processes::Own
        && let Some(namespaces) = &*entry.namespaces.borrow()
    {
        // No namespace ends with it, and what it left running is to end all the same.
        memory::kill_within(&namespaces.mounts);
    }
    for mut pump in pumps {
        if pod.clock.timeout(LAST_WORDS, &mut pump).await.is_err() {
            pump.abort();
        }
    }
    code
}

async fn begin(pod: &Rc<Pod>, entry: &Rc<Entry>) -> Result<Begun, (i32, String)> {
    let failed = |what: &'static str| move |error: io::Error| (128, format!("cannot {what}: {error}"));
    let spec = &entry.spec;
    let log = Rc::new(RefCell::new(Log::open(&spec.log).map_err(failed("open the container's log"))?));
    let making = Making {
        container: spec.clone(),
        hostname: pod.launch.sandbox.hostname.clone(),
        shared_memory: shared_memory(&pod.launch.sandbox.folder),
        mapped: pod.launch.mapped,
        own_network: pod.launch.sandbox.network.is_some(),
    };
    let order = Order::Make(Box::new(making));
    pod.joined().await;
    let others = pod.processes_for(spec).map_err(failed("see the processes of others"))?;
    let place = others.as_ref().map_or(Place::New, Place::Of);
    let mut outputs = Vec::new();
    let spawned = if spec.terminal {
        pod.children.spawn(&place, &order, &[])
    } else {
        let (input, output, errors) = streams(spec.stdin, entry).map_err(failed("make pipes"))?;
        outputs =
            vec![("stdout", output.0, entry.stdout.clone()), ("stderr", errors.0, entry.stderr.clone())];
        pod.children.spawn(&place, &order, &[input.as_fd(), output.1.as_fd(), errors.1.as_fd()])
    };
    let child = spawned.map_err(failed("start a process"))?;
    entry.pid.set(Some(child.pid));
    if let Some(terminal) = staged(&child.socket).await? {
        outputs = vec![(
            "stdout",
            terminal.try_clone().map_err(failed("share the terminal"))?,
            entry.stdout.clone(),
        )];
        entry.terminal.replace(Some(terminal));
    }
    // A program that is gone already cannot be joined.
    entry.namespaces.replace(Namespaces::of(child.pid).ok());
    let mut pumps = Vec::new();
    for (name, output, attached) in outputs {
        let stream = Output::new(output).map_err(failed("read the container's output"))?;
        pumps.push(tokio::task::spawn_local(pump(stream, name, log.clone(), attached, pod.clock.clone())));
    }
    Ok(Begun { child, pumps })
}

/// Waits until a first stage became the program: then its socket closes. Returns the terminal's other side, if it made one.
pub async fn staged(socket: &tokio::net::UnixStream) -> Result<Option<OwnedFd>, (i32, String)> {
    let mut terminal = None;
    loop {
        match ipc::receive_async::<Staged>(socket).await {
            Ok(None) => return Ok(terminal),
            Ok(Some((Staged::Up, _))) => {}
            Ok(Some((Staged::Terminal, mut descriptors))) => terminal = descriptors.pop(),
            Ok(Some((Staged::Failed(code, message), _))) => return Err((code, message)),
            Err(error) => return Err((128, format!("the container's first stage died: {error}"))),
        }
    }
}

type Pipe = (OwnedFd, OwnedFd);

fn streams(stdin: bool, entry: &Entry) -> io::Result<(OwnedFd, Pipe, Pipe)> {
    let input = if stdin {
        let (theirs, ours) = std::io::pipe()?;
        entry.stdin.replace(Some(ours.into()));
        theirs.into()
    } else {
        File::open("/dev/null")?.into()
    };
    Ok((input, pipe()?, pipe()?))
}

pub fn pipe() -> io::Result<Pipe> {
    let (reader, writer) = std::io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// What a state on disk means when the shim that wrote it is gone: all its processes went with it.
pub fn after_a_crash(mut state: ContainerState, now: i64) -> ContainerState {
    if let Phase::Running { started, .. } = state.phase {
        state.phase = Phase::Exited { started, finished: now, code: 137, out_of_memory: false };
    }
    state
}
