//! The Node of the kubelet.

use super::machine;
use crate::net::Cidr;
use k8s_openapi::api::core::v1::{NodeAddress, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Client;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use windlass_clock::Clock;
use windlass_component_helpers::local_volumes::PROVISIONS_VOLUMES;
use windlass_component_helpers::node_status::NodePressure;
use windlass_component_helpers::register::{Cluster, Registration, register as register_node};

/// What the Node is made from.
#[derive(Debug, Clone)]
pub(super) struct NodeOptions {
    pub(super) name: String,
    pub(super) address: String,
    /// The port of the kubelet's server.
    pub(super) port: Option<u16>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    pub(super) capacity: BTreeMap<String, Quantity>,
    pub(super) pressure: NodePressure,
}

/// The registered node.
#[derive(Debug, Clone)]
pub(super) struct Registered {
    pub(super) uid: String,
    pub(super) pods: Cidr,
}

/// The pod CIDR of the node of this number.
fn pod_cidr(number: u8) -> Cidr {
    Cidr::new(Ipv4Addr::new(10, 244, number, 0), 24).expect("24 is below 32")
}

/// The pod CIDR that a node has, or the first that is not taken; when all are, they are shared.
fn choose(own: Option<&str>, taken: &[String]) -> Cidr {
    let own = own.and_then(|own| own.parse().ok());
    own.unwrap_or_else(|| {
        let free = (0..=u8::MAX).map(pod_cidr).find(|cidr| !taken.contains(&cidr.to_string()));
        free.unwrap_or_else(|| pod_cidr(0))
    })
}

/// Registers the node.
pub(super) async fn register(
    client: &Client,
    clock: &Clock,
    node: NodeOptions,
) -> Result<Registered, kube::Error> {
    let cluster = Cluster::read(client, &node.name).await?;
    let pods = choose(cluster.own_pod_cidr.as_deref(), &cluster.pod_cidrs);
    let registration = Registration {
        name: node.name,
        labels: node.labels,
        annotations: [(PROVISIONS_VOLUMES.to_owned(), "true".to_owned())].into(),
        taints: node.taints,
        pod_cidr: pods.to_string(),
        capacity: node.capacity,
        // No Hostname: an API server would try it first, and nobody resolves a name that only this node has.
        addresses: vec![NodeAddress { type_: "InternalIP".to_owned(), address: node.address }],
        kubelet_port: node.port,
        declared_features: Some(vec![crate::server::WEBSOCKETS.to_owned()]),
        node_info: machine::info(&cluster.version),
        pressure: node.pressure,
    };
    let uid = register_node(client, clock, &cluster, registration).await?;
    Ok(Registered { uid, pods })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_a_pod_cidr_of_its_own() {
        let taken = ["10.244.0.0/24".to_owned(), "10.128.0.0/18".to_owned()];
        assert_eq!(choose(None, &taken).to_string(), "10.244.1.0/24");
        assert_eq!(choose(Some("10.9.0.0/24"), &taken).to_string(), "10.9.0.0/24", "it was assigned one");
        assert_eq!(choose(Some("nonsense"), &[]).to_string(), "10.244.0.0/24");
    }
}
