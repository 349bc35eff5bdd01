//! Whom to end so that a more important pod finds room. Pure: on one node, whom budgets do not guard, as few and as
//! unimportant as will do.

use super::cache::State;
use super::disruption_budgets::Budgets;
use super::filter::Question;
use super::info::{NodeFacts, PodFacts};
use super::volume_binding::Volumes;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use std::cmp::Reverse;
use std::sync::Arc;

/// Room that can be made on a node.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) node: String,
    /// Whom it costs, the most important first among those whom budgets guard, then among the others.
    pub(super) victims: Vec<Arc<PodFacts>>,
    /// How many of them break a budget by going.
    broken: usize,
}

/// So many nodes are looked at closely.
const LOOKED_AT: usize = 100;

/// The node on which room for a pod costs least: by the budgets that are broken, then by its most important victim, by how
/// important they are together, and by how many there are. None if the pod may not have others ended, if nobody's going would
/// help, or if room is being made for it already.
pub(super) fn choose(
    pod: &PodFacts,
    state: &State,
    volumes: &Volumes,
    budgets: &[Arc<PodDisruptionBudget>],
    curable: &[String],
) -> Option<Room> {
    if pod.never_preempts {
        return None;
    }
    if let Some((node, _)) = state.nominated.get(&pod.key)
        && state.nodes.get(node).is_some_and(|node| node.pods.values().any(|other| other.going))
    {
        return None;
    }
    let nodes = curable.iter().filter_map(|name| state.nodes.get(name));
    let nodes: Vec<&NodeFacts> =
        nodes.filter(|node| lesser(pod, node).next().is_some()).take(LOOKED_AT).collect();
    if nodes.is_empty() {
        return None;
    }
    let (mut world, budgets) = (World::like(state), Budgets::of(budgets));
    let rooms = nodes.into_iter().filter_map(|node| room_on(node, pod, &mut world, volumes, &budgets));
    rooms.min_by_key(Room::cost)
}

/// The pods of a node that matter less, and are not on their way out.
fn lesser<'n>(pod: &PodFacts, node: &'n NodeFacts) -> impl Iterator<Item = &'n Arc<PodFacts>> {
    let priority = pod.priority;
    node.pods.values().filter(move |other| other.priority < priority && !other.going)
}

impl Room {
    fn cost(&self) -> (usize, Option<i32>, i64, usize) {
        let priorities = self.victims.iter().map(|victim| victim.priority);
        // Counted from the lowest there is: many of little importance cost more than few.
        let sum = priorities.clone().map(|priority| i64::from(priority) - i64::from(i32::MIN)).sum();
        (self.broken, priorities.max(), sum, self.victims.len())
    }
}

/// Ends all that matter less, in thought, and lets back whoever leaves room enough: first those whom budgets guard, and of
/// these and of the others the most important first.
fn room_on(
    node: &NodeFacts,
    pod: &PodFacts,
    world: &mut World,
    volumes: &Volumes,
    budgets: &Budgets,
) -> Option<Room> {
    let mut others: Vec<Arc<PodFacts>> = lesser(pod, node).cloned().collect();
    others.sort_by_key(|other| (Reverse(other.priority), other.key.clone()));
    let guarded = budgets.guard(&others);
    let mut others: Vec<(Arc<PodFacts>, bool)> = others.into_iter().zip(guarded).collect();
    others.sort_by_key(|(_, guarded)| !guarded);
    others.iter().for_each(|(other, _)| world.without(&node.name, other));
    let mut room = Room { node: node.name.clone(), victims: Vec::new(), broken: 0 };
    let fits = world.has_room(pod, volumes, &node.name);
    for (other, guarded) in &others {
        world.with(&node.name, other);
        if fits && !world.has_room(pod, volumes, &node.name) {
            world.without(&node.name, other);
            room.victims.push(other.clone());
            room.broken += usize::from(*guarded);
        }
    }
    // As it was, for the next node.
    room.victims.iter().for_each(|victim| world.with(&node.name, victim));
    (fits && !room.victims.is_empty()).then_some(room)
}

/// What is known, to be changed in thought.
struct World {
    state: State,
    keepers: std::collections::BTreeMap<windlass::Key, Arc<PodFacts>>,
}

impl World {
    fn like(state: &State) -> Self {
        let mut like = State::default();
        like.namespaces.clone_from(&state.namespaces);
        like.nominated.clone_from(&state.nominated);
        like.keepers.clone_from(&state.keepers);
        for node in state.nodes.values() {
            let mut copy = NodeFacts {
                name: node.name.clone(),
                known: node.known,
                labels: node.labels.clone(),
                taints: node.taints.clone(),
                unschedulable: node.unschedulable,
                allocatable: node.allocatable.clone(),
                ..NodeFacts::default()
            };
            node.pods.values().for_each(|pod| copy.add(pod.clone()));
            like.nodes.insert(node.name.clone(), copy);
        }
        Self { state: like, keepers: state.keepers.clone() }
    }

