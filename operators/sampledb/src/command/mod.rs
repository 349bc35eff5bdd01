//! `windlass-sampledb`: what people ask of a database beside `kubectl`.

mod backup;
mod failover;
mod fence;
mod hibernate;
mod kubectl;
mod monitoring;
mod report;
mod restore;
mod status;
mod switchover;
mod waiting;

use crate::api_error::said;
use clap::{Args, Parser, Subcommand};
use kube::{Api, Client};
use std::process::ExitCode;
use waiting::Waiting;

/// Look at SampleDBs, change who is primary, back up and restore
#[derive(Debug, Parser)]
#[command(name = "windlass-sampledb", version)]
struct Command {
    /// The namespace; by default that of the kubeconfig
    #[arg(short, long, global = true)]
    namespace: Option<String>,
    #[command(subcommand)]
    subcommand: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Show who is primary, how its replicas are, and what is awaited
    Status(Name),
    /// Open psql on the primary, as the superuser
    Psql(Psql),
    /// Have another instance become primary, without losing a commit
    Switchover(switchover::Options),
    /// Elect a primary of the instances that are left, where others that are lost would be waited for
    Failover(failover::Options),
    /// Keep the server of an instance stopped
    Fence(fence::Options),
    /// Take a backup now
    Backup(backup::Options),
    /// Make a new database of a backup
    Restore(restore::Options),
    /// Stop the servers, and keep the volumes
    Hibernate(hibernate::Options),
    /// Show the log of an instance, by default of the primary
    Logs(Logs),
    /// Collect what helps to understand what happened: objects, events and logs, and no Secret
    Report(report::Options),
    /// Print alert rules, what to scrape, and a Grafana dashboard, as manifests for `kubectl apply`
    Monitoring(monitoring::Options),
}

/// A database.
#[derive(Debug, Args)]
pub(super) struct Name {
    /// The name of the SampleDB
    pub(super) name: String,
}

#[derive(Debug, Args)]
struct Psql {
    #[command(flatten)]
    database: Name,
    /// Arguments of psql
    #[arg(last = true)]
    arguments: Vec<String>,
}

#[derive(Debug, Args)]
struct Logs {
    #[command(flatten)]
    database: Name,
    /// The instance
    instance: Option<String>,
    /// Follow the log
    #[arg(short, long)]
    follow: bool,
}

/// Why a command failed, as a sentence.
pub(super) type Failure = String;

/// Where a command works.
pub(super) struct Place {
    client: Client,
    namespace: String,
}

impl Place {
    async fn of(namespace: Option<String>) -> Result<Self, Failure> {
        let config = kube::Config::infer().await.map_err(|error| format!("no cluster: {error}"))?;
        let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|error| format!("no cluster: {error}"))?;
        Ok(Self { client, namespace })
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// Runs the command line.
pub async fn run() -> ExitCode {
    let command = Command::parse();
    match carry_out(command).await {
        Ok(code) => code,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

async fn carry_out(command: Command) -> Result<ExitCode, Failure> {
    if let Subcommands::Monitoring(options) = &command.subcommand {
        return monitoring::run(options);
    }
    let place = Place::of(command.namespace).await?;
    match command.subcommand {
        Subcommands::Status(database) => status::run(&place, &database.name).await,
        Subcommands::Psql(options) => kubectl::psql(&place, &options.database.name, &options.arguments).await,
        Subcommands::Switchover(options) => switchover::run(&place, &options).await,
        Subcommands::Failover(options) => failover::run(&place, &options).await,
        Subcommands::Fence(options) => fence::run(&place, &options).await,
        Subcommands::Backup(options) => backup::run(&place, &options).await,
        Subcommands::Restore(options) => restore::run(&place, &options).await,
        Subcommands::Hibernate(options) => hibernate::run(&place, &options).await,
        Subcommands::Monitoring(options) => monitoring::run(&options),
        Subcommands::Report(options) => report::run(&place, &options).await,
        Subcommands::Logs(options) => {
            kubectl::logs(&place, &options.database.name, options.instance, options.follow).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn every_subcommand_can_be_parsed() {
        Command::command().debug_assert();
    }
}
