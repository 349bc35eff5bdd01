//! Which process one is: its pid with its start time, so that a recycled pid is never taken for it.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::net::unix::pipe::Receiver;

/// The name of the record of its shim in a pod's folder.
pub const FILE: &str = "shim.json";

/// A process, told apart from all others since the machine was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// As the node's namespace counts.
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`: ticks since the machine was started.
    pub start: u64,
}

impl Record {
    /// The process that asks. `/proc` must still be that of the node, or the pid means nothing to it.
    pub fn own() -> io::Result<Self> {
        let pid = std::fs::read_link("/proc/self")?;
        let pid = pid.to_str().and_then(|pid| pid.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { pid, start: start_of(pid)? })
    }

    /// What the folder of a pod holds; none where it was never written or is torn.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(folder.join(FILE)).ok()?).ok()
    }

    /// The process itself, where it lives still.
    pub fn open(self) -> Option<Process> {
        let descriptor = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::NONBLOCK).ok()?;
        // Looked at after it was opened: whatever has this start time now is what the descriptor holds.
        (start_of(self.pid).ok()? == self.start).then_some(Process(descriptor))
    }
}

/// A process that is held: signals reach it or nobody.
pub struct Process(OwnedFd);

impl Process {
    /// Kills it. One that is gone already is no error.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }

    /// Returns when it is gone.
    pub async fn gone(self) -> io::Result<()> {
        // To the reactor it is no other than a pipe: something that becomes readable.
        Receiver::from_owned_fd_unchecked(self.0)?.readable().await
    }
}

fn start_of(pid: i32) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    start_in(&stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The start time in the text of a `stat`. The program's name may hold spaces and brackets: all counts from the last one.
fn start_in(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_move_the_start_time() {
        let stat = "7 (a) b) 1 (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        assert_eq!(start_in(stat), Some(4711));
        assert_eq!(start_in("7 (a"), None);
    }

    #[test]
    fn another_process_with_the_same_pid_is_not_taken_for_it() {
        let own = Record::own().unwrap();
        assert!(own.open().is_some());
        assert!(Record { start: own.start + 1, ..own }.open().is_none());
    }
}
