//! Preemption: which pods of lower priority to delete so that a pod fits. Pure: on one node, with as few PodDisruptionBudget
//! violations, as low priorities and as few victims as possible.

use super::cache::SchedulerCache;
use super::disruption_budgets::Budgets;
use super::filter::NodeFilter;
use super::info::{NodeInfo, PodInfo};
use super::volume_binding::Volumes;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use std::cmp::Reverse;
use std::sync::Arc;

/// A node on which a pod fits after preemption.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) node: String,
    /// The pods to delete: those first that violate a budget; within both groups by priority, highest first.
    pub(super) victims: Vec<Arc<PodInfo>>,
    /// The number of victims whose eviction violates a PodDisruptionBudget.
    pdb_violations: usize,
}

/// The most nodes on which preemption is tried.
const MAX_CANDIDATE_NODES: usize = 100;

/// The best candidate: with the fewest budget violations, then the lowest highest priority of a victim, then the lowest sum of
/// priorities, then the fewest victims. None if the pod never preempts, if no preemption would help, or if victims are already
/// terminating for it.
pub(super) fn choose(
    pod: &PodInfo,
    state: &SchedulerCache,
    volumes: &Volumes,
    budgets: &[Arc<PodDisruptionBudget>],
    resolvable: &[String],
) -> Option<Candidate> {
    if pod.never_preempts {
        return None;
    }
    if let Some((node, _)) = state.nominated.get(&pod.key)
        && state.nodes.get(node).is_some_and(|node| node.pods.values().any(|other| other.terminating))
    {
        return None;
    }
    let nodes = resolvable.iter().filter_map(|name| state.nodes.get(name));
    let nodes: Vec<&NodeInfo> = nodes
        .filter(|node| lower_priority_pods(pod, node).next().is_some())
        .take(MAX_CANDIDATE_NODES)
        .collect();
    if nodes.is_empty() {
        return None;
    }
    let (mut simulation, budgets) = (Simulation::like(state), Budgets::of(budgets));
    let candidates = nodes
        .into_iter()
        .filter_map(|node| select_victims_on_node(node, pod, &mut simulation, volumes, &budgets));
    candidates.min_by_key(Candidate::cost)
}

/// The pods of a node with lower priority that are not terminating.
fn lower_priority_pods<'n>(pod: &PodInfo, node: &'n NodeInfo) -> impl Iterator<Item = &'n Arc<PodInfo>> {
    let priority = pod.priority;
    node.pods.values().filter(move |other| other.priority < priority && !other.terminating)
}

impl Candidate {
    fn cost(&self) -> (usize, Option<i32>, i64, usize) {
        let priorities = self.victims.iter().map(|victim| victim.priority);
        // Offset by the lowest priority, so that many victims of low priority cost more than few.
        let sum = priorities.clone().map(|priority| i64::from(priority) - i64::from(i32::MIN)).sum();
        (self.pdb_violations, priorities.max(), sum, self.victims.len())
    }
}

/// Removes all pods of lower priority from a copy, and adds back each that leaves enough room: first those that would violate
/// a budget, and among these and the others by priority, highest first.
fn select_victims_on_node(
    node: &NodeInfo,
    pod: &PodInfo,
    simulation: &mut Simulation,
    volumes: &Volumes,
    budgets: &Budgets,
) -> Option<Candidate> {
    let mut others: Vec<Arc<PodInfo>> = lower_priority_pods(pod, node).cloned().collect();
    others.sort_by_key(|other| (Reverse(other.priority), other.key.clone()));
    let violates = budgets.violating(&others);
    let mut others: Vec<(Arc<PodInfo>, bool)> = others.into_iter().zip(violates).collect();
    others.sort_by_key(|(_, violates)| !violates);
    others.iter().for_each(|(other, _)| simulation.without(&node.name, other));
    let mut candidate = Candidate { node: node.name.clone(), victims: Vec::new(), pdb_violations: 0 };
    let fits = simulation.fits(pod, volumes, &node.name);
    for (other, violates) in &others {
        simulation.with(&node.name, other);
        if fits && !simulation.fits(pod, volumes, &node.name) {
            simulation.without(&node.name, other);
            candidate.victims.push(other.clone());
            candidate.pdb_violations += usize::from(*violates);
        }
    }
    // Restores the copy for the next node.
    candidate.victims.iter().for_each(|victim| simulation.with(&node.name, victim));
    (fits && !candidate.victims.is_empty()).then_some(candidate)
}

/// A copy of the cache, to try preemption on.
struct Simulation {
    state: SchedulerCache,
    anti_affinity_pods: std::collections::BTreeMap<windlass::Key, Arc<PodInfo>>,
}

impl Simulation {
    fn like(state: &SchedulerCache) -> Self {
        let mut like = SchedulerCache::default();
        like.namespaces.clone_from(&state.namespaces);
        like.nominated.clone_from(&state.nominated);
        like.anti_affinity_pods.clone_from(&state.anti_affinity_pods);
        for node in state.nodes.values() {
            let mut copy = NodeInfo {
                name: node.name.clone(),
                known: node.known,
                labels: node.labels.clone(),
                taints: node.taints.clone(),
                unschedulable: node.unschedulable,
                allocatable: node.allocatable.clone(),
                ..NodeInfo::default()
            };
            node.pods.values().for_each(|pod| copy.add(pod.clone()));
            like.nodes.insert(node.name.clone(), copy);
        }
        Self { state: like, anti_affinity_pods: state.anti_affinity_pods.clone() }
    }

