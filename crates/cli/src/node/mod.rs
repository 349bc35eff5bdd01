//! `windlass node`: nodes that join a cluster, ours or any other.

mod process;
mod simulate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windlass_node::images::Catalogue;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Join nodes to a cluster whose pods run in name only
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(simulate::Options),
    /// Join a node to a cluster that runs pods as processes of this machine
    #[command(after_help = process::EXAMPLES)]
    Process(process::Options),
}

/// What images are to a node with this folder: what the user has in the folder of settings, and what comes along.
pub(crate) fn catalogue(root: &Path) -> Catalogue {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let settings = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(home);
    let settings = settings.unwrap_or_else(|| PathBuf::from("/etc")).join("windlass");
    Catalogue::new(settings.join("images"), settings.join("recipes.yaml"), root.join("images"))
}

impl Command {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Simulate(options) => simulate::run(options),
            Self::Process(options) => process::run(options),
        }
    }
}
