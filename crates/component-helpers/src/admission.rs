//! Whether a node admits a pod that was bound to it. A kubelet checks resources, node affinity and host ports once more, since
//! not every pod was placed by the scheduler. Pure.

use crate::host_ports::{HostPort, conflict, host_ports};
use crate::node_affinity;
use crate::resources::{Resources, pod_requests};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The resources that are checked, in a kubelet's order.
const CHECKED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Why a pod is not admitted, in a kubelet's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The reason that the pod's status gets, such as `OutOfcpu`.
    pub reason: String,
    /// The message.
    pub message: String,
}

impl Rejection {
    fn predicate(name: &str, why: &str) -> Self {
        Self { reason: name.to_owned(), message: format!("Predicate {name} failed: {why}") }
    }
}

/// Whether a pod counts against the allocatable resources of its node.
fn is_active(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let bound = spec.and_then(|spec| spec.node_name.as_deref()).is_some_and(|name| !name.is_empty());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    bound && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Why a node with these allocatable resources, which runs `others` already, rejects a pod; `None` if it is admitted. `labels`
/// are the node's, where they are known.
pub fn admit(
    pod: &Pod,
    others: &[Arc<Pod>],
    allocatable: &BTreeMap<String, Quantity>,
    node: &str,
    labels: Option<&BTreeMap<String, String>>,
) -> Option<Rejection> {
    let spec = pod.spec.as_ref()?;
    let allocatable = Resources::of(Some(allocatable));
    let active = others.iter().filter(|other| is_active(other)).filter_map(|other| other.spec.as_ref());
    let (mut pods, mut used, mut taken): (i128, _, Vec<HostPort>) = (0, Resources::default(), Vec::new());
    for other in active {
        pods += 1;
        used.add(&pod_requests(other));
        taken.extend(host_ports(other));
    }
    let requests = pod_requests(spec);
    let exceeds = |name: &str, requested: i128, used: i128| {
        let capacity = allocatable.get(name);
        let known = allocatable.0.contains_key(name);
        (known && requested > 0 && requested + used > capacity).then(|| Rejection {
            reason: format!("OutOf{name}"),
            message: format!(
                "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
            ),
        })
    };
    let insufficient = exceeds("pods", 1, pods)
        .or_else(|| CHECKED.iter().find_map(|name| exceeds(name, requests.get(name), used.get(name))));
    if insufficient.is_some() {
        return insufficient;
    }
    let selector = spec.node_selector.clone().unwrap_or_default();
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    if labels.is_some_and(|labels| !node_affinity::matches(&selector, affinity, node, labels)) {
        let why = "node(s) didn't match Pod's node affinity/selector";
        return Some(Rejection::predicate("NodeAffinity", why));
    }
    let wanted = host_ports(spec);
    if taken.iter().any(|held| wanted.iter().any(|port| conflict(port, held))) {
        let why = "node(s) didn't have free ports for the requested pod ports";
        return Some(Rejection::predicate("NodePorts", why));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, spec: Value) -> Arc<Pod> {
        let mut whole = json!({"nodeName": "n", "containers": [{"name": "c"}]});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let meta = json!({"name": name, "namespace": "d", "uid": name});
        Arc::new(serde_json::from_value(json!({"metadata": meta, "spec": whole})).unwrap())
    }

    fn asks(cpu: &str) -> Value {
        json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]})
    }

    fn rejected(new: Value, others: &[Arc<Pod>]) -> Option<(String, String)> {
        let allocatable =
            [("cpu", "2"), ("pods", "2")].map(|(name, much)| (name.to_owned(), Quantity(much.to_owned())));
        let labels = [("disk".to_owned(), "fast".to_owned())].into();
        let rejection = admit(&pod("new", new), others, &allocatable.into(), "n", Some(&labels));
        rejection.map(|Rejection { reason, message }| (reason, message))
    }

    #[test]
    fn a_pod_is_admitted_while_the_requests_fit_into_allocatable() {
        let other = [pod("a", asks("1500m"))];
        assert_eq!(rejected(asks("500m"), &other), None);
        let why = "Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000";
        assert_eq!(rejected(asks("501m"), &other), Some(("OutOfcpu".to_owned(), why.to_owned())));
        let two = [pod("a", json!({})), pod("b", json!({}))];
        assert_eq!(rejected(json!({}), &two).unwrap().0, "OutOfpods");
        let mut ended = (*other[0]).clone();
        ended.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
        assert_eq!(rejected(asks("2"), &[Arc::new(ended)]), None, "a terminated pod uses nothing");
    }

    #[test]
    fn host_ports_and_the_node_selector_are_checked() {
        let port = |number: u16, ip: &str| json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": number, "hostIP": ip}]}]});
        let other = [pod("a", port(8080, "127.0.0.1"))];
        let why = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
        assert_eq!(rejected(port(8080, ""), &other), Some(("NodePorts".to_owned(), why.to_owned())));
        assert_eq!(rejected(port(8080, "127.0.0.2"), &other), None);
        let why = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
        let slow = json!({"nodeSelector": {"disk": "slow"}});
        assert_eq!(rejected(slow, &[]), Some(("NodeAffinity".to_owned(), why.to_owned())));
    }
}
