//! The `windlass` command. Each subcommand has a file of its own; this one only tells them apart.

mod apply;
mod audit_options;
mod cargo_project;
mod child;
mod cluster;
mod completion;
mod connect;
mod create;
mod demo;
mod doctor;
mod edit;
mod envtest;
mod generate;
mod helm;
mod init;
mod library;
mod limits;
mod migrate;
mod node;
mod operator;
mod output;
mod plugin;
mod project;
mod rbac;
mod samples;
mod scaffold;
mod server_config;
mod signals;
mod version;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;
use windlass_clock::Clock;

/// A server makes and drops many small things on every request; the system's allocator takes longer, and gives less back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the exit codes mean; `docs/commands.md` has the same list.
const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    failure, or a failed check (generate --check, doctor)
  2    invalid options or names
  3    no cluster is running (cluster status)
  130  interrupted before completion

describe, capture, plan and why exit with the code of the operator that they run.";

/// An operator platform for Kubernetes, with an embedded Kubernetes for development and tests.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
struct Windlass {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Initialize a project for an operator
    Init(init::Options),
    /// Add an API, a controller or a webhook to a project
    #[command(subcommand)]
    Create(create::Command),
    /// Change the settings of a project
    Edit(edit::Options),
    /// Run an embedded Kubernetes cluster on this machine
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Join nodes to a cluster
    #[command(subcommand)]
    Node(node::Command),
    /// Stand in for kube-apiserver and etcd in the tests of operators that use envtest
    #[command(subcommand)]
    Envtest(envtest::Command),
    /// Make roles from what was done
    #[command(subcommand)]
    Rbac(rbac::Command),
    /// Check whether this machine can build operators and run pods as processes, and what the current cluster allows
    Doctor(doctor::Options),
    /// Print what an operator watches and writes, its CRDs and its RBAC rules, as JSON
    Describe(operator::Options),
    /// Save what an operator observes for an object, as JSON: `capture KIND NAME`
    Capture(operator::Options),
    /// Show what the next reconcile of an object would do: `plan KIND NAME`, or a capture on standard input
    Plan(operator::Options),
    /// Show what an object waits for, since when, and when it is reconciled next: `why KIND NAME`
    Why(operator::Options),
    /// Generate an operator's manifests: CRDs, RBAC, Deployment, samples
    Generate(generate::Options),
    /// Install an operator's CRDs into a cluster
    Install(project::install::Install),
    /// Remove an operator's CRDs from a cluster, and with --force every custom resource of them
    Uninstall(project::install::Uninstall),
    /// Build an operator and run it on this machine
    #[command(after_help = project::run::EXAMPLES)]
    Run(project::run::Options),
    /// Deploy an operator to a cluster: CRDs, RBAC, Deployment
    Deploy(project::deploy::Deploy),
    /// Remove an operator from a cluster; its CRDs and custom resources stay
    Undeploy(project::deploy::Undeploy),
    /// Write the stored objects of a custom kind anew, in its storage version
    #[command(after_help = migrate::EXAMPLES)]
    Migrate(migrate::Options),
    /// Build an OCI image archive of an operator, without Docker
    #[command(after_help = project::image::EXAMPLES)]
    Image(project::image::Options),
    /// Run a demo in about a minute: operators with real memcached and PostgreSQL servers on an embedded cluster
    #[command(after_help = demo::EXAMPLES)]
    Demo(demo::Options),
    /// Render, check, show and package Helm charts
    #[command(subcommand)]
    Helm(helm::Command),
    /// Print a shell completion script
    Completion(completion::Options),
    /// Print the version of windlass, and of the Kubernetes API that it serves
    Version,
    /// A plug-in: a program `windlass-NAME` on PATH
    #[command(external_subcommand)]
    Plugin(Vec<OsString>),
}

fn main() -> ExitCode {
    // What a node starts is this very program; it enters namespaces, which only one with a single thread can.
    if let Some(code) = windlass_node::run_hidden_subcommand(std::env::args_os().skip(1)) {
        return code;
    }
    if let Some(code) = demo::operator::hidden() {
        return code;
    }
    if let Some(done) = envtest::stand_in() {
        return exit_code(done);
    }
    let begun = Clock::real().moment();
    let asked = Windlass::parse();
    listen_to_log_variable();
    let done = match asked.command {
        Command::Init(options) => options.run(),
        Command::Create(command) => command.run(),
        Command::Edit(options) => options.run(),
        Command::Cluster(command) => command.run(begun),
        Command::Node(command) => command.run(),
        Command::Envtest(command) => command.run(),
        Command::Rbac(command) => command.run(),
        Command::Doctor(options) => doctor::run(&options),
        Command::Describe(options) => operator::ask("describe", &options),
        Command::Capture(options) => operator::ask("capture", &options),
        Command::Plan(options) => operator::ask("plan", &options),
        Command::Why(options) => operator::ask("why", &options),
        Command::Generate(options) => options.run(),
        Command::Install(options) => project::block_on(options.run()),
        Command::Uninstall(options) => project::block_on(options.run()),
        Command::Run(options) => project::block_on(options.run()),
        Command::Deploy(options) => project::block_on(options.run()),
        Command::Undeploy(options) => project::block_on(options.run()),
        Command::Migrate(options) => project::block_on(options.run()),
        Command::Image(options) => project::block_on(options.run()),
        Command::Demo(options) => demo::run(&options),
        Command::Helm(command) => command.run(),
        Command::Completion(options) => options.run::<Windlass>(),
        Command::Version => version::run(),
        Command::Plugin(words) => plugin::run(&words),
    };
    exit_code(done)
}

fn exit_code(done: anyhow::Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) => {
            // The whole chain in one line: what happened, then why.
            eprintln!("error: {error:#}");
            if error.is::<scaffold::InvalidOptions>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// `WINDLASS_LOG=debug`, or by part: `WINDLASS_LOG=windlass_apiserver=debug`. Warnings are always shown.
fn listen_to_log_variable() {
    let wanted = std::env::var("WINDLASS_LOG").unwrap_or_default();
    let targets = match wanted.as_str() {
        "" => Ok(Targets::new().with_default(tracing::Level::WARN)),
        wanted => wanted.parse(),
    };
    let (targets, wrong) = match targets {
        Ok(targets) => (targets, None),
        Err(error) => (Targets::new().with_default(tracing::Level::WARN), Some(error)),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
    if let Some(error) = wrong {
        tracing::warn!(%error, "WINDLASS_LOG is not understood; it is a level, or part=level pairs with commas");
    }
}
