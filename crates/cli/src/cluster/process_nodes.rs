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

/// Ends what the nodes of a cluster that was killed left running.
pub(super) fn end_left(home: &Path) {
    let nodes = folders(home);
    let end = async move || {
        for node in nodes {
            windlass_node::kill_processes(&node).await;
        }
    };
    if beside(end).is_none() {
        tracing::warn!(folder = %home.display(), "what a killed cluster left running could not be ended");
    }
}

/// Whether processes of a cluster's nodes run. Those of a cluster that was killed do.
pub(super) fn has_left(home: &Path) -> bool {
    let nodes = folders(home);
    let look = async move || {
        for node in nodes {
            if windlass_node::has_processes(&node).await {
                return true;
            }
        }
        false
    };
    beside(look) == Some(true)
}

/// The directories of a cluster's nodes.
fn folders(home: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    ours.map(|entry| entry.path()).collect()
}

/// Waits on a thread of its own, since the caller may be in a runtime. None where there is no such thread or runtime.
fn beside<T: Send + 'static>(what: impl AsyncFnOnce() -> T + Send + 'static) -> Option<T> {
    let done = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        Some(runtime.block_on(what()))
    });
    done.join().ok().flatten()
}
