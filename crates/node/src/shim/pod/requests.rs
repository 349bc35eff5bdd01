//! What a shim is asked, and how it answers.

use super::super::client::SOCKET;
use super::super::protocol::{Launch, Launched, Order, Reply, Request};
use super::super::spec::{Container, ContainerState, Phase, Processes};
use super::super::state_files;
use super::children::{Children, Place};
use super::containers::{self, Entry, Progress};
use super::{connect, exec, memory, report};
use crate::ipc;
use crate::net::Joining;
use crate::process_record::FILE;
use crate::stderr_log::log;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex as AsyncMutex, Notify, watch};
use windlass_clock::Clock;

/// How many attempts of a container are remembered: the last, and the one before, whose log can still be asked for.
const ATTEMPTS: u32 = 2;

/// All that a shim knows.
pub struct Pod {
    pub launch: Launch,
    pub clock: Clock,
    pub children: Children,
    entries: RefCell<BTreeMap<String, Rc<Entry>>>,
    states: RefCell<BTreeMap<(String, u32), ContainerState>>,
    version: watch::Sender<u64>,
    over: Notify,
    /// The namespace of processes that containers share, once one asked for that.
    shared: RefCell<Option<File>>,
    /// The pod's interface, until packets are known to pass.
    joining: AsyncMutex<Option<Joining>>,
}

impl Pod {
    fn new(launch: Launch, children: Children, joining: Option<Joining>) -> io::Result<Self> {
        let clock = Clock::real();
        let now = clock.now().as_millisecond();
        let mut states = BTreeMap::new();
        for state in state_files::read(&launch.sandbox.folder) {
            let state = containers::after_a_crash(state, now);
            state_files::write(&launch.sandbox.folder, &state)?;
            states.insert((state.name.clone(), state.attempt), state);
        }
        Ok(Self {
            children,
            joining: AsyncMutex::new(joining),
            entries: RefCell::default(),
            states: RefCell::new(states),
            // Later than any version of a shim that was here before.
            version: watch::Sender::new(u64::try_from(now).unwrap_or(1)),
            over: Notify::new(),
            shared: RefCell::default(),
            launch,
            clock,
        })
    }

    /// The latest attempt of a container.
    pub fn entry(&self, name: &str) -> Option<Rc<Entry>> {
        self.entries.borrow().get(name).cloned()
    }

    /// The containers that run.
    pub fn running(&self) -> Vec<Rc<Entry>> {
        let entries = self.entries.borrow();
        entries.values().filter(|entry| *entry.progress.borrow() == Progress::Running).cloned().collect()
    }

    /// Takes in a new attempt, and forgets the oldest.
    pub fn enter(&self, entry: Rc<Entry>) {
        let (name, attempt) = (entry.spec.name.clone(), entry.spec.attempt);
        let old = |key: &(String, u32)| key.0 == name && key.1 + ATTEMPTS <= attempt;
        self.states.borrow_mut().retain(|key, _| {
            if old(key) {
                state_files::forget(&self.launch.sandbox.folder, &key.0, key.1);
            }
            !old(key)
        });
        self.entries.borrow_mut().insert(name, entry);
    }

    /// What became of an attempt.
    pub fn state(&self, name: &str, attempt: u32) -> Option<ContainerState> {
        self.states.borrow().get(&(name.to_owned(), attempt)).cloned()
    }

    /// Keeps what became of an attempt, and tells all who wait.
    pub fn tell(&self, entry: &Entry, phase: Phase) {
        let state = ContainerState { name: entry.spec.name.clone(), attempt: entry.spec.attempt, phase };
        if let Err(error) = state_files::write(&self.launch.sandbox.folder, &state) {
            log(format!("the state of container {} is not kept: {error}", state.name));
        }
        self.states.borrow_mut().insert((state.name.clone(), state.attempt), state);
        self.version.send_modify(|version| *version += 1);
    }

    /// The namespace of processes that a container is to be in, where that is not a new one.
    pub fn processes_for(&self, spec: &Container) -> io::Result<Option<File>> {
        let held = match &spec.processes {
            Processes::Own => return Ok(None),
            Processes::Of(name) => {
                let entry = self.entry(name).ok_or(io::ErrorKind::NotFound)?;
                let namespaces = entry.namespaces.borrow();
                return namespaces.as_ref().ok_or(io::ErrorKind::NotFound)?.processes.try_clone().map(Some);
            }
            Processes::OfPod => self.shared.take(),
        };
        // It lasts as long as its first process, which is nobody's program.
        let held = match held {
            Some(held) => held,
            None => {
                let holder = self.children.spawn(&Place::New, &Order::Hold, &[])?;
                File::open(format!("/proc/{}/ns/pid", holder.pid))?
            }
        };
        let given = held.try_clone()?;
        self.shared.replace(Some(held));
        Ok(Some(given))
    }

