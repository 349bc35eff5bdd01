//! Pods that must be near others, or away from them. Pure. Costs nothing for pods that do not care, where nobody does.

use super::cache::State;
use super::info::{NodeFacts, PodFacts};
use super::node_affinity::Term;
use std::collections::{HashMap, HashSet};

type Topology = (String, String);

/// Where others are that matter to one pod.
pub(super) struct Near {
    /// What it must be near to: each term, and where there are pods that it means.
    wanted: Vec<(Term, HashSet<String>)>,
    /// Whether it may be the first: nobody is there whom it means, and it means itself.
    first: bool,
    /// Where those are that it must be away from.
    avoided: HashSet<Topology>,
    avoids: Vec<String>,
    /// Where those are that keep it away.
    barred: HashSet<Topology>,
    bars: Vec<String>,
    /// What it would rather be near to or away from: places, and how much.
    rather: HashMap<Topology, i64>,
}

impl Near {
    pub(super) fn of(pod: &PodFacts, state: &State) -> Self {
        let terms = |terms: &[_]| -> Vec<Term> {
            terms.iter().map(|term| Term::of(term, &pod.namespace, &state.namespaces)).collect()
        };
        let (near, apart) = (terms(pod.near()), terms(pod.apart()));
        let first = !near.is_empty() && near.iter().all(|term| term.means(pod));
        let mut wanted: Vec<(Term, HashSet<String>)> =
            near.into_iter().map(|term| (term, HashSet::new())).collect();
        let mut avoided = HashSet::new();
        let rather_terms = rather(pod, state);
        let mut rather = HashMap::new();
        if !wanted.is_empty() || !apart.is_empty() || !rather_terms.is_empty() {
            for node in state.nodes.values().filter(|node| node.known) {
                for other in node.pods.values() {
                    // A pod must fit all terms at once to be company.
                    if !wanted.is_empty() && wanted.iter().all(|(term, _)| term.means(other)) {
                        for (term, places) in &mut wanted {
                            places.extend(node.labels.get(&term.topology).cloned());
                        }
                    }
                    avoided.extend(
                        apart.iter().filter(|term| term.means(other)).filter_map(|term| at(node, term)),
                    );
                    for (term, weight) in rather_terms.iter().filter(|(term, _)| term.means(other)) {
                        if let Some(place) = at(node, term) {
                            *rather.entry(place).or_insert(0) += weight;
                        }
                    }
                }
            }
        }
        let first = first && wanted.iter().all(|(_, places)| places.is_empty());
        let avoids = apart.into_iter().map(|term| term.topology).collect();
        let (barred, bars) = barred(pod, state);
        Self { wanted, first, avoided, avoids, barred, bars, rather }
    }

    /// Whether a node is where it may be; if not, why, and whether it would help if others went.
    pub(super) fn ask(&self, node: &NodeFacts) -> Result<(), (&'static str, bool)> {
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
        if among(&self.bars, &self.barred) {
            return Err(("node(s) didn't satisfy existing pods anti-affinity rules", true));
        }
        Ok(())
    }

    /// How much the pod would rather be there.
    pub(super) fn score(&self, node: &NodeFacts) -> i64 {
        let there = |(key, value): &Topology| node.labels.get(key) == Some(value);
        self.rather.iter().filter(|(place, _)| there(place)).map(|(_, weight)| weight).sum()
    }
}

fn at(node: &NodeFacts, term: &Term) -> Option<Topology> {
    Some((term.topology.clone(), node.labels.get(&term.topology)?.clone()))
}

/// Where pods are that keep this one away, and by which labels.
fn barred(pod: &PodFacts, state: &State) -> (HashSet<Topology>, Vec<String>) {
    let (mut places, mut keys) = (HashSet::new(), Vec::new());
    for keeper in state.keepers.values().filter(|keeper| keeper.key != pod.key) {
        let Some(node) = state.nodes.get(&keeper.node) else { continue };
        for term in keeper.apart() {
            let term = Term::of(term, &keeper.namespace, &state.namespaces);
            if term.means(pod) {
                places.extend(at(node, &term));
                if !keys.contains(&term.topology) {
                    keys.push(term.topology);
                }
            }
        }
    }
    (places, keys)
}

/// What a pod would rather be near to, and, with less than nothing, away from.
fn rather(pod: &PodFacts, state: &State) -> Vec<(Term, i64)> {
    let Some(affinity) = &pod.affinity else { return Vec::new() };
    let near = affinity.pod_affinity.as_ref();
    let near = near.and_then(|all| all.preferred_during_scheduling_ignored_during_execution.as_ref());
    let apart = affinity.pod_anti_affinity.as_ref();
    let apart = apart.and_then(|all| all.preferred_during_scheduling_ignored_during_execution.as_ref());
    let signed = near.into_iter().flatten().map(|term| (term, 1));
    signed
        .chain(apart.into_iter().flatten().map(|term| (term, -1)))
        .map(|(term, sign)| {
            let weight = i64::from(term.weight) * sign;
            (Term::of(&term.pod_affinity_term, &pod.namespace, &state.namespaces), weight)
        })
        .collect()
}
