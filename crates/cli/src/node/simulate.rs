//! `windlass node simulate`: joins simulated nodes to a cluster until it is told to end, and takes them away again.

use crate::connect;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use windlass_clock::Clock;
use windlass_cluster::simulated_kubelet::{Options as Wanted, SimulatedKubelet, Stage};

/// The most nodes that one process can join: each has a pod CIDR.
const MOST: u16 = 500;

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass node simulate --kubeconfig ~/.kube/config
      a node `simulated`, which goes again with Ctrl-C
  windlass node simulate --kubeconfig kubeconfig --name worker --count 3 --label zone=a
      worker-1, worker-2 and worker-3, with a label
  windlass node simulate --kubeconfig kubeconfig --stages stages.yaml
      pods behave as the first stage says that fits them, for instance
        - selector: { matchLabels: { app: db } }
          says: { ready-after: 5s }
        - says: { start-after: 200ms }

What can be said of pods, there or in annotations `simulate.windlass.dev/...` of their own: start-after, ready-after,
exit-after, exit-code, stop-after, fail-image; with .CONTAINER after it, of one container.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The kubeconfig of the cluster to join
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,

    /// The context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// The node's name; several get a number as suffix
    #[arg(long, value_name = "NAME", default_value = "simulated")]
    name: String,

    /// The number of nodes
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST)))]
    count: u16,

    /// An additional label of the nodes; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    label: Vec<(String, String)>,

    /// The capacity of each node, such as cpu=8 or pods=110; repeatable [default: enough for thousands of pods]
    #[arg(long, value_name = "RESOURCE=AMOUNT", value_parser = pair)]
    capacity: Vec<(String, String)>,

    /// A file with the stages of pods, by their labels
    #[arg(long, value_name = "FILE")]
    stages: Option<PathBuf>,
}

pub(super) fn pair(text: &str) -> anyhow::Result<(String, String)> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => bail!("{text:?} has no name and value; it is written as name=value"),
    }
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let stages = match &options.stages {
        Some(path) => read(path)?,
        None => Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads that the nodes run on")?;
    runtime.block_on(simulate(options, stages))
}

fn read(path: &Path) -> anyhow::Result<Vec<Stage>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Stage::read(&text).with_context(|| format!("{} is not understood", path.display()))
}

async fn simulate(options: &Options, stages: Vec<Stage>) -> anyhow::Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let (client, _) = connect::to(Some(&options.kubeconfig), options.context.as_deref()).await?;
    let mut nodes = Vec::new();
    for number in 1..=options.count {
        let name =
            if options.count == 1 { options.name.clone() } else { format!("{}-{number}", options.name) };
        let mut wanted = Wanted::named(name).stages(stages.clone());
        for (key, value) in &options.label {
            wanted = wanted.label(key, value);
        }
        for (resource, amount) in &options.capacity {
            wanted = wanted.capacity(resource, amount);
        }
        match SimulatedKubelet::join(client.clone(), Clock::real(), wanted).await {
            Ok(node) => nodes.push(node),
            Err(error) => {
                // Those that joined before are not left behind.
                leave(nodes).await;
                return Err(error.into());
            }
        }
    }
    let names: Vec<&str> = nodes.iter().map(SimulatedKubelet::name).collect();
    println!("joined: {}; Ctrl-C removes them", names.join(", "));
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    // Told a second time, it does not wait for the cluster.
    tokio::select! {
        left = leave(nodes) => Ok(left),
        _ = interrupt.recv() => Ok(ExitCode::FAILURE),
        _ = terminate.recv() => Ok(ExitCode::FAILURE),
    }
}

/// Takes all nodes away, and says which could not be.
async fn leave(nodes: Vec<SimulatedKubelet>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for node in nodes {
        let name = node.name().to_owned();
        if let Err(error) = node.leave().await {
            eprintln!(
                "error: node {name} could not be removed: {error}; `kubectl delete node {name}` removes it"
            );
            code = ExitCode::FAILURE;
        }
    }
    code
}
