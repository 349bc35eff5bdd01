//! PodInfo and NodeInfo: what scheduling needs to know of pods and nodes, computed once.

use crate::pods::Claimed;
use k8s_openapi::api::core::v1::{
    Affinity, Node, NodeAffinity, Pod, PodAffinityTerm, Taint, Toleration, TopologySpreadConstraint,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass::Key;
use windlass_component_helpers::host_ports::{HostPort, host_ports};
use windlass_component_helpers::resources::{Resources, pod_requests};

/// The name of this scheduler in `spec.schedulerName`.
pub(super) const NAME: &str = "default-scheduler";

/// The default requests for scoring, of a container without any: millicores and bytes.
const DEFAULT_REQUESTS: (i128, i128) = (100, 200 << 20);

/// What scheduling needs to know of a pod.
#[derive(Debug, Clone)]
pub(super) struct PodInfo {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) namespace: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) priority: i32,
    pub(super) requests: Resources,
    /// CPU and memory requests, with defaults where there are none.
    pub(super) weight: (i128, i128),
    pub(super) ports: Vec<HostPort>,
    pub(super) node: String,
    pub(super) selector: BTreeMap<String, String>,
    pub(super) affinity: Option<Affinity>,
    pub(super) tolerations: Vec<Toleration>,
    pub(super) spread: Vec<TopologySpreadConstraint>,
    pub(super) claims: Vec<Claimed>,
    pub(super) never_preempts: bool,
    pub(super) terminating: bool,
    pub(super) generation: Option<i64>,
}

impl PodInfo {
    pub(super) fn of(key: &Key, pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let requests = pod_requests(spec);
        let weight = (
            requests.0.get("cpu").copied().unwrap_or(DEFAULT_REQUESTS.0),
            requests.0.get("memory").copied().unwrap_or(DEFAULT_REQUESTS.1),
        );
        Some(Self {
            key: key.clone(),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            priority: spec.priority.unwrap_or(0),
            requests,
            weight,
            ports: host_ports(spec),
            node: spec.node_name.clone().unwrap_or_default(),
            selector: spec.node_selector.clone().unwrap_or_default(),
            affinity: spec.affinity.clone(),
            tolerations: spec.tolerations.clone().unwrap_or_default(),
            spread: spec.topology_spread_constraints.clone().unwrap_or_default(),
            claims: crate::pods::claims(pod).collect(),
            never_preempts: spec.preemption_policy.as_deref() == Some("Never"),
            terminating: pod.metadata.deletion_timestamp.is_some(),
            generation: pod.metadata.generation,
        })
    }

    pub(super) fn node_affinity(&self) -> Option<&NodeAffinity> {
        self.affinity.as_ref()?.node_affinity.as_ref()
    }

    /// The required pod affinity terms.
    pub(super) fn affinity_terms(&self) -> &[PodAffinityTerm] {
        let terms = self.affinity.as_ref().and_then(|all| all.pod_affinity.as_ref());
        terms
            .and_then(|terms| terms.required_during_scheduling_ignored_during_execution.as_deref())
            .unwrap_or_default()
    }

    /// The required pod anti-affinity terms.
    pub(super) fn anti_affinity_terms(&self) -> &[PodAffinityTerm] {
        let terms = self.affinity.as_ref().and_then(|all| all.pod_anti_affinity.as_ref());
        terms
            .and_then(|terms| terms.required_during_scheduling_ignored_during_execution.as_deref())
            .unwrap_or_default()
    }

    /// The topology spread constraints with DoNotSchedule.
    pub(super) fn strict_spread(&self) -> impl Iterator<Item = &TopologySpreadConstraint> {
        self.spread.iter().filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
    }
}

/// Whether a pod is pending for this scheduler.
pub(super) fn needs_node(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let free = spec.node_name.as_deref().unwrap_or_default().is_empty();
    let ours = spec.scheduler_name.as_deref().unwrap_or(NAME) == NAME;
    let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    free && ours && !gated && crate::pods::is_active(pod)
}

/// Whether a pod occupies resources of its node.
pub(super) fn occupies_node(pod: &Pod) -> bool {
    let placed =
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_some_and(|name| !name.is_empty());
    placed && !crate::pods::has_ended(pod)
}

/// What scheduling needs to know of a node, and its pods.
#[derive(Debug, Default)]
pub(super) struct NodeInfo {
    pub(super) name: String,
    /// Whether the Node exists: pods may be bound to one that is deleted.
    pub(super) known: bool,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    pub(super) unschedulable: bool,
    pub(super) allocatable: Resources,
    pub(super) used: Resources,
    pub(super) weight: (i128, i128),
    pub(super) pods: BTreeMap<Key, Arc<PodInfo>>,
    pub(super) ports: BTreeSet<(HostPort, Key)>,
}

impl NodeInfo {
    /// Updates it from a Node. Returns whether that could matter to a pending pod.
    pub(super) fn describe(&mut self, node: &Node) -> bool {
        let spec = node.spec.clone().unwrap_or_default();
        let labels = node.metadata.labels.clone().unwrap_or_default();
        let taints = spec.taints.unwrap_or_default();
        let unschedulable = spec.unschedulable.unwrap_or(false);
        let allocatable = Resources::of(node.status.as_ref().and_then(|status| status.allocatable.as_ref()));
        let changed = !self.known
            || (&self.labels, &self.taints, self.unschedulable, &self.allocatable)
                != (&labels, &taints, unschedulable, &allocatable);
        self.known = true;
        (self.labels, self.taints) = (labels, taints);
        (self.unschedulable, self.allocatable) = (unschedulable, allocatable);
        changed
    }

    pub(super) fn add(&mut self, pod: Arc<PodInfo>) {
        self.used.add(&pod.requests);
        self.weight = (self.weight.0 + pod.weight.0, self.weight.1 + pod.weight.1);
        self.ports.extend(pod.ports.iter().map(|port| (port.clone(), pod.key.clone())));
        self.pods.insert(pod.key.clone(), pod);
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<PodInfo>> {
        let pod = self.pods.remove(key)?;
        self.used.subtract(&pod.requests);
        self.weight = (self.weight.0 - pod.weight.0, self.weight.1 - pod.weight.1);
        for port in &pod.ports {
            self.ports.remove(&(port.clone(), pod.key.clone()));
        }
        Some(pod)
    }
}
