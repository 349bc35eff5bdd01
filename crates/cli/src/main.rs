//! The `windlass` command. Each subcommand has a file of its own; this one only tells them apart.

mod apply;
mod child;
mod cluster;
mod completion;
mod connect;
mod create;
mod demo;
mod doctor;
mod edit;
mod generate;
mod init;
mod limits;
mod node;
mod operator;
mod output;
mod project;
mod scaffold;
mod signals;
mod version;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;
use windlass_clock::Clock;

/// A server makes and drops many small things on every request; the system's allocator takes longer, and gives less back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What every command's code means; `docs/commands.md` says the same.
const EXIT_CODES: &str = "\
Exit codes:
  0    it is done
  1    it could not be done, or what was asked about is not so (generate --check, doctor)
  2    options or names that cannot be
  3    no cluster runs (cluster status)
  130  it was interrupted before it was done

describe, capture, plan and why end with the code of the operator that they ask.";

/// An operator platform for Kubernetes, and a Kubernetes of one's own.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
struct Windlass {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Begin an operator: a project with its tests, in this folder
    Init(init::Options),
    /// Add a kind or a controller to an operator's project
    #[command(subcommand)]
    Create(create::Command),
    /// Change the settings of an operator's project
    Edit(edit::Options),
    /// Run a Kubernetes of your own on this machine
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Join nodes to a cluster
    #[command(subcommand)]
    Node(node::Command),
    /// Say whether this machine can build operators and run pods as processes, what the current cluster allows, and what to change
    Doctor(doctor::Options),
    /// Say what an operator watches, writes and needs, as JSON
    Describe(operator::Options),
    /// Save what an operator's decision about an object would see: `capture KIND NAME`
    Capture(operator::Options),
    /// Show what an operator would do: `plan KIND NAME`, or given a capture on standard input
    Plan(operator::Options),
    /// Say what an object waits for, since when, and when it is looked at again: `why KIND NAME`
    Why(operator::Options),
    /// Write an operator's manifests: its kinds, its permissions, its Deployment
    Generate(generate::Options),
    /// Give a cluster the kinds of an operator
    Install(project::install::Install),
    /// Take the kinds of an operator from a cluster, with all objects of them
    Uninstall(project::install::Uninstall),
    /// Build an operator and run it here
    #[command(after_help = project::run::EXAMPLES)]
    Run(project::run::Options),
    /// Run an operator in a cluster: its kinds, its permissions, its Deployment
    Deploy(project::deploy::Deploy),
    /// Take an operator from a cluster; its kinds and their objects stay
    Undeploy(project::deploy::Undeploy),
    /// Make an OCI image archive of an operator, without Docker
    #[command(after_help = project::image::EXAMPLES)]
    Image(project::image::Options),
    /// Show what Windlass does, in under a minute: an operator and real servers on a cluster of their own
    #[command(after_help = demo::EXAMPLES)]
    Demo(demo::Options),
    /// Print a script by which a shell completes commands and options
    Completion(completion::Options),
    /// Show the version of windlass, and of the Kubernetes that it speaks
    Version,
}

fn main() -> ExitCode {
    // What a node starts is this very program; it enters namespaces, which only one with a single thread can.
    if let Some(code) = windlass_node::hidden(std::env::args_os().skip(1)) {
        return code;
    }
    if let Some(code) = demo::operator::hidden() {
        return code;
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
        Command::Image(options) => project::block_on(options.run()),
        Command::Demo(options) => demo::run(&options),
        Command::Completion(options) => options.run::<Windlass>(),
        Command::Version => version::run(),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // The whole chain in one line: what happened, then why.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
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
