//! The Node of a simulated kubelet.

use super::addresses::Range;
use super::informers::SharedInformers;
use super::options::Options;
use k8s_openapi::api::core::v1::{NodeAddress, NodeSystemInfo};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Client;
use windlass_clock::Clock;
use windlass_component_helpers::register::{Cluster, Registration, architecture, register as register_node};

/// The registered node.
#[derive(Debug, Clone)]
pub(super) struct Registered {
    pub(super) range: Range,
    pub(super) uid: String,
}

/// Registers the node, with its old pod CIDR or one that is free.
pub(super) async fn register(
    client: &Client,
    clock: &Clock,
    options: &Options,
    informers: &SharedInformers,
) -> Result<Registered, kube::Error> {
    let cluster = Cluster::read(client, &options.name).await?;
    let range = cluster
        .own_pod_cidr
        .as_deref()
        .and_then(Range::parse)
        .unwrap_or_else(|| informers.free_range(cluster.pod_cidrs.iter().map(String::as_str)));
    let uid = register_node(client, clock, &cluster, registration(options, range, &cluster.version)).await?;
    Ok(Registered { range, uid })
}

fn registration(options: &Options, range: Range, version: &str) -> Registration {
    let address = |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
    Registration {
        name: options.name.clone(),
        labels: options.labels.clone(),
        taints: options.taints.clone(),
        pod_cidr: range.cidr(),
        capacity: options
            .capacity
            .iter()
            .map(|(name, amount)| (name.clone(), Quantity(amount.clone())))
            .collect(),
        addresses: vec![address("InternalIP", range.host()), address("Hostname", options.name.clone())],
        kubelet_port: Some(10250),
        node_info: NodeSystemInfo {
            architecture: architecture().to_owned(),
            operating_system: "linux".to_owned(),
            os_image: "Windlass simulated node".to_owned(),
            kernel_version: "simulated".to_owned(),
            container_runtime_version: format!("simulated://{}", env!("CARGO_PKG_VERSION")),
            kubelet_version: version.to_owned(),
            ..NodeSystemInfo::default()
        },
        ..Registration::default()
    }
}