    fn without(&mut self, node: &str, pod: &PodInfo) {
        if let Some(node) = self.state.nodes.get_mut(node) {
            node.remove(&pod.key);
        }
        self.state.anti_affinity_pods.remove(&pod.key);
    }

    fn with(&mut self, node: &str, pod: &Arc<PodInfo>) {
        if let Some(node) = self.state.nodes.get_mut(node) {
            node.add(pod.clone());
        }
        if let Some(holder) = self.anti_affinity_pods.get(&pod.key) {
            self.state.anti_affinity_pods.insert(pod.key.clone(), holder.clone());
        }
    }

    fn fits(&self, pod: &PodInfo, volumes: &Volumes, node: &str) -> bool {
        let Some(there) = self.state.nodes.get(node) else { return false };
        NodeFilter::of(pod, &self.state, volumes).check_node(there).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::json;
    use windlass::Key;
    use windlass::cache::{Cache, Namespaces};

    fn info(name: &str, priority: i32, cpu: &str) -> Arc<PodInfo> {
        let key = Key::new("".into(), Some("default"), name);
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"name": name, "all": "yes"}},
            "spec": {"priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        }))
        .unwrap();
        Arc::new(PodInfo::of(&key, &pod).unwrap())
    }

    fn volumes() -> Volumes {
        Volumes::of(&Cache::new("".into(), Namespaces::All))
    }

    /// Two nodes with four CPUs and these pods: name, priority, CPU and node.
    fn cache_with(pods: &[(&str, i32, &str, &str)]) -> SchedulerCache {
        let mut state = SchedulerCache::default();
        for name in ["n0", "n1"] {
            let node: Node = serde_json::from_value(json!({
                "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "10"}},
            }))
            .unwrap();
            state.node(name, Some(&node));
        }
        for (name, priority, cpu, node) in pods {
            state.assume(&info(name, *priority, cpu), node);
        }
        state
    }

    /// Budgets: the label that they select, and how many disruptions are allowed.
    fn budgets(all: &[(&str, &str, i32)]) -> Vec<Arc<PodDisruptionBudget>> {
        let budget = |(key, value, allowed): &(&str, &str, i32)| {
            let budget = json!({
                "metadata": {"name": value, "namespace": "default"},
                "spec": {"selector": {"matchLabels": {*key: value}}},
                "status": {
                    "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
                },
            });
            Arc::new(serde_json::from_value(budget).unwrap())
        };
        all.iter().map(budget).collect()
    }

    fn chosen(
        pod: &PodInfo,
        state: &SchedulerCache,
        budgets: &[Arc<PodDisruptionBudget>],
    ) -> Option<(String, Vec<String>)> {
        let all = ["n0".to_owned(), "n1".to_owned()];
        let candidate = choose(pod, state, &volumes(), budgets, &all)?;
        Some((candidate.node, candidate.victims.iter().map(|victim| victim.key.name().to_owned()).collect()))
    }

    #[test]
    fn as_few_and_as_unimportant_as_will_do_are_ended() {
        let state = cache_with(&[
            ("a", 1, "1", "n0"),
            ("b", 2, "3", "n0"),
            ("c", 1, "2", "n1"),
            ("d", 1, "2", "n1"),
            ("e", 9, "0", "n1"),
        ]);
        let nobody = budgets(&[]);
        let (node, victims) = chosen(&info("new", 5, "2"), &state, &nobody).unwrap();
        assert_eq!((node.as_str(), victims.len()), ("n1", 1));
        assert!(chosen(&info("small", 1, "2"), &state, &nobody).is_none(), "nobody matters less");
    }

    #[test]
    fn a_node_where_no_budget_is_broken_is_preferred_even_to_less_important_victims() {
        let state = cache_with(&[("a", 1, "4", "n0"), ("b", 3, "4", "n1")]);
        let new = info("new", 5, "2");
        let named = |candidate: Option<(String, Vec<String>)>| candidate.unwrap().1;
        assert_eq!(named(chosen(&new, &state, &budgets(&[]))), ["a"]);
        assert_eq!(named(chosen(&new, &state, &budgets(&[("name", "a", 0)]))), ["b"]);
        assert_eq!(named(chosen(&new, &state, &budgets(&[("name", "a", 1)]))), ["a"], "one of them may go");
        let both = budgets(&[("all", "yes", 0)]);
        assert_eq!(named(chosen(&new, &state, &both)), ["a"], "where it cannot be helped, it is broken");
    }

    #[test]
    fn on_a_node_those_whom_a_budget_guards_stay_if_they_can() {
        let state = cache_with(&[("a", 1, "2", "n0"), ("b", 3, "2", "n0"), ("c", 9, "4", "n1")]);
        let new = info("new", 5, "2");
        assert_eq!(chosen(&new, &state, &budgets(&[])).unwrap().1, ["a"]);
        assert_eq!(chosen(&new, &state, &budgets(&[("name", "a", 0)])).unwrap().1, ["b"]);
        let one_of_all = budgets(&[("all", "yes", 1)]);
        assert_eq!(
            chosen(&new, &state, &one_of_all).unwrap().1,
            ["b"],
            "the one that may go is the first counted"
        );
        let large = chosen(&info("large", 5, "4"), &state, &budgets(&[("name", "a", 0)])).unwrap();
        assert_eq!(large.1.len(), 2, "both are in the way");
    }
}
