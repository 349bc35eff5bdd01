//! `windlass cluster`: a Kubernetes of one's own on this machine.

mod advance;
mod control;
mod detach;
mod down;
mod expose;
mod home;
mod kubeconfig;
mod nodes;
mod processes;
mod record;
mod reset;
mod show;
mod status;
mod up;

use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_clock::Moment;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a cluster, and run it until Ctrl-C
    #[command(after_help = up::EXAMPLES)]
    Up(up::Options),
    /// Stop a cluster that runs
    Down(down::Options),
    /// Show the clusters that run
    Status(status::Options),
    /// Make a Service of a cluster reachable on this machine, until Ctrl-C
    Expose(expose::Options),
    /// Print the kubeconfig of a cluster that runs
    Kubeconfig(show::Options),
    /// Let time pass in a cluster that was started with --clock
    Advance(advance::Options),
    /// Empty a cluster that is kept in a folder; its credentials stay
    Reset(reset::Options),
}

impl Command {
    pub(crate) fn run(&self, begun: Moment) -> anyhow::Result<ExitCode> {
        match self {
            Self::Up(options) => up::run(options, begun),
            Self::Down(options) => down::run(options),
            Self::Status(options) => status::run(options),
            Self::Expose(options) => expose::run(options),
            Self::Kubeconfig(options) => show::run(options),
            Self::Advance(options) => advance::run(options),
            Self::Reset(options) => reset::run(options),
        }
    }
}

/// Which of the clusters that run is meant.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Which {
    /// The folder that the cluster was started with; without it, the one cluster of yours that runs without a folder
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}
