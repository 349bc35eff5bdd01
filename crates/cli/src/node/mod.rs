//! `windlass node`: nodes that join a cluster, ours or any other.

mod process;
mod simulate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windlass_node::images::Catalogue;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Join simulated nodes to a cluster: their pods are reported as running, and nothing runs
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(simulate::Options),
    /// Join a node that runs pods as processes of this machine to a cluster
    #[command(after_help = process::EXAMPLES)]
    Process(process::Options),
}

/// The images that a node with this folder knows: the user's own in the configuration folder, and the built-in ones.
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
