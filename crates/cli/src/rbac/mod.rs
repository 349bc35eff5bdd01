//! `windlass rbac`: roles, made from what was done.

mod from_audit;
mod least_rules;

use clap::Subcommand;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the least Roles that would have allowed what a user did, from the audit log of any Kubernetes
    #[command(after_help = from_audit::EXAMPLES)]
    FromAudit(from_audit::Options),
}

impl Command {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::FromAudit(options) => from_audit::run(options),
        }
    }
}
