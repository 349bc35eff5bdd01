//! PostgreSQL's own programs, run to their ends.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use windlass::clock::Clock;

/// A program could not be run, or failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It could not be started.
    #[error("{program} cannot be started: {why}")]
    NotStarted {
        /// Its name.
        program: String,
        /// Why not.
        why: std::io::Error,
    },
    /// It ended badly.
    #[error("{program} failed: {said}")]
    Failed {
        /// Its name.
        program: String,
        /// The end of what it printed.
        said: String,
    },
    /// It took too long.
    #[error("{program} took longer than {} s", limit.as_secs())]
    TooSlow {
        /// Its name.
        program: String,
        /// How long it might have taken.
        limit: Duration,
    },
}

/// The end of what a program printed, of which this much is told.
const TOLD: usize = 600;

/// What a program printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// Its output.
    pub output: String,
    /// What it told beside.
    pub told: String,
}

/// Runs a program to its end; one that is dropped before is killed. Answers what it printed.
///
/// # Errors
/// [`ProgramError`]
pub async fn run(
    clock: &Clock,
    program: &str,
    arguments: &[&str],
    passfile: Option<&Path>,
    limit: Duration,
) -> Result<Printed, ProgramError> {
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(passfile) = passfile {
        command.env("PGPASSFILE", passfile);
    }
    end_of(clock, program, command, limit).await
}

/// As [`run`], in a directory that the program writes to.
///
/// # Errors
/// [`ProgramError`]
pub async fn run_in(
    clock: &Clock,
    program: &str,
    arguments: &[&str],
    directory: &Path,
    limit: Duration,
) -> Result<Printed, ProgramError> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    end_of(clock, program, command, limit).await
}

async fn end_of(
    clock: &Clock,
    program: &str,
    mut command: Command,
    limit: Duration,
) -> Result<Printed, ProgramError> {
    command.stdin(Stdio::null()).kill_on_drop(true).env("LC_ALL", "C");
    let name = || program.to_owned();
    let ended = clock.timeout(limit, command.output()).await;
    let ended = ended.map_err(|_| ProgramError::TooSlow { program: name(), limit })?;
    let output = ended.map_err(|why| ProgramError::NotStarted { program: name(), why })?;
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        return Ok(Printed { output: printed.into_owned(), told: said.into_owned() });
    }
    // Some programs, such as pg_upgrade, say why they fail where others print their output.
    let said = if said.trim().is_empty() { printed } else { said };
    let from = said.char_indices().rev().nth(TOLD).map_or(0, |(at, _)| at);
    Err(ProgramError::Failed { program: name(), said: said[from..].trim().to_owned() })
}

/// A field of what `pg_controldata` prints.
pub fn control_field<'a>(printed: &'a str, name: &str) -> Option<&'a str> {
    let line = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(str::trim)
}

/// A line of the password file of libpq.
pub fn passfile_line(user: &str, password: &str) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace(':', "\\:");
    format!("*:*:*:{}:{}\n", escaped(user), escaped(password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_control_file_are_found() {
        let printed = "Database system identifier:           7300\nLatest checkpoint's TimeLineID:       3\n";
        assert_eq!(control_field(printed, "Database system identifier"), Some("7300"));
        assert_eq!(control_field(printed, "Latest checkpoint's TimeLineID"), Some("3"));
        assert_eq!(control_field(printed, "Latest"), None);
    }

    #[tokio::test]
    async fn a_failure_says_what_the_program_said() {
        let clock = Clock::real();
        let limit = Duration::from_secs(20);
        assert_eq!(run(&clock, "echo", &["hello"], None, limit).await.unwrap().output, "hello\n");
        let failed = run(&clock, "sh", &["-c", "echo why >&2; exit 3"], None, limit).await.unwrap_err();
        assert_eq!(failed.to_string(), "sh failed: why");
        let missing = run(&clock, "no-such-program", &[], None, limit).await.unwrap_err();
        assert!(missing.to_string().starts_with("no-such-program cannot be started"));
        let slow = run(&clock, "sleep", &["20"], None, Duration::from_millis(20)).await.unwrap_err();
        assert!(matches!(slow, ProgramError::TooSlow { .. }));
    }
}
