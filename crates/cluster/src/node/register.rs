//! The node as the API first hears of it; `heartbeat` is what it says from then on.

use super::addresses::Range;
use super::heartbeat::{Pressures, conditions, params};
use super::options::Options;
use super::rack::Rack;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeSpec, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams, Patch, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass_clock::Clock;

/// What was found when the node joined.
#[derive(Debug, Clone)]
pub(super) struct Registered {
    pub(super) range: Range,
    pub(super) uid: String,
}

/// Makes the Node, or takes up the one that is there.
pub(super) async fn register(
    client: &Client,
    clock: &Clock,
    options: &Options,
    rack: &Rack,
) -> Result<Registered, kube::Error> {
    let nodes = Api::<Node>::all(client.clone());
    let version = client.apiserver_version().await.map(|info| info.git_version).unwrap_or_default();
    let there = nodes.list_metadata(&ListParams::default().limit(1)).await?;
    let all =
        if there.items.is_empty() { Vec::new() } else { nodes.list(&ListParams::default()).await?.items };
    let cidr = |node: &Node| node.spec.as_ref().and_then(|spec| spec.pod_cidr.clone());
    let own = all.iter().find(|node| node.name_any() == options.name);
    let taken: Vec<String> = all.iter().filter_map(cidr).collect();
    let range = own
        .and_then(|node| Range::parse(&cidr(node)?))
        .unwrap_or_else(|| rack.free_range(taken.iter().map(String::as_str)));
    let wanted = node(options, range, &version, clock.now());
    if own.is_none() {
        match nodes.create(&PostParams::default(), &wanted).await {
            Ok(made) => return Ok(Registered { range, uid: made.metadata.uid.unwrap_or_default() }),
            // It was made meanwhile: it is taken up.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error),
        }
    }
    let labels = json!({ "metadata": { "labels": wanted.metadata.labels } });
    let taken_up = nodes.patch(&options.name, &params(), &Patch::Merge(labels)).await?;
    let status = json!({ "status": wanted.status });
    nodes.patch_status(&options.name, &params(), &Patch::Strategic(status)).await?;
    Ok(Registered { range, uid: taken_up.metadata.uid.unwrap_or_default() })
}

fn node(options: &Options, range: Range, version: &str, now: Timestamp) -> Node {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let mut labels: BTreeMap<String, String> = [
        ("kubernetes.io/hostname", options.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", architecture),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect();
    labels.extend(options.labels.clone());
    let managed = "volumes.kubernetes.io/controller-managed-attach-detach".to_owned();
    let metadata = ObjectMeta {
        name: Some(options.name.clone()),
        labels: Some(labels),
        annotations: Some([(managed, "true".to_owned())].into()),
        ..ObjectMeta::default()
    };
    let spec = NodeSpec {
        pod_cidr: Some(range.cidr()),
        pod_cidrs: Some(vec![range.cidr()]),
        taints: (!options.taints.is_empty()).then(|| options.taints.clone()),
        provider_id: Some(format!("windlass://{}", options.name)),
        ..NodeSpec::default()
    };
    let amounts: BTreeMap<String, Quantity> =
        options.capacity.iter().map(|(name, amount)| (name.clone(), Quantity(amount.clone()))).collect();
    let address = |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
    let status = NodeStatus {
        capacity: Some(amounts.clone()),
        allocatable: Some(amounts),
        addresses: Some(vec![address("InternalIP", range.host()), address("Hostname", options.name.clone())]),
        daemon_endpoints: Some(NodeDaemonEndpoints {
            kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }),
        }),
        node_info: Some(NodeSystemInfo {
            architecture: architecture.to_owned(),
            operating_system: "linux".to_owned(),
            os_image: "Windlass simulated node".to_owned(),
            kernel_version: "simulated".to_owned(),
            container_runtime_version: format!("simulated://{}", env!("CARGO_PKG_VERSION")),
            kubelet_version: version.to_owned(),
            ..NodeSystemInfo::default()
        }),
        conditions: Some(conditions(None, Pressures::default(), now)),
        ..NodeStatus::default()
    };
    Node { metadata, spec: Some(spec), status: Some(status) }
}

/// The status of a pod as a kubelet sends it: what it says itself, and nothing of what others do.
pub(super) fn patch(uid: Option<&str>, status: &k8s_openapi::api::core::v1::PodStatus) -> Value {
    let mut status = json!(status);
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        let ours = |condition: &Value| {
            condition["type"].as_str().is_some_and(|of| super::conditions::OURS.contains(&of))
        };
        conditions.retain(ours);
        for condition in conditions {
            // What is not said any more must go, and a merge keeps what is not named.
            for field in ["reason", "message"] {
                if condition.get(field).is_none() {
                    condition[field] = Value::Null;
                }
            }
        }
    }
    json!({ "metadata": { "uid": uid }, "status": status })
}
