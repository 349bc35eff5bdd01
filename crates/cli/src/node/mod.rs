//! `windlass node`: nodes that join a cluster, ours or any other.

mod connect;
mod process;
mod simulate;

use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Join nodes to a cluster whose pods run in name only
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(simulate::Options),
    /// Join a node to a cluster that runs pods as processes of this machine
    #[command(after_help = process::EXAMPLES)]
    Process(process::Options),
}

impl Command {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Simulate(options) => simulate::run(options),
            Self::Process(options) => process::run(options),
        }
    }
}