    fn without(&mut self, node: &str, pod: &PodFacts) {
        if let Some(node) = self.state.nodes.get_mut(node) {
            node.remove(&pod.key);
        }
        self.state.keepers.remove(&pod.key);
    }

    fn with(&mut self, node: &str, pod: &Arc<PodFacts>) {
        if let Some(node) = self.state.nodes.get_mut(node) {
            node.add(pod.clone());
        }
        if let Some(keeper) = self.keepers.get(&pod.key) {
            self.state.keepers.insert(pod.key.clone(), keeper.clone());
        }
    }

    fn has_room(&self, pod: &PodFacts, volumes: &Volumes, node: &str) -> bool {
        let Some(there) = self.state.nodes.get(node) else { return false };
        Question::of(pod, &self.state, volumes).ask(there).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::json;
    use windlass::Key;
    use windlass::cache::{Cache, Namespaces};

    fn facts(name: &str, priority: i32, cpu: &str) -> Arc<PodFacts> {
        let key = Key::new("".into(), Some("default"), name);
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"name": name, "all": "yes"}},
            "spec": {"priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        }))
        .unwrap();
        Arc::new(PodFacts::of(&key, &pod).unwrap())
    }

    fn volumes() -> Volumes {
        Volumes::of(&Cache::new("".into(), Namespaces::All))
    }

    /// Two nodes with four CPUs and these pods: name, priority, CPU and node.
    fn world(pods: &[(&str, i32, &str, &str)]) -> State {
        let mut state = State::default();
        for name in ["n0", "n1"] {
            let node: Node = serde_json::from_value(json!({
                "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "10"}},
            }))
            .unwrap();
            state.node(name, Some(&node));
        }
        for (name, priority, cpu, node) in pods {
            state.assume(&facts(name, *priority, cpu), node);
        }
        state
    }

    /// Budgets: whom they are about, by a label, and how many of these may go.
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
        pod: &PodFacts,
        state: &State,
        budgets: &[Arc<PodDisruptionBudget>],
    ) -> Option<(String, Vec<String>)> {
        let all = ["n0".to_owned(), "n1".to_owned()];
        let room = choose(pod, state, &volumes(), budgets, &all)?;
        Some((room.node, room.victims.iter().map(|victim| victim.key.name().to_owned()).collect()))
    }

    #[test]
    fn as_few_and_as_unimportant_as_will_do_are_ended() {
        let state = world(&[
            ("a", 1, "1", "n0"),
            ("b", 2, "3", "n0"),
            ("c", 1, "2", "n1"),
            ("d", 1, "2", "n1"),
            ("e", 9, "0", "n1"),
        ]);
        let nobody = budgets(&[]);
        let (node, victims) = chosen(&facts("new", 5, "2"), &state, &nobody).unwrap();
        assert_eq!((node.as_str(), victims.len()), ("n1", 1));
        assert!(chosen(&facts("small", 1, "2"), &state, &nobody).is_none(), "nobody matters less");
    }

    #[test]
    fn a_node_where_no_budget_is_broken_is_preferred_even_to_less_important_victims() {
        let state = world(&[("a", 1, "4", "n0"), ("b", 3, "4", "n1")]);
        let new = facts("new", 5, "2");
        let named = |room: Option<(String, Vec<String>)>| room.unwrap().1;
        assert_eq!(named(chosen(&new, &state, &budgets(&[]))), ["a"]);
        assert_eq!(named(chosen(&new, &state, &budgets(&[("name", "a", 0)]))), ["b"]);
        assert_eq!(named(chosen(&new, &state, &budgets(&[("name", "a", 1)]))), ["a"], "one of them may go");
        let both = budgets(&[("all", "yes", 0)]);
        assert_eq!(named(chosen(&new, &state, &both)), ["a"], "where it cannot be helped, it is broken");
    }

    #[test]
    fn on_a_node_those_whom_a_budget_guards_stay_if_they_can() {
        let state = world(&[("a", 1, "2", "n0"), ("b", 3, "2", "n0"), ("c", 9, "4", "n1")]);
        let new = facts("new", 5, "2");
        assert_eq!(chosen(&new, &state, &budgets(&[])).unwrap().1, ["a"]);
        assert_eq!(chosen(&new, &state, &budgets(&[("name", "a", 0)])).unwrap().1, ["b"]);
        let one_of_all = budgets(&[("all", "yes", 1)]);
        assert_eq!(
            chosen(&new, &state, &one_of_all).unwrap().1,
            ["b"],
            "the one that may go is the first counted"
        );
        let large = chosen(&facts("large", 5, "4"), &state, &budgets(&[("name", "a", 0)])).unwrap();
        assert_eq!(large.1.len(), 2, "both are in the way");
    }
}
