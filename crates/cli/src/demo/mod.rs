//! `windlass demo`: an operator and real servers on a cluster of their own, from nothing to nothing.
//!
//! - `story`: the stages, and what each proves
//! - `ground`: what runs while it is told: the cluster and the operator, as processes of their own
//! - `operator`: the operator's part of this binary
//! - `servers`: memcached as its clients know it
//! - `processes`: what runs on this machine
//! - `screen`: how it is shown, and written down

mod ground;
pub(crate) mod operator;
mod processes;
mod screen;
mod servers;
mod story;

use crate::signals::{INTERRUPTED, Signals};
use anyhow::Context;
use ground::Ground;
use screen::Screen;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass demo
      tells the story and leaves nothing behind
  windlass demo --keep
      stays up at the end, with commands to try; Ctrl-C ends it

Where pods cannot be processes (`windlass doctor` says why) the node only simulates them, and the demo says so.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Stay up at the end, with commands to try, until Ctrl-C
    #[arg(long)]
    keep: bool,

    /// Only simulate the servers, also where they could be processes
    #[arg(long)]
    simulate: bool,

    /// Write what was shown to a file too, as Markdown
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
    let mut ground = Ground::new(options.simulate)?;
    let told = tokio::select! {
        told = story::tell(&mut screen, &mut ground) => told.map(|()| ExitCode::SUCCESS),
        () = signals.next() => Ok(ExitCode::from(INTERRUPTED)),
    };
    if options.keep && matches!(told, Ok(ExitCode::SUCCESS)) {
        story::invite(&mut screen, &ground);
        signals.next().await;
    }
    let ended = ground.end().await;
    match &told {
        // What the processes said is the best hint there is.
        Err(_) => eprint!("{}", ground.logs()),
        Ok(ExitCode::SUCCESS) => {
            story::close(&mut screen, &ended);
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
