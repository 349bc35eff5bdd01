//! `windlass cluster`: embedded Kubernetes clusters on this machine.

mod advance;
mod control;
mod data_dir;
mod detach;
mod down;
mod expose;
mod find;
mod kubeconfig;
mod nodes;
mod print_kubeconfig;
mod process_nodes;
mod record;
mod reset;
mod status;
mod up;

pub(crate) use find::is_on_this_machine;

use clap::Subcommand;
use std::process::ExitCode;
use windlass_clock::Moment;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a cluster and run it until Ctrl-C
    #[command(after_help = up::EXAMPLES)]
    Up(up::Options),
    /// Stop a running cluster
    #[command(after_help = find::SELECTION)]
    Down(down::Options),
    /// Show the running clusters, their nodes and pods
    #[command(after_help = find::SELECTION_OF_SEVERAL)]
    Status(status::Options),
    /// Make a Service of a cluster reachable on this machine, until Ctrl-C
    #[command(after_help = find::SELECTION)]
    Expose(expose::Options),
    /// Print the kubeconfig of a running cluster, or one for another user
    #[command(after_help = print_kubeconfig::after_help())]
    Kubeconfig(print_kubeconfig::Options),
    /// Advance the clock of a cluster that was started with --clock
    #[command(after_help = find::SELECTION)]
    Advance(advance::Options),
    /// Delete everything in a cluster that was started with --data-dir; its credentials stay
    Reset(reset::Options),
}

impl Command {
    pub(crate) fn run(&self, begun: Moment) -> anyhow::Result<ExitCode> {
        match self {
            Self::Up(options) => up::run(options, begun),
            Self::Down(options) => down::run(options),
            Self::Status(options) => status::run(options),
            Self::Expose(options) => expose::run(options),
            Self::Kubeconfig(options) => print_kubeconfig::run(options),
            Self::Advance(options) => advance::run(options),
            Self::Reset(options) => reset::run(options),
        }
    }
}
