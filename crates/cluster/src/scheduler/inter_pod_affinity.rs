//! Pod affinity and anti-affinity. Pure. Costs nothing for pods without terms where no other pod has any.

use super::cache::SchedulerCache;
use super::info::{NodeInfo, PodInfo};
use super::node_affinity::Term;
use std::collections::{HashMap, HashSet};

type Topology = (String, String);

/// The topology of the pods that matter to one pod.
pub(super) struct InterPodAffinity {
    /// Required affinity: each term, and the topology values with matching pods.
    wanted: Vec<(Term, HashSet<String>)>,
    /// Whether it may be the first: no pod matches its terms but the pod itself.
    first: bool,
    /// Topologies excluded by its own anti-affinity.
    avoided: HashSet<Topology>,
    avoids: Vec<String>,
    /// Topologies excluded by the anti-affinity of existing pods.
    blocked: HashSet<Topology>,
    bars: Vec<String>,
    /// Preferred topologies, with their weights.
    preferred: HashMap<Topology, i64>,
}

impl InterPodAffinity {
    pub(super) fn of(pod: &PodInfo, state: &SchedulerCache) -> Self {
        let terms = |terms: &[_]| -> Vec<Term> {
            terms.iter().map(|term| Term::of(term, &pod.namespace, &state.namespaces)).collect()
        };
        let (affinity_terms, anti_affinity_terms) =
            (terms(pod.affinity_terms()), terms(pod.anti_affinity_terms()));
        let first = !affinity_terms.is_empty() && affinity_terms.iter().all(|term| term.matches(pod));
        let mut wanted: Vec<(Term, HashSet<String>)> =
            affinity_terms.into_iter().map(|term| (term, HashSet::new())).collect();
        let mut avoided = HashSet::new();
        let preferred_terms = preferred(pod, state);
        let mut preferred = HashMap::new();
        if !wanted.is_empty() || !anti_affinity_terms.is_empty() || !preferred_terms.is_empty() {
            for node in state.nodes.values().filter(|node| node.known) {
                for other in node.pods.values() {
                    // A pod must match all terms at once.
                    if !wanted.is_empty() && wanted.iter().all(|(term, _)| term.matches(other)) {
                        for (term, places) in &mut wanted {
                            places.extend(node.labels.get(&term.topology).cloned());
                        }
                    }
                    avoided.extend(
                        anti_affinity_terms
                            .iter()
                            .filter(|term| term.matches(other))
                            .filter_map(|term| at(node, term)),
                    );
                    for (term, weight) in preferred_terms.iter().filter(|(term, _)| term.matches(other)) {
                        if let Some(place) = at(node, term) {
                            *preferred.entry(place).or_insert(0) += weight;
                        }
                    }
                }
            }
        }
        let first = first && wanted.iter().all(|(_, places)| places.is_empty());
        let avoids = anti_affinity_terms.into_iter().map(|term| term.topology).collect();
        let (blocked, bars) = blocked(pod, state);
        Self { wanted, first, avoided, avoids, blocked, bars, preferred }
    }

    /// Whether a node satisfies the terms; if not why, and whether preemption could help.
    pub(super) fn check_node(&self, node: &NodeInfo) -> Result<(), (&'static str, bool)> {
        for (term, places) in &self.wanted {
            let there = node.labels.get(&term.topology);
            if !there.is_some_and(|there| self.first || places.contains(there)) {
                return Err(("node(s) didn't match pod affinity rules", false));
            }
        }
        let among = |keys: &[String], places: &HashSet<Topology>| {
            let place = |key: &String| Some((key.clone(), node.labels.get(key)?.clone()));
            keys.iter().filter_map(place).any(|place| places.contains(&place))
        };
        if among(&self.avoids, &self.avoided) {
            return Err(("node(s) didn't match pod anti-affinity rules", true));
        }
        if among(&self.bars, &self.blocked) {
            return Err(("node(s) didn't satisfy existing pods anti-affinity rules", true));
        }
        Ok(())
    }

    /// The sum of the weights of preferred terms.
    pub(super) fn score(&self, node: &NodeInfo) -> i64 {
        let there = |(key, value): &Topology| node.labels.get(key) == Some(value);
        self.preferred.iter().filter(|(place, _)| there(place)).map(|(_, weight)| weight).sum()
    }
}

fn at(node: &NodeInfo, term: &Term) -> Option<Topology> {
    Some((term.topology.clone(), node.labels.get(&term.topology)?.clone()))
}

/// The topologies and keys excluded by the anti-affinity of existing pods.
fn blocked(pod: &PodInfo, state: &SchedulerCache) -> (HashSet<Topology>, Vec<String>) {
    let (mut places, mut keys) = (HashSet::new(), Vec::new());
    for holder in state.anti_affinity_pods.values().filter(|holder| holder.key != pod.key) {
        let Some(node) = state.nodes.get(&holder.node) else { continue };
        for term in holder.anti_affinity_terms() {
            let term = Term::of(term, &holder.namespace, &state.namespaces);
            if term.matches(pod) {
                places.extend(at(node, &term));
                if !keys.contains(&term.topology) {
                    keys.push(term.topology);
                }
            }
        }
    }
    (places, keys)
}

/// The preferred terms, with negative weights for anti-affinity.
fn preferred(pod: &PodInfo, state: &SchedulerCache) -> Vec<(Term, i64)> {
    let Some(affinity) = &pod.affinity else { return Vec::new() };
    let affinity_terms = affinity.pod_affinity.as_ref();
    let affinity_terms =
        affinity_terms.and_then(|all| all.preferred_during_scheduling_ignored_during_execution.as_ref());
    let anti_affinity_terms = affinity.pod_anti_affinity.as_ref();
    let anti_affinity_terms =
        anti_affinity_terms.and_then(|all| all.preferred_during_scheduling_ignored_during_execution.as_ref());
    let signed = affinity_terms.into_iter().flatten().map(|term| (term, 1));
    signed
        .chain(anti_affinity_terms.into_iter().flatten().map(|term| (term, -1)))
        .map(|(term, sign)| {
            let weight = i64::from(term.weight) * sign;
            (Term::of(&term.pod_affinity_term, &pod.namespace, &state.namespaces), weight)
        })
        .collect()
}
