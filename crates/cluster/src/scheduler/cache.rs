//! What the scheduler knows: nodes with what is on them, kept up to date change by change.

use super::info::{NodeFacts, PodFacts, takes_room};
use super::node_affinity::Namespaces;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use windlass::Key;

/// What a change could mean to pods that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum News {
    /// Nothing.
    None,
    /// A pod is somewhere now: pods that want to be near others may fit.
    Company,
    /// There is more room, or it is open to others.
    Room,
}

/// The nodes, what is on them, and what was given to them and is not seen there yet.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) nodes: BTreeMap<String, NodeFacts>,
    pub(super) namespaces: Namespaces,
    /// Where each pod is that takes room, and whether that is only assumed.
    places: HashMap<Key, (String, bool)>,
    /// Pods that keep others away, by where they are.
    pub(super) keepers: BTreeMap<Key, Arc<PodFacts>>,
    /// Room that is kept on a node for a pod that others were asked to make room for.
    pub(super) nominated: HashMap<Key, (String, Arc<PodFacts>)>,
}

impl State {
    pub(super) fn node_count(&self) -> usize {
        self.nodes.values().filter(|node| node.known).count()
    }

    /// A Node is there, or another by now, or gone.
    pub(super) fn node(&mut self, name: &str, node: Option<&Node>) -> News {
        let facts = self.nodes.entry(name.to_owned()).or_default();
        facts.name = name.to_owned();
        match node {
            Some(node) => {
                if facts.describe(node) {
                    News::Room
                } else {
                    News::None
                }
            }
            None => {
                facts.known = false;
                if facts.pods.is_empty() {
                    self.nodes.remove(name);
                }
                News::None
            }
        }
    }

    /// A pod is there, or another by now, or gone.
    pub(super) fn pod(&mut self, key: &Key, pod: Option<&Pod>) -> News {
        let Some(pod) = pod.filter(|pod| takes_room(pod)) else {
            // One that is only assumed is not seen on its node yet: that it waits is no news.
            let assumed = self.places.get(key).is_some_and(|(_, assumed)| *assumed);
            if assumed && pod.is_some_and(crate::pods::is_active) {
                return News::None;
            }
            return if self.forget(key) { News::Room } else { News::None };
        };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        if let Some((place, assumed)) = self.places.get_mut(key)
            && place == node
            && let Some(known) = self.nodes.get(node).and_then(|node| node.pods.get(key))
            && same(known, pod)
        {
            let news = if *assumed { News::Company } else { News::None };
            *assumed = false;
            return news;
        }
        self.forget(key);
        let Some(facts) = PodFacts::of(key, pod) else { return News::None };
        self.place(Arc::new(facts), node, false);
        News::Company
    }

    /// Counts a pod on a node before the API shows it there.
    pub(super) fn assume(&mut self, pod: &Arc<PodFacts>, node: &str) {
        self.forget(&pod.key);
        self.place(pod.clone(), node, true);
    }

    /// A pod that was assumed somewhere did not get there.
    pub(super) fn give_up(&mut self, key: &Key) {
        if self.places.get(key).is_some_and(|(_, assumed)| *assumed) {
            self.forget(key);
        }
    }

    pub(super) fn is_placed(&self, key: &Key) -> bool {
        self.places.contains_key(key)
    }

    fn place(&mut self, pod: Arc<PodFacts>, node: &str, assumed: bool) {
        self.nominated.remove(&pod.key);
        let facts = self.nodes.entry(node.to_owned()).or_default();
        node.clone_into(&mut facts.name);
        facts.add(pod.clone());
        self.places.insert(pod.key.clone(), (node.to_owned(), assumed));
        if !pod.apart().is_empty() {
            let mut there = (*pod).clone();
            node.clone_into(&mut there.node);
            self.keepers.insert(pod.key.clone(), Arc::new(there));
        }
    }

    /// Answers whether it was anywhere.
    fn forget(&mut self, key: &Key) -> bool {
        self.keepers.remove(key);
        self.nominated.remove(key);
        let Some((node, _)) = self.places.remove(key) else { return false };
        if let Some(facts) = self.nodes.get_mut(&node) {
            facts.remove(key);
            if !facts.known && facts.pods.is_empty() {
                self.nodes.remove(&node);
            }
        }
        true
    }
}

/// Whether what is known of a pod still holds. What it asks for does not change while it is on a node, but for a resize.
fn same(known: &PodFacts, pod: &Pod) -> bool {
    let meta = &pod.metadata;
    let none = BTreeMap::new();
    meta.uid.as_deref() == Some(known.uid.as_str())
        && meta.labels.as_ref().unwrap_or(&none) == &known.labels
        && meta.deletion_timestamp.is_some() == known.going
        && meta.generation == known.generation
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, node: Option<&str>, phase: &str) -> (Key, Pod) {
        let pod = json!({
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": phase},
        });
        (Key::new("".into(), Some("default"), name), serde_json::from_value(pod).unwrap())
    }

    fn used(state: &State) -> (i128, usize) {
        state.nodes.get("n1").map_or((0, 0), |node| (node.used.get("cpu"), node.pods.len()))
    }

    #[test]
    fn what_is_on_a_node_is_counted_once_however_it_is_told() {
        let mut state = State::default();
        let (key, waiting) = pod("a", None, "Pending");
        state.assume(&Arc::new(PodFacts::of(&key, &waiting).unwrap()), "n1");
        assert_eq!(state.pod(&key, Some(&waiting)), News::None, "it was assumed meanwhile");
        assert_eq!(used(&state), (1000, 1));
        let (_, there) = pod("a", Some("n1"), "Running");
        assert_eq!(state.pod(&key, Some(&there)), News::Company);
        assert_eq!(state.pod(&key, Some(&there)), News::None);
        state.give_up(&key);
        assert_eq!(used(&state), (1000, 1), "it is there, and no longer assumed");
        let (_, ended) = pod("a", Some("n1"), "Succeeded");
        assert_eq!(state.pod(&key, Some(&ended)), News::Room);
        assert_eq!(used(&state), (0, 0));
        assert_eq!(state.pod(&key, None), News::None);
    }
}
