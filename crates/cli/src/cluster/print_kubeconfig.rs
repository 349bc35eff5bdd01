//! `windlass cluster kubeconfig`: what clients need to reach a cluster that runs.

use super::find::Selection;
use anyhow::Context;
use std::io::Write;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: Selection,

    /// Print where the file is, instead of what is in it
    #[arg(long)]
    path: bool,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let found = options.selection.find()?;
    let path = &found.record.kubeconfig;
    let shown = match options.path {
        true => format!("{}\n", path.display()),
        false => std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
    };
    // A pipe that is no longer read is not an error.
    let _ = std::io::stdout().write_all(shown.as_bytes());
    Ok(ExitCode::SUCCESS)
}
