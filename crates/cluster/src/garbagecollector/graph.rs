//! Owners and dependents: the caches of every kind that can be listed, watched and deleted, and the queue of objects whose
//! owners or dependents changed.

use super::absent_owners::Absent;
use super::decide::{DeletionState, Owner, deletion_state};
use crate::discovery::{Discovery, full_name};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Client;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use windlass::cache::{AnyObject, AnyOpened, Cache, Changed, Listening};
use windlass::clock::{Clock, Moment};
use windlass::queue::{Backoff, Priority, Queue, Taken};
use windlass::{Key, Kind, Recorder, Task};

/// Events own nothing.
const IGNORED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];
/// Groups whose objects define new kinds.
const DEFINING_GROUPS: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];
/// How long a waiting owner is left alone while its dependents are deleted one by one.
const WAITING_OWNER_DELAY: Duration = Duration::from_millis(100);

/// An object in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Item {
    pub(super) kind: Arc<Kind>,
    pub(super) key: Key,
    pub(super) uid: Arc<str>,
    /// Whether its deletion was observed. An object that is merely not found may exist: a kind is not watched while the API
    /// does not list it in discovery.
    pub(super) gone: bool,
}

/// The watched objects of a kind.
pub(super) struct Monitor {
    pub(super) kind: Arc<Kind>,
    pub(super) objects: AnyOpened,
    since: Moment,
    _listening: Listening,
}

/// What is known of the kinds, exchanged as a whole when that changes.
#[derive(Default)]
struct Kinds {
    monitors: Vec<Arc<Monitor>>,
    by_kind: HashMap<Arc<Kind>, usize>,
    /// By `apiVersion/Kind`, in every version: the kind as it is asked for, and the monitor if there is one.
    by_name: HashMap<String, (Arc<Kind>, Option<usize>)>,
}

/// Owners and dependents of all watched kinds.
pub(super) struct Graph {
    pub(super) client: Client,
    pub(super) recorder: Recorder,
    clock: Clock,
    cache: Cache,
    kinds: RwLock<Arc<Kinds>>,
    queue: Queue<Item>,
    pub(super) absent: Mutex<Absent>,
    defined: Notify,
}

impl Kinds {
    /// Keeps what was known of groups and versions that cannot be discovered now: they are not gone.
    fn keep_stale(&mut self, before: &Self, stale: &[String]) {
        let is_stale = |kind: &Kind| stale.iter().any(|known| *known == kind.api_version());
        for monitor in before.monitors.iter().filter(|monitor| is_stale(&monitor.kind)) {
            if !self.by_kind.contains_key(&monitor.kind) {
                self.by_kind.insert(monitor.kind.clone(), self.monitors.len());
                self.monitors.push(monitor.clone());
            }
        }
        for (name, (kind, _)) in before.by_name.iter().filter(|(_, (kind, _))| is_stale(kind)) {
            let at = self.by_kind.get(kind).copied();
            self.by_name.entry(name.clone()).or_insert_with(|| (kind.clone(), at));
        }
    }
}

impl Graph {
    pub(super) fn new(task: &Task) -> Arc<Self> {
        Arc::new(Self {
            client: task.client().clone(),
            recorder: task.recorder().clone(),
            clock: task.clock().clone(),
            cache: task.cache().clone(),
            kinds: RwLock::default(),
            queue: Queue::new(task.clock().clone(), Backoff::default()),
            absent: Mutex::default(),
            defined: Notify::new(),
        })
    }

    /// Watches the kinds of the discovery; those that are watched already stay. Returns the new ones.
    pub(super) fn watch(self: &Arc<Self>, discovery: &Discovery) -> Vec<Arc<Monitor>> {
        let before = self.kinds.read().clone();
        let (mut kinds, mut new) = (Kinds::default(), Vec::new());
        let mut by_plural = HashMap::new();
        let watched = discovery.preferred().filter(|served| {
            let kind = &served.kind;
            served.supports(&["list", "watch", "delete"]) && !IGNORED.contains(&(&*kind.group, &*kind.plural))
        });
        for served in watched {
            let monitor = match before.by_kind.get(&served.kind) {
                Some(at) => before.monitors[*at].clone(),
                None => {
                    let monitor = self.monitor(&served.kind);
                    new.push(monitor.clone());
                    monitor
                }
            };
            let at = kinds.monitors.len();
            by_plural.insert((&served.kind.group, &served.kind.plural), at);
            kinds.by_kind.insert(monitor.kind.clone(), at);
            kinds.monitors.push(monitor);
        }
        for served in discovery.iter() {
            let Kind { group, plural, kind, .. } = &served.kind;
            let at = by_plural.get(&(group, plural)).copied();
            let name = full_name(&served.kind.api_version(), kind);
            kinds.by_name.insert(name, (Arc::new(served.kind.clone()), at));
        }
        kinds.keep_stale(&before, &discovery.stale);
        *self.kinds.write() = Arc::new(kinds);
        new
    }

