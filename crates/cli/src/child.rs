//! Child processes of a command.

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use windlass_clock::Clock;

/// The longest that a process may take to be ready, or to exit.
const PATIENCE: Duration = Duration::from_secs(30);

/// In a group of its own: Ctrl-C is for the command, which ends the others in order.
pub(crate) fn alone(command: &mut Command) -> &mut Command {
    command.process_group(0).stdin(Stdio::null())
}

/// Asks a process to end, and insists where it does not.
pub(crate) async fn end(mut child: Child) {
    let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) else { return };
    let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    if Clock::real().timeout(PATIENCE, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// A cluster that runs in a process of its own.
pub(crate) struct Cluster {
    pub(crate) child: Child,
    /// What it says of itself.
    pub(crate) ready: String,
    pub(crate) kubeconfig: PathBuf,
}

impl Cluster {
    /// `windlass cluster up` with these nodes, and what it complains of goes to `log`. It ends with this process. Where a
    /// folder of settings is given, that counts instead of the user's.
    pub(crate) async fn start(nodes: &str, log: Stdio, settings: Option<&Path>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot tell which program this is")?;
        let mut command = Command::new(program);
        command.args(["cluster", "up", "--with-parent", "--nodes", nodes]);
        if let Some(settings) = settings {
            command.env("XDG_CONFIG_HOME", settings);
        }
        command.stdout(Stdio::piped()).stderr(log);
        let mut child = alone(&mut command).spawn().context("cannot start a cluster")?;
        let out = child.stdout.take().context("the cluster has no output")?;
        let mut ready = String::new();
        let mut lines = BufReader::new(out);
        let read = Clock::real().timeout(PATIENCE, lines.read_line(&mut ready)).await;
        let parts = ready.trim_end().split_once("; export KUBECONFIG=");
        let Some((said, path)) = parts.filter(|_| matches!(read, Ok(Ok(_)))) else {
            end(child).await;
            bail!("the cluster did not start");
        };
        Ok(Self { child, ready: said.to_owned(), kubeconfig: PathBuf::from(path) })
    }
}
