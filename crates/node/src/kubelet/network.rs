//! Replaces the network process when it ends, and ends the sandboxes of the pods that were on its network.

use crate::net::Network;
use crate::pods::node_context::NodeContext;
use crate::pods::sandbox_network;
use crate::shim::Shim;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The first wait before another attempt to start it.
const FIRST_RETRY: Duration = Duration::from_millis(500);
/// The longest.
const LAST_RETRY: Duration = Duration::from_secs(30);

/// Waits for the end of the network process, again and again. While there is none, the node is not ready.
pub(super) async fn supervise(context: Arc<NodeContext>) {
    let Some(network) = context.network.clone() else { return };
    loop {
        network.gone().await;
        tracing::warn!("the network process of node {} ended, and is started again", context.node);
        context.network_down.send_replace(true);
        let mut wait = FIRST_RETRY;
        while let Err(error) = network.reopen(&context.program).await {
            tracing::warn!("failed to start the node's network again: {error}");
            context.clock.sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
        end_lost_sandboxes(&context.root, &network).await;
        context.network_down.send_replace(false);
    }
}

/// Ends the sandboxes that were attached to an earlier network: their interfaces went with it. Their pods are given new ones.
pub(super) async fn end_lost_sandboxes(root: &Path, network: &Network) {
    let instance = network.instance();
    let pods = std::fs::read_dir(root.join("pods")).into_iter().flatten().flatten();
    let lost = pods
        .map(|pod| pod.path())
        .filter(|folder| sandbox_network::read(folder).is_some_and(|attached| attached != instance));
    let end = async |folder: std::path::PathBuf| {
        if let Err(error) = Shim::end_in(&folder).await {
            tracing::warn!("failed to end a pod that lost its network: {error}");
        }
    };
    futures::future::join_all(lost.map(end)).await;
}
