//! The nodes of a cluster that run pods as processes of this machine.

use anyhow::Context;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use windlass_apiserver::{Api, Credentials, Dial};
use windlass_clock::Clock;
use windlass_cluster::identities;
use windlass_node::Program;
use windlass_node::net::Network;
use windlass_node::{Clients, Kubelet, Options};

/// How the names of nodes begin, and of their folders.
const PREFIX: &str = "process-";

/// Joins `count` nodes, each with a folder in that of the cluster.
pub(super) async fn join(
    count: usize,
    api: &Api,
    credentials: &Credentials,
    home: &Path,
    server: SocketAddr,
) -> anyhow::Result<Vec<Kubelet>> {
    let mut nodes = Vec::new();
    for number in 1..=count {
        let name = format!("{PREFIX}{number}");
        let clients = Clients {
            kubelet: identities::kubelet(api, &name),
            proxy: identities::kube_proxy(api),
            provisioner: identities::volume_provisioner(api),
        };
        let root = std::path::absolute(home.join(&name)).context("cannot use the cluster's folder")?;
        let options = Options {
            name,
            root: root.clone(),
            program: Program::current().context("cannot find this program")?,
            api: Some(server.to_string()),
            labels: Default::default(),
            taints: Vec::new(),
            client_ca: credentials.ca_certificate().to_owned(),
            images: crate::node::catalogue(&root),
            eviction: Default::default(),
        };
        // Programs know no time but the machine's.
        match Kubelet::join(clients, Clock::real(), options).await {
            Ok(node) => {
                let network = node.network().cloned();
                network.into_iter().for_each(|network| api.dial_with(Arc::new(Pods(network))));
                nodes.push(node);
            }
            Err(error) => {
                end(nodes, false).await;
                return Err(error.into());
            }
        }
    }
    Ok(nodes)
}

/// The way to a node's pods, which are in a network of their own.
struct Pods(Network);

impl Dial for Pods {
    fn connect(&self, to: SocketAddr) -> Option<BoxFuture<'_, io::Result<TcpStream>>> {
        let SocketAddr::V4(to) = to else { return None };
        let leads = self.0.settings().pods.contains(*to.ip());
        leads.then(|| async move { self.0.connect(to).await.map_err(io::Error::other) }.boxed())
    }
}

/// Ends nodes; with their pods, unless the cluster comes back.
pub(super) async fn end(nodes: Vec<Kubelet>, kept: bool) {
    for node in nodes {
        if kept {
            // As a machine that is switched off: what its pods wrote is there when it comes back.
            node.shut_down().await;
        } else if let Err(error) = node.leave().await {
            tracing::warn!("a node did not end well: {error}");
        }
    }
}

/// Ends what the nodes of a cluster that was killed left running. On a thread of its own: it waits.
pub(super) fn end_left(home: &Path) {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let nodes: Vec<PathBuf> = ours.map(|entry| entry.path()).collect();
    if nodes.is_empty() {
        return;
    }
    let ended = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            for node in nodes {
                windlass_node::kill_processes(&node).await;
            }
        });
        std::io::Result::Ok(())
    });
    if !matches!(ended.join(), Ok(Ok(()))) {
        tracing::warn!(folder = %home.display(), "what a killed cluster left running could not be ended");
    }
}
