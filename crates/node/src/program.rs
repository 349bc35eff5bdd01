//! How a process runs the program it is itself once more, as something else.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// How to run this very program under one of its hidden subcommands: `path before.. pod-shim`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The program.
    pub path: PathBuf,
    /// What comes before the subcommand.
    pub before: Vec<OsString>,
}

impl Program {
    /// The program that runs now.
    ///
    /// # Errors
    /// `/proc` is not there to tell.
    pub fn current() -> std::io::Result<Self> {
        Ok(Self { path: std::env::current_exe()?, before: Vec::new() })
    }

    /// The same program as the process that asks, even where its file was replaced or removed meanwhile.
    pub(crate) fn again(&self) -> Self {
        Self { path: "/proc/self/exe".into(), before: self.before.clone() }
    }

    /// A command for one of the hidden subcommands, with an empty environment.
    pub(crate) fn command(&self, subcommand: &str) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.path);
        command.arg0("windlass").args(&self.before).arg(subcommand).env_clear().current_dir("/");
        command
    }
}
