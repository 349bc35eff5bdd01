//! The agent's command line. It is part of the library so that a program can be an agent under that name.

use super::upgrade;
use super::{Question, ask, run, watchdog};
use crate::archive;
use crate::settings::SOCKETS;
use std::path::Path;
use std::process::{Command, ExitCode};
use windlass::logs::{self, LogFormat};

const HELP: &str = "\
Runs a PostgreSQL server for an instance of a SampleDB. The operator's pods start it.

Usage:
  sampledb-agent install DIRECTORY   Copy this program into a directory
  sampledb-agent run                 Run an instance below a watchdog
  sampledb-agent probe live|ready    Ask the agent of this pod how it is
  sampledb-agent archive             Keep the backups of a database
  sampledb-agent backup              Have the archive take a backup
  sampledb-agent forget              Have the archive delete a backup
  sampledb-agent collect-programs DIRECTORY   Copy this image's PostgreSQL into a directory
  sampledb-agent upgrade             Upgrade an instance's data to the next version
  sampledb-agent revert-upgrade      Put the data of the version before back
";

/// Does what the arguments of this process say.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["install", directory] => install(Path::new(directory)),
        ["run"] => watch(),
        ["work"] => work(),
        ["archive"] => on_a_runtime(async { archive::serve().await.map_err(|error| error.to_string()) }),
        ["backup"] => on_a_runtime(archive::backup()),
        ["collect-programs", directory] => upgrade::collect(Path::new(directory)).map(|()| ExitCode::SUCCESS),
        ["upgrade"] => on_a_runtime(upgrade::upgrade()),
        ["revert-upgrade"] => on_a_runtime(upgrade::revert()),
        ["forget"] => on_a_runtime(archive::forget()),
        ["probe", question] => match Question::named(question) {
            Some(question) => probe(question),
            None => return usage(),
        },
        ["--help" | "-h" | "help"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => return usage(),
    };
    outcome.unwrap_or_else(|why| {
        eprintln!("error: {why}");
        ExitCode::FAILURE
    })
}

fn usage() -> ExitCode {
    eprint!("{HELP}");
    ExitCode::from(2)
}

fn install(directory: &Path) -> Result<ExitCode, String> {
    let copied = std::env::current_exe().and_then(|own| {
        let unfinished = directory.join(".sampledb-agent");
        std::fs::copy(own, &unfinished)?;
        std::fs::rename(unfinished, directory.join("sampledb-agent"))
    });
    copied.map_err(|error| format!("copying the agent to {}: {error}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The watchdog, and below it this program again.
fn watch() -> Result<ExitCode, String> {
    let own = std::env::current_exe().map_err(|error| format!("finding this program: {error}"))?;
    let mut command = Command::new(own);
    command.arg("work");
    watchdog::watch(command).map_err(|error| format!("starting the agent: {error}"))
}

fn work() -> Result<ExitCode, String> {
    on_a_runtime(async { run().await.map_err(|error| error.to_string()) })
}

fn on_a_runtime(work: impl Future<Output = Result<(), String>>) -> Result<ExitCode, String> {
    logs::init(LogFormat::Json, "info")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("starting the runtime: {error}"))?;
    runtime.block_on(work)?;
    Ok(ExitCode::SUCCESS)
}

fn probe(question: Question) -> Result<ExitCode, String> {
    let answer = ask(Path::new(SOCKETS), question).map_err(|error| format!("asking the agent: {error}"))?;
    Ok(if answer { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
