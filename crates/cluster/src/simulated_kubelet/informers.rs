//! The informers that the simulated kubelets of a process share: one watch of pods and one of Nodes, with each pod's changes
//! passed on to its own kubelet.

use super::addresses::Range;
use super::pod_workers::PodWorkers;
use crate::pods::{BY_NODE, node_of};
use k8s_openapi::api::core::v1::{Node, Pod};
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use windlass::Key;
use windlass::cache::{AnyObject, Cache, Changed, Listening, Opened, Scope};

/// Informers for any number of simulated kubelets: each pod is watched, decoded and held once. Cheap to clone.
///
/// ```
/// use windlass::cache::{Cache, Namespaces};
/// use windlass_cluster::simulated_kubelet::SharedInformers;
///
/// let cache = Cache::new("local".into(), Namespaces::All);
/// let informers = SharedInformers::new(&cache);    // before the cache is started
/// ```
#[derive(Clone)]
pub struct SharedInformers {
    shared: Arc<Shared>,
}

struct Shared {
    pods: Opened<Pod>,
    nodes: Opened<Node>,
    kubelets: Arc<Kubelets>,
    /// Pod CIDRs chosen for nodes that are not in the cache yet.
    ranges: Mutex<HashSet<Range>>,
    _listening: Listening,
}

impl std::fmt::Debug for SharedInformers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedInformers").field("nodes", &self.shared.kubelets.0.read().len()).finish()
    }
}

impl SharedInformers {
    /// Informers on a cache of all pods, which others may use too.
    pub fn new(cache: &Cache) -> Self {
        Self::scoped(cache, Scope::default(), Scope::default())
    }

    /// Informers for the Nodes and pods within these scopes.
    pub(super) fn scoped(cache: &Cache, nodes: Scope, pods: Scope) -> Self {
        let (pods, nodes) = (cache.open::<Pod>(pods), cache.open::<Node>(nodes));
        let kubelets = Arc::new(Kubelets::default());
        let handler = kubelets.clone();
        let _listening = pods.listen_while(Arc::new(move |changed| handler.pod_changed(changed)));
        let shared = Shared { pods, nodes, kubelets, ranges: Mutex::default(), _listening };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn pods(&self) -> &Opened<Pod> {
        &self.shared.pods
    }

    /// The Node of this name, if the cache has it.
    pub(super) fn node(&self, name: &str) -> Option<Arc<Node>> {
        let nodes = &self.shared.nodes;
        nodes.get(&Key::new(nodes.cluster().clone(), None, name))
    }

    /// A pod CIDR that is neither in `taken` nor was chosen before.
    pub(super) fn free_range<'a>(&self, taken: impl Iterator<Item = &'a str>) -> Range {
        let mut chosen = self.shared.ranges.lock();
        let taken = taken.filter_map(Range::parse).chain(chosen.iter().copied()).collect();
        let range = Range::free(&taken);
        chosen.insert(range);
        range
    }

    /// Adds the kubelet of a node: it gets the pods that are bound to it already, and then every change.
    pub(super) fn add_kubelet(&self, name: &str, kubelet: &Arc<PodWorkers>) {
        {
            let mut kubelets = self.shared.kubelets.0.write();
            kubelets.retain(|_, kubelet| kubelet.strong_count() > 0);
            kubelets.insert(name.to_owned(), Arc::downgrade(kubelet));
        }
        let pods = &self.shared.pods;
        for pod in pods.find(BY_NODE, name) {
            kubelet.update_pod(&Key::of(pods.cluster().clone(), &pod.metadata), &pod, true);
        }
    }
}

/// The running kubelets, by the name of their node.
#[derive(Default)]
struct Kubelets(RwLock<HashMap<String, Weak<PodWorkers>>>);

impl Kubelets {
    fn of(&self, pod: &Pod) -> Option<Arc<PodWorkers>> {
        self.0.read().get(node_of(pod)?)?.upgrade()
    }

    fn pod_changed(&self, changed: &Changed) {
        let (old, new) = (pod_in(changed.old.as_ref()), pod_in(changed.new.as_ref()));
        if let Some(new) = new
            && let Some(kubelet) = self.of(new)
        {
            let first = old.is_none_or(|old| node_of(old) != node_of(new));
            kubelet.update_pod(&changed.key, new, first);
        }
        let same = |old: &Pod| new.is_some_and(|new| new.metadata.uid == old.metadata.uid);
        if let Some(old) = old.filter(|old| !same(old))
            && let Some(kubelet) = self.of(old)
        {
            kubelet.remove_pod(old);
        }
    }
}

fn pod_in(object: Option<&Arc<dyn AnyObject>>) -> Option<&Pod> {
    object.and_then(|object| object.as_any().downcast_ref::<Pod>())
}
