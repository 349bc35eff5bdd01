//! `windlass cluster down`: stops a running cluster, wherever it was started.

use super::find::Selection;
use super::record::{self, Found};
use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use windlass_clock::Clock;

/// The longest that a cluster may take to shut down.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: Selection,

    /// All of your clusters that run without --data-dir
    #[arg(long, conflicts_with = "data_dir")]
    all: bool,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let found = match options.all {
        true => record::temporary(),
        false => vec![options.selection.find()?],
    };
    for found in &found {
        stop(found)?;
        println!("stopped {}", found.record.server);
    }
    if found.is_empty() {
        println!("no cluster of yours runs without --data-dir");
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks a cluster to end, and waits until it has: its lock is let go of, and its process is gone.
pub(crate) fn stop(found: &Found) -> anyhow::Result<()> {
    let pid = found.record.pid;
    let clock = Clock::real();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // The lock says that the process which wrote this number still runs. Where it cannot be watched, the lock has to do.
        let process = rustix::process::Pid::from_raw(pid)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok())
            // To the reactor it is no other than a pipe: something that becomes readable.
            .and_then(|process| Receiver::from_owned_fd_unchecked(process).ok());
        kill(Pid::from_raw(pid), Signal::SIGTERM).with_context(|| format!("cannot stop process {pid}"))?;
        let ended = async {
            while record::is_held(&found.folder) {
                clock.sleep(Duration::from_millis(10)).await;
            }
            if let Some(process) = process {
                let _ = process.readable().await;
            }
        };
        let late = || format!("process {pid} was asked to end and still runs after {PATIENCE:?}");
        clock.timeout(PATIENCE, ended).await.with_context(late)
    })
}
