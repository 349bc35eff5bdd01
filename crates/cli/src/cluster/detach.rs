//! `windlass cluster up --detach`: the same command in a process of its own, and back to the prompt when it is ready.

use anyhow::Context;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// What the other process is told beside what this one was.
const DETACHED: &str = "--detached";

/// Starts the command with these arguments in the background, waits until it is ready or fails, and says which.
pub(crate) fn start(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let mut child = Command::new(program)
        .args(arguments.iter().filter(|argument| *argument != "--detach"))
        .arg(DETACHED)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start a process of its own")?;
    let mut ready = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut ready).context("cannot hear from the cluster")?;
    }
    if !ready.is_empty() {
        let _ = std::io::stdout().write_all(ready.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    // It ended without a word on its standard output: what is on the other says why.
    let mut why = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut why);
    }
    let status = child.wait().context("cannot wait for the cluster")?;
    eprint!("{why}");
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// In the other process, before it does anything else: leaves the terminal, so that closing it ends nothing, and what the terminal's
/// processes had open, so that nothing there waits for this process to end.
pub(crate) fn leave_terminal() {
    windlass_node::close_inherited_descriptors();
    // It fails only for the leader of a group, which nobody's terminal ends by mistake.
    let _ = nix::unistd::setsid();
}

/// In the other process, once it is ready: nobody reads what it says any more but in a file.
pub(crate) fn log_to(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join("log");
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
    let log = log.with_context(|| format!("cannot write {}", path.display()))?;
    nix::unistd::dup2_stderr(&log).context("cannot write to the log")?;
    nix::unistd::dup2_stdout(&log).context("cannot write to the log")?;
    Ok(())
}
