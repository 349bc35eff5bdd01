//! The command as a process of its own, in a folder of its own.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The command, not yet started.
pub(crate) fn windlass(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments).env_remove("WINDLASS_LOG").env_remove("KUBECONFIG").stdin(Stdio::null());
    command
}

/// A cluster that runs.
pub(crate) struct Cluster {
    child: Child,
    /// The line that says that it is ready.
    pub(crate) ready: String,
}

/// `cluster up --api-only` with more arguments; its temporary files are in `runtime`.
pub(crate) fn up(runtime: &Path, arguments: &[&str]) -> Command {
    let mut command = windlass(&["cluster", "up", "--api-only"]);
    command.args(arguments).env("XDG_RUNTIME_DIR", runtime);
    command
}

impl Cluster {
    /// Starts the API alone and waits until it is ready.
    pub(crate) fn start(runtime: &Path, arguments: &[&str]) -> Self {
        Self::of(up(runtime, arguments))
    }

    /// Starts what a command says and waits until it is ready.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("ready in "), "{ready:?}");
        Self { child, ready }
    }

    /// Where it serves.
    pub(crate) fn server(&self) -> &str {
        let from = self.ready.find("https://").unwrap();
        self.ready[from..].split(';').next().unwrap()
    }

    /// The kubeconfig that its ready line tells to export.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        let (_, path) = self.ready.trim_end().split_once("export KUBECONFIG=").unwrap();
        path.into()
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for the end that somebody else asked for.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Sends `signal` and waits for the end.
    pub(crate) fn end(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.child.wait().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
