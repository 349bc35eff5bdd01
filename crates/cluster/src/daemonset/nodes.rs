//! The nodes that a DaemonSet runs on, and its pod for one of them.

use crate::history::HASH_LABEL;
use crate::pods;
use crate::scheduler::covers;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, PodTemplateSpec, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use windlass_component_helpers::node_affinity;

/// The generation of the template as old clients count it: on the set, and on its pods.
const TEMPLATE_GENERATION: (&str, &str) =
    ("deprecated.daemonset.template.generation", "pod-template-generation");
/// The taints that every daemon pod tolerates: it serves the node, and stays with it.
const DAEMON_TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// The taint that it tolerates on the host network.
const HOST_NETWORK_TOLERATION: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Whether a DaemonSet runs on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// A pod should run there.
    Run,
    /// No pod is created there, but a running one may stay.
    KeepRunning,
    /// No pod should run there.
    Exclude,
}

/// Whether a set with this template runs on a node.
pub(super) fn place(template: &PodTemplateSpec, node: &Node) -> Placement {
    let spec = template.spec.clone().unwrap_or_default();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let elsewhere = spec.node_name.as_deref().is_some_and(|wanted| !wanted.is_empty() && wanted != name);
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let selector = spec.node_selector.clone().unwrap_or_default();
    if elsewhere || !node_affinity::matches(&selector, affinity, name, &labels) {
        return Placement::Exclude;
    }
    let tolerations = tolerations(&spec);
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let mut untolerated = taints.filter(|taint| !tolerations.iter().any(|one| covers(one, taint)));
    let mut place = Placement::Run;
    for taint in &mut untolerated {
        match taint.effect.as_str() {
            "NoExecute" => return Placement::Exclude,
            "NoSchedule" => place = Placement::KeepRunning,
            _ => {}
        }
    }
    place
}

/// What is tolerated as written, and what every daemon tolerates.
fn tolerations(spec: &PodSpec) -> Vec<Toleration> {
    let mut all = spec.tolerations.clone().unwrap_or_default();
    let on_host = spec.host_network == Some(true);
    for (key, effect) in DAEMON_TOLERATIONS.into_iter().chain(on_host.then_some(HOST_NETWORK_TOLERATION)) {
        let toleration = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        if !all.contains(&toleration) {
            all.push(toleration);
        }
    }
    all
}

/// The set's pod for one node.
pub(super) fn pod_on(set: &DaemonSet, owner: OwnerReference, hash: &str, node: &str) -> Option<Pod> {
    let template = &set.spec.as_ref()?.template;
    let mut pod = pods::from_template(template, set.metadata.namespace.as_deref(), owner);
    pod.metadata.generate_name = Some(pods::prefix(set.metadata.name.as_deref().unwrap_or_default()));
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(HASH_LABEL.to_owned(), hash.to_owned());
    labels.extend(generation(set).map(|number| (TEMPLATE_GENERATION.1.to_owned(), number)));
    let spec = pod.spec.get_or_insert_default();
    spec.tolerations = Some(tolerations(spec));
    let by_name = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![by_name]), ..NodeSelectorTerm::default() };
    // Whatever was required holds for this node: it need not be said again.
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
    Some(pod)
}

fn generation(set: &DaemonSet) -> Option<String> {
    let number = set.metadata.annotations.as_ref()?.get(TEMPLATE_GENERATION.0)?.parse::<i64>().ok()?;
    Some(number.to_string())
}

/// Whether a pod is of the template as it is now.
pub(super) fn is_new(set: &DaemonSet, pod: &Pod, hash: &str) -> bool {
    let label = |key: &str| pod.metadata.labels.as_ref().and_then(|labels| labels.get(key));
    label(HASH_LABEL).is_some_and(|label| label == hash)
        || generation(set).is_some_and(|number| label(TEMPLATE_GENERATION.1) == Some(&number))
}

/// The node that a pod is on or is meant for.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(name) = spec.node_name.as_deref().filter(|name| !name.is_empty()) {
        return Some(name);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = required.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let mut names = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
    match names.next()?.values.as_deref()? {
        [name] => Some(name),
        _ => None,
    }
}
