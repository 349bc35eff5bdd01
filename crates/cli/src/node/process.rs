//! `windlass node process`: joins a node to a cluster that runs pods as processes of this machine.

use super::simulate;
use crate::{connect, limits};
use anyhow::Context;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, Config};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use windlass_clock::Clock;
use windlass_node::Program;
use windlass_node::{EvictionConfig, Kubelet, Options as Wanted};

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass node process --kubeconfig ~/.kube/config
      a node `process`; Ctrl-C ends its pods and takes it away
  windlass node process --kubeconfig kubeconfig --name worker --root ./worker --keep
      the node goes with Ctrl-C, and its pods stay until it is back

Images are programs of this machine (busybox, memcached, nginx, postgres, redis), recipes of your own in
~/.config/windlass/recipes.yaml, or archives in ~/.config/windlass/images.
It works for root, and for other users where user namespaces are allowed.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The kubeconfig of the cluster to join
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,

    /// The context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// The node's name
    #[arg(long, value_name = "NAME", default_value = "process")]
    name: String,

    /// The node's folder, to find its pods again after a restart [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Leave the pods running on exit, for the next node of this name and folder
    #[arg(long, requires = "root")]
    keep: bool,

    /// Hard eviction thresholds, as the kubelet's --eviction-hard; '' for none
    #[arg(
        long,
        value_name = "THRESHOLDS",
        long_help = "When the machine is short of something, and pods have to go for it, as a kubelet is told it; '' for never. \
            Without it: memory.available<100Mi,nodefs.available<1Gi,nodefs.inodesFree<5%"
    )]
    eviction_hard: Option<EvictionConfig>,

    /// An additional label of the node; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = simulate::pair)]
    label: Vec<(String, String)>,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    limits::raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads that the node runs on")?;
    runtime.block_on(process(options))
}

async fn process(options: &Options) -> anyhow::Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let (client, config) = connect::to(Some(&options.kubeconfig), options.context.as_deref()).await?;
    let temporary = match options.root {
        Some(_) => None,
        None => Some(
            tempfile::Builder::new().prefix("windlass-node-").tempdir().context("cannot make a folder")?,
        ),
    };
    let root = match (&options.root, &temporary) {
        (Some(root), _) => std::path::absolute(root).context("cannot use the folder")?,
        (None, Some(folder)) => folder.path().join("node"),
        (None, None) => unreachable!("one of them is there"),
    };
    let wanted = Wanted {
        name: options.name.clone(),
        root: root.clone(),
        program: Program::current().context("cannot find this program")?,
        api: address(&config),
        labels: options.label.iter().cloned().collect(),
        taints: Vec::new(),
        client_ca: client_authority(&client).await,
        images: super::catalogue(&root),
        eviction: options.eviction_hard.clone().unwrap_or_default(),
    };
    let node = Kubelet::join(client, Clock::real(), wanted).await?;
    if let Some(folder) = &temporary {
        // Those that pods run as must be able to pass.
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    }
    let end =
        if options.keep { "ends it, and its pods stay" } else { "ends its pods and takes it away again" };
    println!("joined: {}; Ctrl-C {end}", node.name());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    if options.keep {
        return Ok(ExitCode::SUCCESS);
    }
    // Told a second time, it does not wait.
    tokio::select! {
        left = node.leave() => left.context("the node is still in the cluster")?,
        _ = interrupt.recv() => return Ok(ExitCode::FAILURE),
        _ = terminate.recv() => return Ok(ExitCode::FAILURE),
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the API is, as `host:port`.
fn address(config: &Config) -> Option<String> {
    let host = config.cluster_url.host()?;
    let port = config.cluster_url.port_u16().unwrap_or(443);
    Some(format!("{host}:{port}"))
}

/// Whose clients the cluster believes, as it tells everybody; without that, tokens alone are believed.
async fn client_authority(client: &Client) -> String {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let told = maps.get_opt("extension-apiserver-authentication").await.ok().flatten();
    told.and_then(|told| told.data?.remove("client-ca-file")).unwrap_or_default()
}