    /// Returns when packets of the pod pass: no program is to find itself cut off at first.
    pub async fn joined(&self) {
        let mut joining = self.joining.lock().await;
        if let Some(waiting) = joining.take()
            && let Err(error) = waiting.finished(&self.clock).await
        {
            // Its probes will tell.
            log(format!("whether the pod's packets pass is not known: {error}"));
        }
    }

    async fn changed(&self, since: u64) -> u64 {
        self.version.subscribe().wait_for(|version| *version > since).await.map_or(since, |version| *version)
    }

    fn signal(&self, name: &str, signal: i32) -> Reply {
        let Some(entry) = self.entry(name) else { return Reply::NoContainer(name.into()) };
        let Some(pid) = entry.pid.get() else { return Reply::NotRunning(name.into()) };
        match self.children.signal(pid, signal) {
            Ok(()) => Reply::Done,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Reply::NotRunning(name.into()),
            Err(error) => Reply::Failed(format!("cannot send signal {signal} to container {name}: {error}")),
        }
    }

    /// Kills everything, and waits for every container's last word.
    async fn end(&self) {
        self.children.kill_all();
        let entries: Vec<_> = self.entries.borrow().values().cloned().collect();
        for entry in entries {
            entry.reaches(Progress::Ended).await;
        }
        for name in [SOCKET, FILE] {
            let _ = std::fs::remove_file(self.launch.sandbox.folder.join(name));
        }
    }
}

/// Listens, until the pod ends.
pub fn listen(
    launch: Launch,
    children: Children,
    joining: Option<Joining>,
    listener: UnixListener,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let pod = Rc::new(Pod::new(launch, children, joining)?);
        let mut deaths = signal(SignalKind::child())?;
        let mut terminated = signal(SignalKind::terminate())?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        report(&Launched::Ready);
        rustix::stdio::dup2_stdout(std::fs::File::open("/dev/null")?)?;
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        loop {
            tokio::select! {
                _ = deaths.recv() => pod.children.reap(),
                accepted = listener.accept() => {
                    if let Ok((socket, _)) = accepted {
                        tokio::task::spawn_local(answer(pod.clone(), socket));
                    }
                }
                _ = terminated.recv() => {
                    let pod = pod.clone();
                    tokio::task::spawn_local(async move {
                        pod.end().await;
                        pod.over.notify_one();
                    });
                }
                () = pod.over.notified() => return Ok(()),
            }
        }
    })
}

/// Answers one connection. Whoever leaves early harms nobody.
async fn answer(pod: Rc<Pod>, socket: UnixStream) {
    let Ok(Some((request, _))) = ipc::receive_async::<Request>(&socket).await else { return };
    let reply = match request {
        Request::Hello => Reply::Done,
        Request::Start(container) => containers::start(&pod, *container).await,
        Request::Signal { name, signal } => pod.signal(&name, signal),
        Request::States => Reply::States(pod.states.borrow().values().cloned().collect()),
        Request::Changed { since } => {
            let mut nothing = [0; 1];
            tokio::select! {
                version = pod.changed(since) => Reply::Version(version),
                // The asker left: nobody is to be told.
                _ = socket.async_io(tokio::io::Interest::READABLE, || socket.try_read(&mut nothing)) => return,
            }
        }
        Request::Exec { name, exec } => return exec::exec(&pod, &socket, &name, exec).await,
        Request::Attach { name } => return exec::attach(&pod, &socket, &name).await,
        Request::Usage => Reply::Usage(memory::usage(&pod)),
        Request::Connect { port } => return connect::connect(&pod, &socket, port).await,
        Request::Resize(_) => Reply::Failed("nothing was run on this connection".into()),
        Request::End => {
            pod.end().await;
            let _ = ipc::send_async(&socket, &Reply::Done, &[]).await;
            pod.over.notify_one();
            return;
        }
    };
    let _ = ipc::send_async(&socket, &reply, &[]).await;
}
