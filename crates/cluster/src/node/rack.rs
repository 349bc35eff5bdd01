//! What the simulated nodes of one process share: one cache of pods and Nodes for all of them, and which pods are whose.

use super::addresses::Range;
use super::work::Kubelet;
use crate::pods::{BY_NODE, node_of};
use k8s_openapi::api::core::v1::{Node, Pod};
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use windlass::Key;
use windlass::cache::{AnyObject, Cache, Changed, Listening, Opened, Scope};

/// A cache that simulated nodes share: however many there are, each pod is watched, read and held once. Cheap to clone.
///
/// ```
/// use windlass::cache::{Cache, Namespaces};
/// use windlass_cluster::node::Rack;
///
/// let cache = Cache::new("local".into(), Namespaces::All);
/// let rack = Rack::on(&cache);    // before the cache is started
/// ```
#[derive(Clone)]
pub struct Rack {
    shared: Arc<Shared>,
}

struct Shared {
    pods: Opened<Pod>,
    nodes: Opened<Node>,
    kubelets: Arc<Kubelets>,
    /// What was chosen for nodes that others may not see yet.
    ranges: Mutex<HashSet<Range>>,
    _listening: Listening,
}

impl std::fmt::Debug for Rack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rack").field("nodes", &self.shared.kubelets.0.read().len()).finish()
    }
}

impl Rack {
    /// For nodes that share this cache of all pods, with whoever else uses it.
    pub fn on(cache: &Cache) -> Self {
        Self::of(cache, Scope::default(), Scope::default())
    }

    /// For nodes whose Nodes and pods are all within these scopes.
    pub(super) fn of(cache: &Cache, nodes: Scope, pods: Scope) -> Self {
        let (pods, nodes) = (cache.open::<Pod>(pods), cache.open::<Node>(nodes));
        let kubelets = Arc::new(Kubelets::default());
        let heard = kubelets.clone();
        let _listening = pods.listen_while(Arc::new(move |changed| heard.hear(changed)));
        let shared = Shared { pods, nodes, kubelets, ranges: Mutex::default(), _listening };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn pods(&self) -> &Opened<Pod> {
        &self.shared.pods
    }

    /// The Node of this name, as far as it is known.
    pub(super) fn node(&self, name: &str) -> Option<Arc<Node>> {
        let nodes = &self.shared.nodes;
        nodes.get(&Key::new(nodes.cluster().clone(), None, name))
    }

    /// A range that nobody has, beside those that are `taken`.
    pub(super) fn free_range<'a>(&self, taken: impl Iterator<Item = &'a str>) -> Range {
        let mut chosen = self.shared.ranges.lock();
        let taken = taken.filter_map(Range::parse).chain(chosen.iter().copied()).collect();
        let range = Range::free(&taken);
        chosen.insert(range);
        range
    }

    /// From now on a node hears of its pods, and first of those that it has already.
    pub(super) fn enter(&self, name: &str, kubelet: &Arc<Kubelet>) {
        {
            let mut kubelets = self.shared.kubelets.0.write();
            kubelets.retain(|_, kubelet| kubelet.strong_count() > 0);
            kubelets.insert(name.to_owned(), Arc::downgrade(kubelet));
        }
        let pods = &self.shared.pods;
        for pod in pods.find(BY_NODE, name) {
            kubelet.given(&Key::of(pods.cluster().clone(), &pod.metadata), &pod, true);
        }
    }
}

/// The nodes at work, by name.
#[derive(Default)]
struct Kubelets(RwLock<HashMap<String, Weak<Kubelet>>>);

impl Kubelets {
    fn of(&self, pod: &Pod) -> Option<Arc<Kubelet>> {
        self.0.read().get(node_of(pod)?)?.upgrade()
    }

    fn hear(&self, changed: &Changed) {
        let (old, new) = (pod_in(changed.old.as_ref()), pod_in(changed.new.as_ref()));
        if let Some(new) = new
            && let Some(kubelet) = self.of(new)
        {
            let first = old.is_none_or(|old| node_of(old) != node_of(new));
            kubelet.given(&changed.key, new, first);
        }
        let stays = |old: &Pod| new.is_some_and(|new| new.metadata.uid == old.metadata.uid);
        if let Some(old) = old.filter(|old| !stays(old))
            && let Some(kubelet) = self.of(old)
        {
            kubelet.gone(old);
        }
    }
}

fn pod_in(object: Option<&Arc<dyn AnyObject>>) -> Option<&Pod> {
    object.and_then(|object| object.as_any().downcast_ref::<Pod>())
}
