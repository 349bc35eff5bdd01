//! Which of the feasible nodes is the best for a pod: the least allocated, unless the pod has preferences. Pure.

use super::filter::NodeFilter;
use super::info::{NodeInfo, PodInfo};
use super::node_affinity::{fits, tolerates};

/// The node with the highest score. Between equals the one with fewer pods, then the first by name.
pub(super) fn best<'n>(filter: &NodeFilter<'_>, nodes: &[&'n NodeInfo]) -> Option<&'n NodeInfo> {
    if let [only] = nodes {
        return Some(only);
    }
    let pod = filter.pod;
    let raw: Vec<[f64; 4]> = nodes
        .iter()
        .map(|node| {
            [
                wished(pod, node) as f64,
                -(disliked(pod, node) as f64),
                filter.inter_pod_affinity.score(node) as f64,
                -(filter.spread.count_matching(node) as f64),
            ]
        })
        .collect();
    // With Kubernetes' weights, each normalised; and last the free resources.
    const WEIGHTS: [f64; 4] = [2.0, 3.0, 2.0, 2.0];
    let spans: Vec<(f64, f64)> = (0..WEIGHTS.len())
        .map(|at| {
            let values = raw.iter().map(|scores| scores[at]);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        })
        .collect();
    let total = |index: usize, node: &NodeInfo| -> f64 {
        let wishes: f64 = WEIGHTS
            .iter()
            .enumerate()
            .filter(|(at, _)| spans[*at].1 > spans[*at].0)
            .map(|(at, weight)| weight * 100.0 * (raw[index][at] - spans[at].0) / (spans[at].1 - spans[at].0))
            .sum();
        wishes + emptiness(pod, node)
    };
    let scored = nodes.iter().enumerate().map(|(index, node)| (total(index, node), *node));
    let best = scored.reduce(|best, next| {
        let order = next.0.total_cmp(&best.0).then_with(|| best.1.pods.len().cmp(&next.1.pods.len()));
        if order.is_gt() { next } else { best }
    });
    best.map(|(_, node)| node)
}

/// From 0 to 100: the share of CPU and memory that would stay free.
fn emptiness(pod: &PodInfo, node: &NodeInfo) -> f64 {
    let free = |has: i128, used: i128, asked: i128| {
        if has <= 0 { 0.0 } else { ((has - used - asked).max(0)) as f64 * 100.0 / has as f64 }
    };
    let cpu = free(node.allocatable.get("cpu"), node.weight.0, pod.weight.0);
    let memory = free(node.allocatable.get("memory"), node.weight.1, pod.weight.1);
    (cpu + memory) / 2.0
}

fn wished(pod: &PodInfo, node: &NodeInfo) -> i64 {
    let terms = pod
        .node_affinity()
        .and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    let fitting = terms.into_iter().flatten().filter(|term| fits(&term.preference, node));
    fitting.map(|term| i64::from(term.weight)).sum()
}

/// The number of PreferNoSchedule taints that the pod does not tolerate.
fn disliked(pod: &PodInfo, node: &NodeInfo) -> usize {
    let soft = node.taints.iter().filter(|taint| taint.effect == "PreferNoSchedule");
    soft.filter(|taint| !tolerates(&pod.tolerations, taint)).count()
}
