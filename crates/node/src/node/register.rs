//! The node as the API first hears of it.

use super::machine;
use crate::net::Range;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeSpec, NodeStatus, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams, Patch, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use windlass_clock::Clock;
use windlass_cluster::local_volumes::MAKES_VOLUMES;
use windlass_cluster::node::heartbeat::{Pressures, conditions, params};

/// What a node says of itself.
#[derive(Debug, Clone)]
pub(super) struct Saying {
    pub(super) name: String,
    pub(super) address: String,
    /// Where it is asked for logs and the like.
    pub(super) port: Option<u16>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    pub(super) capacity: BTreeMap<String, Quantity>,
    /// What the machine is short of.
    pub(super) pressures: Pressures,
}

/// What was found when the node joined.
#[derive(Debug, Clone)]
pub(super) struct Registered {
    pub(super) uid: String,
    pub(super) pods: Range,
}

/// The range of pods' addresses of the node of this number.
fn range(number: u8) -> Range {
    Range::new(Ipv4Addr::new(10, 244, number, 0), 24).expect("24 is below 32")
}

/// The range that a node has, or the first that is nobody's; without any left, they are shared.
fn choose(own: Option<&str>, taken: &[String]) -> Range {
    let own = own.and_then(|own| own.parse().ok());
    own.unwrap_or_else(|| {
        (0..=u8::MAX).map(range).find(|range| !taken.contains(&range.to_string())).unwrap_or_else(|| range(0))
    })
}

/// Makes the Node, or takes up the one that is there.
pub(super) async fn register(
    client: &Client,
    clock: &Clock,
    saying: &Saying,
) -> Result<Registered, kube::Error> {
    let nodes = Api::<Node>::all(client.clone());
    let version = client.apiserver_version().await.map(|info| info.git_version).unwrap_or_default();
    let all = nodes.list(&ListParams::default()).await?.items;
    let cidr = |node: &Node| node.spec.as_ref().and_then(|spec| spec.pod_cidr.clone());
    let own = all.iter().find(|node| node.name_any() == saying.name);
    let taken: Vec<String> = all.iter().filter_map(cidr).collect();
    let pods = choose(own.and_then(cidr).as_deref(), &taken);
    let wanted = node(saying, pods, &version, clock.now());
    if own.is_none() {
        match nodes.create(&PostParams::default(), &wanted).await {
            Ok(made) => return Ok(Registered { uid: made.metadata.uid.unwrap_or_default(), pods }),
            // It was made meanwhile: it is taken up.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error),
        }
    }
    let meta = json!({ "metadata": { "labels": wanted.metadata.labels, "annotations": wanted.metadata.annotations } });
    let taken_up = nodes.patch(&saying.name, &params(), &Patch::Merge(meta)).await?;
    let status = json!({ "status": wanted.status });
    nodes.patch_status(&saying.name, &params(), &Patch::Strategic(status)).await?;
    Ok(Registered { uid: taken_up.metadata.uid.unwrap_or_default(), pods })
}

fn node(saying: &Saying, pods: Range, version: &str, now: Timestamp) -> Node {
    let architecture = machine::architecture();
    let mut labels: BTreeMap<String, String> = [
        ("kubernetes.io/hostname", saying.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", architecture),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect();
    labels.extend(saying.labels.clone());
    let managed = "volumes.kubernetes.io/controller-managed-attach-detach".to_owned();
    let metadata = ObjectMeta {
        name: Some(saying.name.clone()),
        labels: Some(labels),
        annotations: Some([managed, MAKES_VOLUMES.to_owned()].map(|said| (said, "true".to_owned())).into()),
        ..ObjectMeta::default()
    };
    let spec = NodeSpec {
        pod_cidr: Some(pods.to_string()),
        pod_cidrs: Some(vec![pods.to_string()]),
        taints: (!saying.taints.is_empty()).then(|| saying.taints.clone()),
        provider_id: Some(format!("windlass://{}", saying.name)),
        ..NodeSpec::default()
    };
    let address =
        |type_: &str, address: &str| NodeAddress { type_: type_.to_owned(), address: address.to_owned() };
    let status = NodeStatus {
        capacity: Some(saying.capacity.clone()),
        allocatable: Some(saying.capacity.clone()),
        // No Hostname: an API server would try it first, and nobody resolves a name that only this node has.
        addresses: Some(vec![address("InternalIP", &saying.address)]),
        daemon_endpoints: saying.port.map(|port| NodeDaemonEndpoints {
            kubelet_endpoint: Some(DaemonEndpoint { port: i32::from(port) }),
        }),
        declared_features: Some(vec![crate::server::WEBSOCKETS.to_owned()]),
        node_info: Some(machine::info(version)),
        conditions: Some(conditions(None, saying.pressures, now)),
        ..NodeStatus::default()
    };
    Node { metadata, spec: Some(spec), status: Some(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_a_range_of_its_own() {
        let taken = ["10.244.0.0/24".to_owned(), "10.128.0.0/18".to_owned()];
        assert_eq!(choose(None, &taken).to_string(), "10.244.1.0/24");
        assert_eq!(choose(Some("10.9.0.0/24"), &taken).to_string(), "10.9.0.0/24", "somebody gave it one");
        assert_eq!(choose(Some("nonsense"), &[]).to_string(), "10.244.0.0/24");
    }
}
