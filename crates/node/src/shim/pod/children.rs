//! Starting processes in the right namespace of processes, and hearing of their end.

use super::super::protocol::{Order, Staged};
use super::own_program::Once;
use crate::ipc;
use crate::program::Program;
use crate::stderr_log::log;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use tokio::sync::oneshot;

/// Where a new process belongs.
pub enum Place<'a> {
    /// A new namespace of processes, of which it is the first.
    New,
    /// That of a container.
    Of(&'a File),
}

/// A process that was started: the socket to its first stage, and its exit code when it comes.
pub struct Child {
    /// As the pod counts.
    pub pid: i32,
    /// Closed without a word when the program runs.
    pub socket: tokio::net::UnixStream,
    /// Its exit code.
    pub exit: oneshot::Receiver<i32>,
}

/// All children: whoever waits for one is told, and the orphans of the pod are reaped.
pub struct Children {
    program: Program,
    own: File,
    waiting: RefCell<HashMap<i32, oneshot::Sender<i32>>>,
    prepared: RefCell<Option<Stage>>,
}

/// A first stage that waits for its order.
struct Stage {
    pid: i32,
    socket: UnixStream,
    exit: oneshot::Receiver<i32>,
    once: Once,
}

impl Children {
    pub fn new(program: Program) -> io::Result<Self> {
        let own = File::open("/proc/self/ns/pid")?;
        Ok(Self { program, own, waiting: RefCell::default(), prepared: RefCell::default() })
    }

    /// Starts the first stage of a container that will be asked for: to run a program takes a while in which there is other work.
    pub fn prepare(&self) {
        match self.stage(&Place::New) {
            Ok(stage) => _ = self.prepared.replace(Some(stage)),
            // It is tried again when it is needed, and told then.
            Err(error) => log(format!("the first container's first stage was not started early: {error}")),
        }
    }

    /// Starts the first stage of a container or of a program in one. Nothing is awaited here: until the child is entered, its
    /// end cannot be reaped.
    pub fn spawn(
        &self,
        place: &Place<'_>,
        order: &Order,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<Child> {
        let prepared = if let Place::New = place { self.prepared.take() } else { None };
        let Stage { pid, socket, exit, once } = match prepared {
            Some(stage) => stage,
            None => self.stage(place)?,
        };
        // Only when it is up may its mount be closed: until then the kernel still maps the program. One that died already says so by
        // its exit code.
        let _ = ipc::receive::<Staged>(&socket);
        once.close()?;
        drop(once);
        let _ = ipc::send(&socket, order, descriptors);
        socket.set_nonblocking(true)?;
        Ok(Child { pid, socket: tokio::net::UnixStream::from_std(socket)?, exit })
    }

    fn stage(&self, place: &Place<'_>) -> io::Result<Stage> {
        let (ours, theirs) = UnixStream::pair()?;
        let (once, program) = Once::prepare(&self.program)?;
        match place {
            Place::New => unshare(CloneFlags::CLONE_NEWPID)?,
            Place::Of(namespace) => setns(namespace, CloneFlags::CLONE_NEWPID)?,
        }
        let spawned = program
            .command("pod-container")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn();
        // Otherwise the next process would land there too, and no thread could ever be started.
        setns(&self.own, CloneFlags::CLONE_NEWPID)?;
        let pid = i32::try_from(spawned?.id()).map_err(io::Error::other)?;
        let (sender, exit) = oneshot::channel();
        self.waiting.borrow_mut().insert(pid, sender);
        Ok(Stage { pid, socket: ours, exit, once })
    }

    /// Reaps all that ended.
    pub fn reap(&self) {
        loop {
            let (pid, code) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, code),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, 128 + signal as i32),
                Ok(WaitStatus::StillAlive) | Err(_) => return,
                Ok(_) => continue,
            };
            if let Some(sender) = self.waiting.borrow_mut().remove(&pid.as_raw()) {
                let _ = sender.send(code);
            }
        }
    }

    /// Sends a signal, by number, to a child that was not reaped yet; its pid cannot have been given to another.
    pub fn signal(&self, pid: i32, signal: i32) -> io::Result<()> {
        if !self.waiting.borrow().contains_key(&pid) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let signal = nix::sys::signal::Signal::try_from(signal)?;
        Ok(nix::sys::signal::kill(Pid::from_raw(pid), signal)?)
    }

    /// Kills a child and all of its group.
    pub fn kill_group(&self, pid: i32) {
        if self.waiting.borrow().contains_key(&pid) {
            let _ = nix::sys::signal::kill(Pid::from_raw(-pid), nix::sys::signal::Signal::SIGKILL);
            let _ = nix::sys::signal::kill(Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }

    /// Kills everything there is in the pod, but for the shim.
    pub fn kill_all(&self) {
        let _ = nix::sys::signal::kill(Pid::from_raw(-1), nix::sys::signal::Signal::SIGKILL);
    }
}