    fn monitor(self: &Arc<Self>, kind: &Kind) -> Arc<Monitor> {
        let kind = Arc::new(kind.clone());
        let objects = self.cache.open_any((*kind).clone());
        let (graph, of): (Weak<Self>, _) = (Arc::downgrade(self), kind.clone());
        let listening = objects.listen_while(Arc::new(move |changed| {
            if let Some(graph) = graph.upgrade() {
                graph.changed(&of, changed);
            }
        }));
        Arc::new(Monitor { kind, objects, since: self.clock.moment(), _listening: listening })
    }

    /// Resolves when discovery may have changed.
    pub(super) async fn kinds_changed(&self) {
        self.defined.notified().await;
    }

    pub(super) fn stop(&self) {
        self.queue.shutdown();
    }

    pub(super) async fn next(&self) -> Option<Taken<Item>> {
        self.queue.next().await
    }

    pub(super) fn done(&self, item: &Item) {
        self.queue.forget(item);
    }

    pub(super) fn requeue(&self, item: &Item) {
        self.queue.retry(item.clone());
    }

    pub(super) fn monitors(&self) -> Vec<Arc<Monitor>> {
        self.kinds.read().monitors.clone()
    }

    /// Whether the caches of all kinds are synced, or have had their time.
    pub(super) fn has_synced(&self) -> bool {
        let patience = super::SYNC_TIMEOUT;
        let late = |monitor: &Monitor| self.clock.moment() - monitor.since > patience;
        self.kinds.read().monitors.iter().all(|monitor| monitor.objects.is_synced() || late(monitor))
    }

    /// The object in the cache, if it has this UID.
    pub(super) fn find(&self, item: &Item) -> Option<Arc<dyn AnyObject>> {
        let kinds = self.kinds.read().clone();
        let found = kinds.monitors[*kinds.by_kind.get(&item.kind)?].objects.get(&item.key)?;
        (found.meta().uid.as_deref() == Some(&*item.uid)).then_some(found)
    }

    /// The kind of a reference, and its monitor if it is watched; none if it is not served.
    pub(super) fn kind_of(&self, reference: &OwnerReference) -> Option<(Arc<Kind>, Option<Arc<Monitor>>)> {
        let kinds = self.kinds.read();
        let (kind, at) = kinds.by_name.get(&full_name(&reference.api_version, &reference.kind))?;
        Some((kind.clone(), at.map(|at| kinds.monitors[at].clone())))
    }

