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

/// Where descriptors end if the kernel does not say which are open.
const USUAL_LIMIT: i32 = 65_536;

/// Closes all file descriptors but the standard streams. Whoever started this process may have had files open that containers must not
/// see. Only for the start of a process: what it opened itself is closed as well.
pub fn close_inherited_descriptors() {
    let open: Vec<i32> = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => {
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        }
        Err(_) => (3..USUAL_LIMIT).collect(),
    };
    // The one that it was read by is closed already, which is no error here.
    open.into_iter().filter(|number| *number > 2).for_each(|number| _ = nix::unistd::close(number));
}
