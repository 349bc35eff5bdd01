//! Whom to end so that a more important pod finds room. Pure, and simple: on one node, as few and as unimportant as will do.

use super::facts::{NodeFacts, PodFacts};
use super::filter::Question;
use super::state::State;
use super::volumes::Volumes;
use std::sync::Arc;

/// Room that can be made on a node.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) node: String,
    pub(super) victims: Vec<Arc<PodFacts>>,
}

/// So many nodes are looked at closely.
const LOOKED_AT: usize = 100;

/// The node on which room for a pod costs least: by its most important victim, then by how many there are. None if the pod may
/// not have others ended, if nobody's going would help, or if room is being made for it already.
pub(super) fn choose(pod: &PodFacts, state: &State, volumes: &Volumes, curable: &[String]) -> Option<Room> {
    if pod.never_preempts {
        return None;
    }
    if let Some((node, _)) = state.nominated.get(&pod.key)
        && state.nodes.get(node).is_some_and(|node| node.pods.values().any(|other| other.going))
    {
        return None;
    }
    let less = |other: &&Arc<PodFacts>| other.priority < pod.priority && !other.going;
    let nodes = curable.iter().filter_map(|name| state.nodes.get(name));
    let rooms = nodes.take(LOOKED_AT).filter_map(|node| {
        let mut victims: Vec<Arc<PodFacts>> = node.pods.values().filter(less).cloned().collect();
        // The least important go first.
        victims.sort_by_key(|other| (other.priority, other.key.clone()));
        if victims.is_empty() {
            return None;
        }
        let enough =
            (1..=victims.len()).find(|count| fits_without(pod, state, volumes, node, &victims[..*count]))?;
        victims.truncate(enough);
        // Those that went without need stay.
        let mut kept = victims.clone();
        for victim in &victims {
            let rest: Vec<_> = kept.iter().filter(|other| other.key != victim.key).cloned().collect();
            if !rest.is_empty() && fits_without(pod, state, volumes, node, &rest) {
                kept = rest;
            }
        }
        Some(Room { node: node.name.clone(), victims: kept })
    });
    rooms.min_by_key(|room| (room.victims.iter().map(|victim| victim.priority).max(), room.victims.len()))
}

fn fits_without(
    pod: &PodFacts,
    state: &State,
    volumes: &Volumes,
    node: &NodeFacts,
    gone: &[Arc<PodFacts>],
) -> bool {
    // A world of its own, with this node as it would be: asked seldom, so it may cost.
    let mut world = State::default();
    world.namespaces.clone_from(&state.namespaces);
    for other in state.nodes.values() {
        let mut copy = NodeFacts {
            name: other.name.clone(),
            known: other.known,
            labels: other.labels.clone(),
            taints: other.taints.clone(),
            unschedulable: other.unschedulable,
            allocatable: other.allocatable.clone(),
            ..NodeFacts::default()
        };
        let stays =
            |pod: &&Arc<PodFacts>| other.name != node.name || !gone.iter().any(|gone| gone.key == pod.key);
        other.pods.values().filter(stays).for_each(|pod| copy.add(pod.clone()));
        world.nodes.insert(other.name.clone(), copy);
    }
    let keepers = state.keepers.iter().filter(|(key, _)| !gone.iter().any(|gone| gone.key == **key));
    world.keepers = keepers.map(|(key, keeper)| (key.clone(), keeper.clone())).collect();
    let Some(there) = world.nodes.get(&node.name) else { return false };
    Question::of(pod, &world, volumes).ask(there).is_ok()
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
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        }))
        .unwrap();
        Arc::new(PodFacts::of(&key, &pod).unwrap())
    }

    #[test]
    fn as_few_and_as_unimportant_as_will_do_are_ended() {
        let mut state = State::default();
        for name in ["n0", "n1"] {
            let node: Node = serde_json::from_value(json!({
                "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "10"}},
            }))
            .unwrap();
            state.node(name, Some(&node));
        }
        for (name, priority, cpu, node) in [
            ("a", 1, "1", "n0"),
            ("b", 2, "3", "n0"),
            ("c", 1, "2", "n1"),
            ("d", 1, "2", "n1"),
            ("e", 9, "0", "n1"),
        ] {
            state.assume(&facts(name, priority, cpu), node);
        }
        let volumes = Volumes::of(&Cache::new("".into(), Namespaces::All));
        let all = ["n0".to_owned(), "n1".to_owned()];
        let room = choose(&facts("new", 5, "2"), &state, &volumes, &all).unwrap();
        assert_eq!((room.node.as_str(), room.victims.len()), ("n1", 1));
        assert!(choose(&facts("small", 1, "2"), &state, &volumes, &all).is_none(), "nobody matters less");
    }
}
