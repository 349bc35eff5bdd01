//! `windlass cluster down`: stops a running cluster, wherever it was started.

use super::data_dir::{self, DataDir};
use super::find::{self, Selection};
use super::process_nodes;
use super::record::{self, Found};
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};
use std::path::Path;
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
    let killed = match options.all {
        true => find::killed(data_dir::temporary_folders()),
        false => options.selection.killed(),
    };
    for folder in &killed {
        end_killed(folder)?;
        println!("ended the pods of a cluster that was killed, in {}", folder.display());
    }
    let found = match options.all {
        true => record::temporary(),
        // Nothing is left to be meant.
        false if !killed.is_empty() => Vec::new(),
        false => vec![options.selection.find()?],
    };
    for found in &found {
        stop(found)?;
        println!("stopped {}", found.record.server);
    }
    if found.is_empty() && killed.is_empty() {
        println!("no cluster of yours runs without --data-dir");
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends what a killed cluster left running. A folder that was to go with it goes.
fn end_killed(folder: &Path) -> anyhow::Result<()> {
    let _held = DataDir::at(folder)?;
    process_nodes::end_left(folder);
    if process_nodes::has_left(folder) {
        bail!("not all processes of the killed cluster in {} end", folder.display());
    }
    if data_dir::is_temporary(folder) {
        windlass_node::file_tree::remove(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
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
