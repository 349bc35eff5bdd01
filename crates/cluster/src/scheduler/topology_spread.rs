//! Topology spread constraints. Pure.

use super::cache::SchedulerCache;
use super::info::{NodeInfo, PodInfo};
use super::node_affinity::{pod_matches_node, tolerates};
use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use std::collections::{BTreeMap, HashMap};
use windlass::Selector;

/// The state of one constraint: matching pods per topology value.
struct ConstraintState {
    key: String,
    counts: HashMap<String, i64>,
    least: i64,
    skew: i64,
    own: i64,
    strict: bool,
}

/// All constraints of one pod.
pub(super) struct TopologySpread(Vec<ConstraintState>);

impl TopologySpread {
    pub(super) fn of(pod: &PodInfo, state: &SchedulerCache) -> Self {
        let strict: Vec<&str> =
            pod.strict_spread().map(|constraint| constraint.topology_key.as_str()).collect();
        Self(pod.spread.iter().map(|constraint| spreading(constraint, pod, state, &strict)).collect())
    }

    /// Whether the pod may run on a node; if not, whether for want of a label.
    pub(super) fn check_node(&self, node: &NodeInfo) -> Result<(), bool> {
        for spreading in self.0.iter().filter(|spreading| spreading.strict) {
            let Some(place) = node.labels.get(&spreading.key) else { return Err(true) };
            let there = spreading.counts.get(place).copied().unwrap_or(0);
            if there + spreading.own - spreading.least > spreading.skew {
                return Err(false);
            }
        }
        Ok(())
    }

    /// The number of matching pods in a node's topologies, over the constraints with ScheduleAnyway.
    pub(super) fn count_matching(&self, node: &NodeInfo) -> i64 {
        let wishes = self.0.iter().filter(|spreading| !spreading.strict);
        let there =
            |spreading: &ConstraintState| spreading.counts.get(node.labels.get(&spreading.key)?).copied();
        wishes.filter_map(there).sum()
    }
}

fn spreading(
    constraint: &TopologySpreadConstraint,
    pod: &PodInfo,
    state: &SchedulerCache,
    strict: &[&str],
) -> ConstraintState {
    let selector = constraint.label_selector.as_ref().and_then(|selector| Selector::of(selector).ok());
    // The API server adds the pod's own labels to the selector, but an older one leaves the keys as they are.
    let alike: BTreeMap<&String, &String> = constraint
        .match_label_keys
        .iter()
        .flatten()
        .filter_map(|key| Some((key, pod.labels.get(key)?)))
        .collect();
    let matches = |other: &PodInfo| {
        other.namespace == pod.namespace
            && !other.terminating
            && selector.as_ref().is_some_and(|selector| selector.matches(Some(&other.labels)))
            && alike.iter().all(|(key, value)| other.labels.get(*key) == Some(*value))
    };
    let key = constraint.topology_key.clone();
    let honours =
        |policy: &Option<String>, usual: bool| policy.as_deref().map_or(usual, |policy| policy == "Honor");
    let (by_affinity, by_taints) =
        (honours(&constraint.node_affinity_policy, true), honours(&constraint.node_taints_policy, false));
    let mut counts: HashMap<String, i64> = HashMap::new();
    for node in state.nodes.values().filter(|node| node.known) {
        // Only nodes that all constraints apply to are compared.
        let all = strict.iter().all(|key| node.labels.contains_key(*key));
        let bars = |taint: &k8s_openapi::api::core::v1::Taint| {
            taint.effect != "PreferNoSchedule" && !tolerates(&pod.tolerations, taint)
        };
        if !all
            || (by_affinity && !pod_matches_node(pod, node))
            || (by_taints && node.taints.iter().any(bars))
        {
            continue;
        }
        let Some(place) = node.labels.get(&key) else { continue };
        let there = node.pods.values().filter(|other| matches(other)).count();
        *counts.entry(place.clone()).or_insert(0) += i64::try_from(there).unwrap_or(i64::MAX);
    }
    let wanted = usize::try_from(constraint.min_domains.unwrap_or(1)).unwrap_or(1);
    let least = if counts.len() < wanted { 0 } else { counts.values().copied().min().unwrap_or(0) };
    ConstraintState {
        key,
        least,
        counts,
        skew: i64::from(constraint.max_skew),
        own: i64::from(matches(pod)),
        strict: constraint.when_unsatisfiable == "DoNotSchedule",
    }
}
