//! The server as a child of the agent: started, asked to stop, killed with everything that it started.

use super::data::Volume;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};
use std::fs;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use windlass::clock::Clock;

/// How long the processes that a killed server leaves may take to be gone.
const LEFTOVERS: Duration = Duration::from_secs(10);

/// A server, or none.
#[derive(Debug, Default)]
pub struct Server {
    child: Option<Child>,
}

impl Server {
    /// Starts it.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(&mut self, volume: &Volume) -> io::Result<()> {
        // What an earlier one in this pod left would be taken for a running server if its process id is used again.
        match fs::remove_file(volume.data().join("postmaster.pid")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut command = Command::new("postgres");
        command.arg("-D").arg(volume.data()).stdin(Stdio::null()).kill_on_drop(true);
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// Whether its process is there; the status of one that has ended since is told once.
    pub fn poll(&mut self) -> (bool, Option<ExitStatus>) {
        let Some(child) = &mut self.child else { return (false, None) };
        match child.try_wait() {
            Ok(None) => (true, None),
            Ok(Some(status)) => {
                self.child = None;
                (false, Some(status))
            }
            Err(_) => (true, None),
        }
    }

    /// Has it read its configuration again.
    pub fn reload(&self) {
        self.signal(Signal::SIGHUP);
    }

    /// Stops it: clients are disconnected, replicas get everything that was written. One that does not stop in time is killed.
    pub async fn stop(&mut self, clock: &Clock, limit: Duration) {
        self.signal(Signal::SIGINT);
        if let Some(child) = &mut self.child {
            let stopped = clock.timeout(limit, child.wait()).await;
            if !matches!(stopped, Ok(Ok(_))) {
                tracing::warn!("the server did not stop within {} s, and is killed", limit.as_secs());
                self.kill(clock).await;
            }
        }
        self.child = None;
    }

    /// Kills it, and whatever it started: processes of a killed server may go on for a while, and write.
    pub async fn kill(&mut self, clock: &Clock) {
        if let Some(mut child) = self.child.take() {
            let _ = child.start_kill();
            let _ = clock.timeout(LEFTOVERS, child.wait()).await;
        }
        let gone = async {
            loop {
                let left = orphans();
                for process in &left {
                    let _ = kill(*process, Signal::SIGKILL);
                    let _ = waitpid(*process, Some(WaitPidFlag::WNOHANG));
                }
                if left.is_empty() {
                    return;
                }
                clock.sleep(Duration::from_millis(5)).await;
            }
        };
        if clock.timeout(LEFTOVERS, gone).await.is_err() {
            // The end of the agent is the end of its container, and of everything in it.
            tracing::error!("processes of the server cannot be killed: the agent ends");
            std::process::exit(1);
        }
    }

    /// Ends what servers before this one left, and reaps what has ended.
    pub fn reap(&self) {
        let own = self.child.as_ref().and_then(Child::id);
        for process in orphans() {
            if own != u32::try_from(process.as_raw()).ok() {
                let _ = waitpid(process, Some(WaitPidFlag::WNOHANG));
            }
        }
    }

    /// Whether a standby waits for data that it does not get: its processes say so in their titles.
    pub fn waits_for_data(&self) -> bool {
        let Some(own) = self.child.as_ref().and_then(Child::id).and_then(|id| i32::try_from(id).ok()) else {
            return false;
        };
        let titles: Vec<String> = processes()
            .filter(|id| parent(*id) == Some(own))
            .filter_map(|id| fs::read(format!("/proc/{id}/cmdline")).ok())
            .map(|title| String::from_utf8_lossy(&title).into_owned())
            .collect();
        let some = |words: &str| titles.iter().any(|title| title.contains(words));
        some("startup waiting") && !some("walreceiver streaming")
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().and_then(Child::id).and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id {
            let _ = kill(Pid::from_raw(id), signal);
        }
    }
}

/// Has processes that a child leaves become children of this one.
pub fn adopt_orphans() {
    if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
        tracing::warn!("processes that a server leaves are not noticed: {error}");
    }
}

/// The children of this process.
fn orphans() -> Vec<Pid> {
    let own = getpid().as_raw();
    processes().filter(|id| parent(*id) == Some(own)).map(Pid::from_raw).collect()
}

/// Every process that can be seen.
fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
}

/// The parent of a process: the second field after its name, which is in brackets and may hold anything.
fn parent(process: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_parent() {
        let own = getpid().as_raw();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        assert_eq!(parent(id), Some(own));
        assert!(orphans().contains(&Pid::from_raw(id)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(parent(i32::MAX), None);
    }
}
