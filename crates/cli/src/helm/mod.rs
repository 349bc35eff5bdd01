//! `windlass helm`: charts, without a cluster.

mod lint;
mod package;
mod show;
mod template;
mod values;

use clap::Subcommand;
use std::process::ExitCode;

/// Render, check, show and package Helm charts.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Render a chart's templates as manifests, in the order of installing
    Template(template::Options),
    /// Check that a chart can be read and rendered
    Lint(lint::Options),
    /// Show a chart's metadata, values, README or CRDs
    Show(show::Options),
    /// Package a chart as NAME-VERSION.tgz
    Package(package::Options),
}

impl Command {
    /// Runs the subcommand.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Template(options) => options.run(),
            Self::Lint(options) => options.run(),
            Self::Show(options) => options.run(),
            Self::Package(options) => options.run(),
        }
    }
}
