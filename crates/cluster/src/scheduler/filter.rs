//! Whether a pod can go to a node, and if not, why, in the words of Kubernetes' scheduler. Pure.

use super::cache::State;
use super::info::{NodeFacts, PodFacts};
use super::inter_pod_affinity::Near;
use super::node_affinity::{allows, tolerates};
use super::topology_spread::Spread;
use super::volume_binding::Volumes;
use k8s_openapi::api::core::v1::Taint;
use windlass_component_helpers::host_ports::conflict;

/// Why a pod cannot go to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reasons: Vec<String>,
    /// Whether it would help if other pods went away.
    pub(super) curable: bool,
}

impl Refused {
    fn never(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()], curable: false }
    }

    fn now(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()], curable: true }
    }
}

/// The taint of nodes that are to get nothing new.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// What is worked out once for a pod, for all nodes.
pub(super) struct Question<'a> {
    pub(super) pod: &'a PodFacts,
    pub(super) state: &'a State,
    pub(super) near: Near,
    pub(super) spread: Spread,
    pub(super) volumes: &'a Volumes,
}

impl<'a> Question<'a> {
    pub(super) fn of(pod: &'a PodFacts, state: &'a State, volumes: &'a Volumes) -> Self {
        Self { pod, state, near: Near::of(pod, state), spread: Spread::of(pod, state), volumes }
    }

    /// Whether the pod can go to this node, in the order in which Kubernetes asks.
    pub(super) fn ask(&self, node: &NodeFacts) -> Result<(), Refused> {
        let pod = self.pod;
        let cordon =
            Taint { key: UNSCHEDULABLE.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
        if node.unschedulable && !tolerates(&pod.tolerations, &cordon) {
            return Err(Refused::never("node(s) were unschedulable"));
        }
        let bars = |taint: &&Taint| {
            matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute") && !tolerates(&pod.tolerations, taint)
        };
        if node.taints.iter().find(bars).is_some() {
            return Err(Refused::never("node(s) had untolerated taint(s)"));
        }
        if !allows(pod, node) {
            return Err(Refused::never("node(s) didn't match Pod's node affinity/selector"));
        }
        let taken = |wanted| node.ports.iter().any(|(port, _)| conflict(port, wanted));
        if pod.ports.iter().any(taken) {
            return Err(Refused::now("node(s) didn't have free ports for the requested pod ports"));
        }
        self.room(node)?;
        self.volumes.ask(pod, node).map_err(Refused::never)?;
        self.spread.ask(node).map_err(|missing| match missing {
            true => Refused::never(
                "node(s) didn't match pod topology spread constraints (missing required label)",
            ),
            false => Refused::now("node(s) didn't match pod topology spread constraints"),
        })?;
        self.near.ask(node).map_err(|(reason, curable)| Refused { reasons: vec![reason.to_owned()], curable })
    }

    /// Whether the node has what the pod asks for, beside what is promised to others that come first.
    fn room(&self, node: &NodeFacts) -> Result<(), Refused> {
        let pod = self.pod;
        let promised = self.state.nominated.values().filter(|(place, other)| {
            *place == node.name && other.key != pod.key && other.priority >= pod.priority
        });
        let promised: Vec<&PodFacts> = promised.map(|(_, other)| &**other).collect();
        let mut refused = Refused { reasons: Vec::new(), curable: true };
        let allowed = node.allocatable.get("pods");
        let count = i128::try_from(node.pods.len() + promised.len()).unwrap_or(i128::MAX);
        if count + 1 > allowed {
            refused.reasons.push("Too many pods".to_owned());
            refused.curable &= allowed > 0;
        }
        for (name, asked) in &pod.requests.0 {
            let kept: i128 = promised.iter().map(|other| other.requests.get(name)).sum();
            let has = node.allocatable.get(name);
            if *asked > has - node.used.get(name) - kept {
                refused.reasons.push(format!("Insufficient {name}"));
                refused.curable &= *asked <= has;
            }
        }
        if refused.reasons.is_empty() { Ok(()) } else { Err(refused) }
    }
}
