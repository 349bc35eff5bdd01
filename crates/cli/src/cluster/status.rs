//! `windlass cluster status`: the running clusters, their nodes and pods.

use super::find::Selection;
use super::kubeconfig;
use super::record::{self, Found};
use crate::output::Output;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_cluster::is_node_ready;

/// The longest that a cluster may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: Selection,

    /// All of your clusters that run without --data-dir
    #[arg(long, conflicts_with = "data_dir")]
    all: bool,

    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let found = match options.all {
        true => record::temporary(),
        false => options.selection.find_all()?,
    };
    let killed = if found.is_empty() { options.selection.killed() } else { Vec::new() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(async {
        let mut asked = Vec::new();
        for found in &found {
            asked.push(ask(found).await);
        }
        asked
    });
    let mut out = std::io::stdout();
    if options.output == Output::Json {
        let _ = writeln!(out, "{}", serde_json::to_string_pretty(&asked)?);
    } else if asked.is_empty() {
        match killed.first() {
            Some(folder) => {
                let _ = writeln!(
                    out,
                    "no cluster of yours runs, but pods of one that was killed do, in {0}; `windlass cluster down --data-dir {0}` ends them",
                    folder.display()
                );
            }
            None => {
                let _ = writeln!(
                    out,
                    "no cluster of yours runs; --data-dir selects one that was started with it"
                );
            }
        }
    } else {
        for one in &asked {
            let _ = writeln!(out, "{}", in_words(one));
        }
    }
    // As `systemctl status` does, so that scripts can ask.
    Ok(if found.is_empty() { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

async fn ask(found: &Found) -> Value {
    let mut answer = json!({
        "server": found.record.server,
        "folder": found.folder,
        "kubeconfig": found.record.kubeconfig,
        "pid": found.record.pid,
        "since": found.record.since,
        "detached": found.record.detached,
        "kept": found.record.kept,
    });
    match Clock::real().timeout(PATIENCE, count(found)).await {
        Ok(Ok((nodes, ready, pods, running))) => {
            answer["nodes"] = json!({ "all": nodes, "ready": ready });
            answer["pods"] = json!({ "all": pods, "running": running });
        }
        Ok(Err(error)) => answer["error"] = json!(format!("{error:#}")),
        Err(_) => answer["error"] = json!(format!("it does not answer within {PATIENCE:?}")),
    }
    answer
}

async fn count(found: &Found) -> anyhow::Result<(usize, usize, usize, usize)> {
    let file = Kubeconfig::read_from(&found.record.kubeconfig)?;
    let ours =
        KubeConfigOptions { context: Some(kubeconfig::NAME.to_owned()), ..KubeConfigOptions::default() };
    let client = kube::Client::try_from(kube::Config::from_custom_kubeconfig(file, &ours).await?)?;
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?.items;
    let pods = Api::<Pod>::all(client).list(&ListParams::default()).await?.items;
    let ready = nodes.iter().filter(|node| is_node_ready(node));
    let running = pods
        .iter()
        .filter(|pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running"));
    Ok((nodes.len(), ready.count(), pods.len(), running.count()))
}

fn in_words(one: &Value) -> String {
    let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let fares = match one.get("error") {
        Some(error) => format!("does not answer: {}", error.as_str().unwrap_or_default()),
        None => format!(
            "{} of {} nodes ready, {} of {} pods running",
            one["nodes"]["ready"], one["nodes"]["all"], one["pods"]["running"], one["pods"]["all"]
        ),
    };
    format!(
        "{} up since {}: {fares}\n  process {}, folder {}\n  kubeconfig {}",
        text("server"),
        text("since"),
        one["pid"],
        text("folder"),
        text("kubeconfig")
    )
}
