//! The scheduler's cache: nodes and the pods on them, assumed ones included, kept up to date change by change.

use super::info::{NodeInfo, PodInfo, occupies_node};
use super::node_affinity::Namespaces;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use windlass::Key;

/// What a change could mean to unschedulable pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClusterEvent {
    /// Nothing.
    None,
    /// A pod was assigned: pods with affinity may fit.
    PodAssigned,
    /// There is more room, or a node accepts more pods.
    Room,
}

/// The nodes, the pods on them, and pods that are assumed on them.
#[derive(Debug, Default)]
pub(super) struct SchedulerCache {
    pub(super) nodes: BTreeMap<String, NodeInfo>,
    pub(super) namespaces: Namespaces,
    /// The node of each pod that occupies one, and whether it is only assumed.
    places: HashMap<Key, (String, bool)>,
    /// Pods with required anti-affinity, with their nodes.
    pub(super) anti_affinity_pods: BTreeMap<Key, Arc<PodInfo>>,
    /// Nodes that are nominated for preempting pods.
    pub(super) nominated: HashMap<Key, (String, Arc<PodInfo>)>,
}

impl SchedulerCache {
    pub(super) fn node_count(&self) -> usize {
        self.nodes.values().filter(|node| node.known).count()
    }

    /// Handles a Node that was added, changed or deleted.
    pub(super) fn node(&mut self, name: &str, node: Option<&Node>) -> ClusterEvent {
        let info = self.nodes.entry(name.to_owned()).or_default();
        info.name = name.to_owned();
        match node {
            Some(node) => {
                if info.describe(node) {
                    ClusterEvent::Room
                } else {
                    ClusterEvent::None
                }
            }
            None => {
                info.known = false;
                if info.pods.is_empty() {
                    self.nodes.remove(name);
                }
                ClusterEvent::None
            }
        }
    }

    /// Handles a pod that was added, changed or deleted.
    pub(super) fn pod(&mut self, key: &Key, pod: Option<&Pod>) -> ClusterEvent {
        let Some(pod) = pod.filter(|pod| occupies_node(pod)) else {
            // An assumed pod is not observed on its node yet: that it is pending is no change.
            let assumed = self.places.get(key).is_some_and(|(_, assumed)| *assumed);
            if assumed && pod.is_some_and(crate::pods::is_active) {
                return ClusterEvent::None;
            }
            return if self.forget(key) { ClusterEvent::Room } else { ClusterEvent::None };
        };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        if let Some((place, assumed)) = self.places.get_mut(key)
            && place == node
            && let Some(known) = self.nodes.get(node).and_then(|node| node.pods.get(key))
            && same(known, pod)
        {
            let event = if *assumed { ClusterEvent::PodAssigned } else { ClusterEvent::None };
            *assumed = false;
            return event;
        }
        self.forget(key);
        let Some(info) = PodInfo::of(key, pod) else { return ClusterEvent::None };
        self.place(Arc::new(info), node, false);
        ClusterEvent::PodAssigned
    }

    /// Assumes a pod on a node before the API shows it there.
    pub(super) fn assume(&mut self, pod: &Arc<PodInfo>, node: &str) {
        self.forget(&pod.key);
        self.place(pod.clone(), node, true);
    }

    /// Forgets an assumed pod whose binding failed.
    pub(super) fn forget_assumed(&mut self, key: &Key) {
        if self.places.get(key).is_some_and(|(_, assumed)| *assumed) {
            self.forget(key);
        }
    }

    pub(super) fn is_placed(&self, key: &Key) -> bool {
        self.places.contains_key(key)
    }

    fn place(&mut self, pod: Arc<PodInfo>, node: &str, assumed: bool) {
        self.nominated.remove(&pod.key);
        let info = self.nodes.entry(node.to_owned()).or_default();
        node.clone_into(&mut info.name);
        info.add(pod.clone());
        self.places.insert(pod.key.clone(), (node.to_owned(), assumed));
        if !pod.anti_affinity_terms().is_empty() {
            let mut there = (*pod).clone();
            node.clone_into(&mut there.node);
            self.anti_affinity_pods.insert(pod.key.clone(), Arc::new(there));
        }
    }

    /// Returns whether it was on a node.
    fn forget(&mut self, key: &Key) -> bool {
        self.anti_affinity_pods.remove(key);
        self.nominated.remove(key);
        let Some((node, _)) = self.places.remove(key) else { return false };
        if let Some(info) = self.nodes.get_mut(&node) {
            info.remove(key);
            if !info.known && info.pods.is_empty() {
                self.nodes.remove(&node);
            }
        }
        true
    }
}

/// Whether the info of a pod is still right. Its requests do not change while it is bound, except by a resize.
fn same(known: &PodInfo, pod: &Pod) -> bool {
    let meta = &pod.metadata;
    let none = BTreeMap::new();
    meta.uid.as_deref() == Some(known.uid.as_str())
        && meta.labels.as_ref().unwrap_or(&none) == &known.labels
        && meta.deletion_timestamp.is_some() == known.terminating
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

    fn used(state: &SchedulerCache) -> (i128, usize) {
        state.nodes.get("n1").map_or((0, 0), |node| (node.used.get("cpu"), node.pods.len()))
    }

    #[test]
    fn what_is_on_a_node_is_counted_once_however_it_is_told() {
        let mut state = SchedulerCache::default();
        let (key, unscheduled) = pod("a", None, "Pending");
        state.assume(&Arc::new(PodInfo::of(&key, &unscheduled).unwrap()), "n1");
        assert_eq!(state.pod(&key, Some(&unscheduled)), ClusterEvent::None, "it was assumed meanwhile");
        assert_eq!(used(&state), (1000, 1));
        let (_, there) = pod("a", Some("n1"), "Running");
        assert_eq!(state.pod(&key, Some(&there)), ClusterEvent::PodAssigned);
        assert_eq!(state.pod(&key, Some(&there)), ClusterEvent::None);
        state.forget_assumed(&key);
        assert_eq!(used(&state), (1000, 1), "it is there, and no longer assumed");
        let (_, ended) = pod("a", Some("n1"), "Succeeded");
        assert_eq!(state.pod(&key, Some(&ended)), ClusterEvent::Room);
        assert_eq!(used(&state), (0, 0));
        assert_eq!(state.pod(&key, None), ClusterEvent::None);
    }
}
