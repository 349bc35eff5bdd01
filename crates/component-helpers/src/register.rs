//! Registers a node: creates its Node, or adopts the one of its name.

use crate::node_status::{NodePressure, conditions, patch_params};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams, Patch, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::collections::BTreeMap;
use windlass_clock::Clock;

/// What a kubelet has to know of the cluster before it can register.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// The API server's version, which kubelets report as their own.
    pub version: String,
    /// The pod CIDRs of all nodes.
    pub pod_cidrs: Vec<String>,
    /// Whether there is a Node of this name already.
    pub exists: bool,
    /// Its pod CIDR, if it has one.
    pub own_pod_cidr: Option<String>,
}

impl Cluster {
    /// Reads what there is.
    ///
    /// # Errors
    /// When the API cannot be read.
    pub async fn read(client: &Client, node: &str) -> Result<Self, kube::Error> {
        let version = client.apiserver_version().await.map(|info| info.git_version).unwrap_or_default();
        let all = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?.items;
        let cidr = |node: &Node| node.spec.as_ref().and_then(|spec| spec.pod_cidr.clone());
        let own = all.iter().find(|known| known.name_any() == node);
        Ok(Self {
            version,
            exists: own.is_some(),
            own_pod_cidr: own.and_then(cidr),
            pod_cidrs: all.iter().filter_map(cidr).collect(),
        })
    }
}

/// What a kubelet registers.
#[derive(Debug, Clone, Default)]
pub struct Registration {
    /// The node's name.
    pub name: String,
    /// Labels, beside the well-known ones of hostname, operating system and architecture.
    pub labels: BTreeMap<String, String>,
    /// Annotations, beside the well-known ones.
    pub annotations: BTreeMap<String, String>,
    /// Taints that a new Node gets.
    pub taints: Vec<Taint>,
    /// The range of pod IPs.
    pub pod_cidr: String,
    /// Capacity, all of which is allocatable.
    pub capacity: BTreeMap<String, Quantity>,
    /// The node's addresses.
    pub addresses: Vec<NodeAddress>,
    /// The port of the kubelet's server, if it has one.
    pub kubelet_port: Option<u16>,
    /// Features that the kubelet declares.
    pub declared_features: Option<Vec<String>>,
    /// The machine and its software.
    pub node_info: NodeSystemInfo,
    /// Which pressure conditions are true.
    pub pressure: NodePressure,
}

/// Creates the Node, or updates labels, annotations and status of the one that exists. Returns its UID.
///
/// # Errors
/// When the API rejects a write or cannot be reached.
pub async fn register(
    client: &Client,
    clock: &Clock,
    cluster: &Cluster,
    registration: Registration,
) -> Result<String, kube::Error> {
    let nodes = Api::<Node>::all(client.clone());
    let name = registration.name.clone();
    let wanted = node(registration, clock.now());
    if !cluster.exists {
        match nodes.create(&PostParams::default(), &wanted).await {
            Ok(created) => return Ok(created.metadata.uid.unwrap_or_default()),
            // It was created meanwhile: it is adopted.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error),
        }
    }
    let metadata = json!({ "metadata": { "labels": wanted.metadata.labels, "annotations": wanted.metadata.annotations } });
    let adopted = nodes.patch(&name, &patch_params(), &Patch::Merge(metadata)).await?;
    let status = json!({ "status": wanted.status });
    nodes.patch_status(&name, &patch_params(), &Patch::Strategic(status)).await?;
    Ok(adopted.metadata.uid.unwrap_or_default())
}

/// The architecture, as container images name it.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn node(registration: Registration, now: Timestamp) -> Node {
    let architecture = architecture();
    let mut labels: BTreeMap<String, String> = [
        ("kubernetes.io/hostname", registration.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", architecture),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect();
    labels.extend(registration.labels);
    let mut annotations = registration.annotations;
    annotations
        .insert("volumes.kubernetes.io/controller-managed-attach-detach".to_owned(), "true".to_owned());
    let metadata = ObjectMeta {
        name: Some(registration.name.clone()),
        labels: Some(labels),
        annotations: Some(annotations),
        ..ObjectMeta::default()
    };
    let spec = NodeSpec {
        pod_cidr: Some(registration.pod_cidr.clone()),
        pod_cidrs: Some(vec![registration.pod_cidr]),
        taints: Some(registration.taints).filter(|taints| !taints.is_empty()),
        provider_id: Some(format!("windlass://{}", registration.name)),
        ..NodeSpec::default()
    };
    let status = NodeStatus {
        capacity: Some(registration.capacity.clone()),
        allocatable: Some(registration.capacity),
        addresses: Some(registration.addresses),
        daemon_endpoints: registration.kubelet_port.map(|port| NodeDaemonEndpoints {
            kubelet_endpoint: Some(DaemonEndpoint { port: i32::from(port) }),
        }),
        declared_features: registration.declared_features,
        node_info: Some(registration.node_info),
        conditions: Some(conditions(None, registration.pressure, now)),
        ..NodeStatus::default()
    };
    Node { metadata, spec: Some(spec), status: Some(status) }
}
