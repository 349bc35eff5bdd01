//! Plug-ins: `windlass NAME ...` runs a program `windlass-NAME` on PATH, as git and kubectl do.

use crate::scaffold::InvalidOptions;
use anyhow::Context;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Runs a plug-in in place of this program.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let (name, arguments) = words.split_first().context("no subcommand")?;
    let Some(name) = name.to_str().filter(|name| is_name(name)) else {
        let why = format!("{} is no subcommand; windlass --help lists them", name.display());
        return Err(InvalidOptions(why).into());
    };
    let program = format!("windlass-{name}");
    let error = Command::new(&program).args(arguments).exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        return Err(InvalidOptions(format!(
            "{name} is no subcommand, and there is no program {program} on PATH; windlass --help lists the subcommands"
        ))
        .into());
    }
    Err(error).with_context(|| format!("starting {program}"))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
