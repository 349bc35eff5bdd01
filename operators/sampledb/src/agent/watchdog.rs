//! The first process of an instance's container: it ends the server, and everything else, when the agent has not said in time
//! that it may run on.
//!
//! An agent that is frozen, or that hangs on a dead disk, cannot stop its server; this can. It knows nothing but a deadline. It
//! also reaps processes that nobody waits for, and passes signals on.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use windlass::clock::{Clock, Moment};

/// How long it waits for anything to happen before it looks at the time.
const TICK_MILLISECONDS: u16 = 100;
/// The longest order.
const LONGEST: usize = 64;
/// What an agent that was killed exits with.
const KILLED: u8 = 137;

/// Runs a program below the watchdog, with the other end of the line as its standard input.
///
/// # Errors
/// When it cannot be started, or the kernel refuses what every kernel can.
pub fn watch(mut command: Command) -> io::Result<ExitCode> {
    let clock = Clock::real();
    let (line, theirs) = UnixStream::pair()?;
    line.set_nonblocking(true)?;
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD] {
        signals.add(signal);
    }
    let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
    let agent = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    // After the start: a blocked signal would be blocked in the agent, too.
    signals.thread_block()?;
    let arrived = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let mut watchdog = Watchdog { line, unread: Vec::new(), deadline: None };
    loop {
        let ready = {
            let mut watched = [
                PollFd::new(watchdog.line.as_fd(), PollFlags::POLLIN),
                PollFd::new(arrived.as_fd(), PollFlags::POLLIN),
            ];
            poll(&mut watched, PollTimeout::from(TICK_MILLISECONDS))
        };
        match ready {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Ok(Some(signal)) = arrived.read_signal() {
            let number = i32::try_from(signal.ssi_signo).unwrap_or(0);
            if let Ok(signal @ (Signal::SIGTERM | Signal::SIGINT)) = Signal::try_from(number) {
                let _ = kill(agent, signal);
            }
        }
        if let Some(code) = reap(agent) {
            return Ok(end(code));
        }
        watchdog.listen(&clock);
        if watchdog.deadline.is_some_and(|deadline| clock.moment() >= deadline) {
            eprintln!("the agent did not say in time that its server may run on: everything is killed");
            let _ = kill(agent, Signal::SIGKILL);
            return Ok(end(KILLED));
        }
    }
}

/// Everything in the container ends with its first process; elsewhere, what the agent started is asked by its end to end.
fn end(code: u8) -> ExitCode {
    if getpid().as_raw() == 1 {
        // The kernel would do it, too; this says so.
        let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    }
    ExitCode::from(code)
}

/// Reaps what has ended; the code of the agent if that is among it.
fn reap(agent: Pid) -> Option<u8> {
    loop {
        match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(process, code)) if process == agent => {
                return Some(u8::try_from(code).unwrap_or(1));
            }
            Ok(WaitStatus::Signaled(process, signal, _)) if process == agent => {
                return Some(u8::try_from(128 + signal as i32).unwrap_or(1));
            }
            Ok(WaitStatus::StillAlive) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

struct Watchdog {
    line: UnixStream,
    unread: Vec<u8>,
    deadline: Option<Moment>,
}

impl Watchdog {
    fn listen(&mut self, clock: &Clock) {
        let mut buffer = [0_u8; 256];
        while let Ok(count) = self.line.read(&mut buffer) {
            if count == 0 {
                return;
            }
            self.unread.extend_from_slice(&buffer[..count]);
            while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let order: Vec<u8> = self.unread.drain(..=end).collect();
                match order_of(&order) {
                    Some(Order::Until(left)) => self.deadline = Some(clock.moment() + left),
                    Some(Order::Free) => self.deadline = None,
                    None => {}
                }
            }
            if self.unread.len() > LONGEST {
                self.unread.clear();
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Order {
    Until(Duration),
    Free,
}

fn order_of(line: &[u8]) -> Option<Order> {
    let text = std::str::from_utf8(line).ok()?.trim();
    match text.split_once(' ') {
        Some(("until", milliseconds)) => {
            Some(Order::Until(Duration::from_millis(milliseconds.parse().ok()?)))
        }
        None if text == "free" => Some(Order::Free),
        _ => None,
    }
}

/// The agent's end of the line.
#[derive(Debug)]
pub struct Leash {
    line: Option<UnixStream>,
}

impl Leash {
    /// Standard input, if it is a watchdog's line.
    pub fn from_stdin() -> Self {
        let line = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from).ok();
        Self { line: line.filter(|line| line.peer_addr().is_ok()) }
    }

    /// Everything is killed after this time, unless something else is said before.
    pub fn until(&self, left: Duration) {
        self.say(&format!("until {}\n", left.as_millis()));
    }

    /// The server may run on.
    pub fn free(&self) {
        self.say("free\n");
    }

    fn say(&self, order: &str) {
        if let Some(mut line) = self.line.as_ref() {
            // Without a watchdog the container has ended.
            let _ = line.write_all(order.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_nonsense_is_not() {
        assert_eq!(order_of(b"until 1500\n"), Some(Order::Until(Duration::from_millis(1500))));
        assert_eq!(order_of(b"free\n"), Some(Order::Free));
        for nonsense in [&b"until\n"[..], b"until x\n", b"until -1\n", b"\xff\n", b"\n", b"free 1\n"] {
            assert_eq!(order_of(nonsense), None);
        }
    }
}