    /// The key of an owner of this kind, referred to by an object in `namespace`.
    pub(super) fn key_of(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Key {
        Key::new(self.cache.cluster().clone(), namespace.filter(|_| kind.namespaced), name)
    }

    /// The state of an owner, if it is in the cache.
    pub(super) fn observed(&self, reference: &OwnerReference, namespace: Option<&str>) -> Option<Owner> {
        let (kind, monitor) = self.kind_of(reference)?;
        let owner = monitor?.objects.get(&self.key_of(&kind, namespace, &reference.name))?;
        let meta = owner.meta();
        if meta.uid.as_deref() != Some(&reference.uid) || (kind.namespaced && namespace.is_none()) {
            return None;
        }
        Some(if deletion_state(meta) == DeletionState::WaitingForDependents {
            Owner::Waiting
        } else {
            Owner::Solid
        })
    }

    /// All dependents of this UID.
    pub(super) fn dependents(&self, uid: &str) -> Vec<(Arc<Kind>, Arc<dyn AnyObject>)> {
        let monitors = self.monitors();
        let named = |object: &Arc<dyn AnyObject>| references(object.meta()).iter().any(|it| it.uid == uid);
        let of = |monitor: &Arc<Monitor>| {
            let kind = monitor.kind.clone();
            monitor.objects.owned_by(uid).into_iter().filter(named).map(move |object| (kind.clone(), object))
        };
        monitors.iter().flat_map(of).collect()
    }

    fn count_dependents(&self, uid: &str) -> usize {
        self.kinds.read().monitors.iter().map(|monitor| monitor.objects.count_owned_by(uid)).sum()
    }

    pub(super) fn add(&self, kind: &Arc<Kind>, meta: &ObjectMeta) {
        self.add_after(kind, meta, false, Duration::ZERO);
    }

    fn add_after(&self, kind: &Arc<Kind>, meta: &ObjectMeta, gone: bool, pause: Duration) {
        let key = Key::of(self.cache.cluster().clone(), meta);
        let uid = meta.uid.as_deref().unwrap_or_default().into();
        let item = Item { kind: kind.clone(), key, uid, gone };
        self.queue.add_at(item, self.clock.moment() + pause, Priority::NORMAL);
    }

    /// Queues all objects that need processing.
    pub(super) fn enqueue_all(&self) {
        for monitor in self.monitors() {
            for object in monitor.objects.list() {
                self.enqueue_if_due(&monitor.kind, object.meta());
            }
        }
    }

    fn enqueue_if_due(&self, kind: &Arc<Kind>, meta: &ObjectMeta) {
        let is_due = match deletion_state(meta) {
            DeletionState::Orphaning | DeletionState::WaitingForDependents => true,
            DeletionState::Terminating => false,
            DeletionState::Live => references(meta)
                .iter()
                .any(|owner| self.observed(owner, meta.namespace.as_deref()) != Some(Owner::Solid)),
        };
        if is_due {
            self.add(kind, meta);
        }
    }

    /// Handles every change of every object: cheap, and mostly there is nothing to do.
    fn changed(&self, kind: &Arc<Kind>, changed: &Changed) {
        // APIServices exist from the start: their first list is no change.
        if DEFINING_GROUPS.contains(&kind.group.as_ref())
            && !(changed.initial && kind.plural == "apiservices")
        {
            self.defined.notify_one();
        }
        // Everything is queued once all first lists are there; and an object that a new list lacks may still exist.
        if changed.initial {
            return;
        }
        let (old, new) = (changed.old.as_ref().map(|it| it.meta()), changed.new.as_ref().map(|it| it.meta()));
        match (old, new) {
            (None, Some(new)) => self.enqueue_if_due(kind, new),
            (Some(old), Some(new)) if old.uid != new.uid => {
                self.gone(kind, old);
                self.enqueue_if_due(kind, new);
            }
            (Some(old), Some(new)) => {
                let owners_changed = old.owner_references != new.owner_references;
                if owners_changed || deletion_state(old) != deletion_state(new) {
                    self.enqueue_if_due(kind, new);
                }
                if owners_changed {
                    self.enqueue_waiting_owners(old, Some(new));
                }
            }
            (Some(old), None) => self.gone(kind, old),
            (None, None) => {}
        }
    }

    fn gone(&self, kind: &Arc<Kind>, old: &ObjectMeta) {
        if self.count_dependents(old.uid.as_deref().unwrap_or_default()) > 0 {
            self.add_after(kind, old, true, Duration::ZERO);
        }
        self.enqueue_waiting_owners(old, None);
    }

    /// Queues waiting owners when a dependent no longer refers to them or no longer blocks them.
    fn enqueue_waiting_owners(&self, old: &ObjectMeta, new: Option<&ObjectMeta>) {
        let still = new.map(references).unwrap_or_default();
        for owner in references(old).iter().filter(|owner| !still.contains(owner)) {
            let namespace = old.namespace.as_deref();
            if self.observed(owner, namespace) != Some(Owner::Waiting) {
                continue;
            }
            let Some((kind, Some(monitor))) = self.kind_of(owner) else { continue };
            let Some(object) = monitor.objects.get(&self.key_of(&kind, namespace, &owner.name)) else {
                continue;
            };
            // Not each of thousands of deleted dependents is worth a check.
            let pause =
                if self.count_dependents(&owner.uid) == 0 { Duration::ZERO } else { WAITING_OWNER_DELAY };
            self.add_after(&monitor.kind, object.meta(), false, pause);
        }
    }
}

pub(super) fn references(meta: &ObjectMeta) -> &[OwnerReference] {
    meta.owner_references.as_deref().unwrap_or_default()
}
