//! Whether a pod can run on a node, and if not why, in kube-scheduler's words. Pure.

use super::cache::SchedulerCache;
use super::info::{NodeInfo, PodInfo};
use super::inter_pod_affinity::InterPodAffinity;
use super::node_affinity::{pod_matches_node, tolerates};
use super::topology_spread::TopologySpread;
use super::volume_binding::Volumes;
use k8s_openapi::api::core::v1::Taint;
use windlass_component_helpers::host_ports::conflict;

/// Why a pod does not fit on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) reasons: Vec<String>,
    /// Whether deleting other pods would help.
    pub(super) resolvable: bool,
}

impl Rejection {
    fn unresolvable(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()], resolvable: false }
    }

    fn resolvable(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()], resolvable: true }
    }
}

/// The taint of a cordoned node.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// What is computed once for a pod, for all nodes.
pub(super) struct NodeFilter<'a> {
    pub(super) pod: &'a PodInfo,
    pub(super) state: &'a SchedulerCache,
    pub(super) inter_pod_affinity: InterPodAffinity,
    pub(super) spread: TopologySpread,
    pub(super) volumes: &'a Volumes,
}

impl<'a> NodeFilter<'a> {
    pub(super) fn of(pod: &'a PodInfo, state: &'a SchedulerCache, volumes: &'a Volumes) -> Self {
        Self {
            pod,
            state,
            inter_pod_affinity: InterPodAffinity::of(pod, state),
            spread: TopologySpread::of(pod, state),
            volumes,
        }
    }

    /// Whether the pod fits on this node, checked in Kubernetes' order.
    pub(super) fn check_node(&self, node: &NodeInfo) -> Result<(), Rejection> {
        let pod = self.pod;
        let cordon =
            Taint { key: UNSCHEDULABLE.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
        if node.unschedulable && !tolerates(&pod.tolerations, &cordon) {
            return Err(Rejection::unresolvable("node(s) were unschedulable"));
        }
        let bars = |taint: &&Taint| {
            matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute") && !tolerates(&pod.tolerations, taint)
        };
        if node.taints.iter().find(bars).is_some() {
            return Err(Rejection::unresolvable("node(s) had untolerated taint(s)"));
        }
        if !pod_matches_node(pod, node) {
            return Err(Rejection::unresolvable("node(s) didn't match Pod's node affinity/selector"));
        }
        let taken = |wanted| node.ports.iter().any(|(port, _)| conflict(port, wanted));
        if pod.ports.iter().any(taken) {
            return Err(Rejection::resolvable("node(s) didn't have free ports for the requested pod ports"));
        }
        self.check_resources(node)?;
        self.volumes.check_node(pod, node).map_err(Rejection::unresolvable)?;
        self.spread.check_node(node).map_err(|missing| match missing {
            true => Rejection::unresolvable(
                "node(s) didn't match pod topology spread constraints (missing required label)",
            ),
            false => Rejection::resolvable("node(s) didn't match pod topology spread constraints"),
        })?;
        self.inter_pod_affinity
            .check_node(node)
            .map_err(|(reason, resolvable)| Rejection { reasons: vec![reason.to_owned()], resolvable })
    }

    /// Whether the node has the requested resources, besides those of nominated pods of equal or higher priority.
    fn check_resources(&self, node: &NodeInfo) -> Result<(), Rejection> {
        let pod = self.pod;
        let promised = self.state.nominated.values().filter(|(place, other)| {
            *place == node.name && other.key != pod.key && other.priority >= pod.priority
        });
        let promised: Vec<&PodInfo> = promised.map(|(_, other)| &**other).collect();
        let mut rejected = Rejection { reasons: Vec::new(), resolvable: true };
        let allowed = node.allocatable.get("pods");
        let count = i128::try_from(node.pods.len() + promised.len()).unwrap_or(i128::MAX);
        if count + 1 > allowed {
            rejected.reasons.push("Too many pods".to_owned());
            rejected.resolvable &= allowed > 0;
        }
        for (name, asked) in &pod.requests.0 {
            let kept: i128 = promised.iter().map(|other| other.requests.get(name)).sum();
            let has = node.allocatable.get(name);
            if *asked > has - node.used.get(name) - kept {
                rejected.reasons.push(format!("Insufficient {name}"));
                rejected.resolvable &= *asked <= has;
            }
        }
        if rejected.reasons.is_empty() { Ok(()) } else { Err(rejected) }
    }
}
