//! Who owns whom: the caches of every kind that can be listed, watched and deleted, and the queue of objects whose owners or
//! dependents changed.

use super::absent_owners::Absent;
use super::decide::{Doing, Owner, doing};
use crate::discovery::{Catalog, full_name};
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

/// What comes and goes by itself owns nothing.
const IGNORED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];
/// Whose changes may bring new kinds.
const DEFINING: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];
/// How long an owner that waits is left alone while dependents are going one by one.
const GOING: Duration = Duration::from_millis(100);

/// An object to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Item {
    pub(super) kind: Arc<Kind>,
    pub(super) key: Key,
    pub(super) uid: Arc<str>,
    /// Whether its end was seen. What is merely not found may be there: a kind is not watched while the server does not name it.
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

/// Who owns whom.
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

    /// Watches the kinds of the catalog, those that were watched already go on; answers what is new.
    pub(super) fn watch(self: &Arc<Self>, catalog: &Catalog) -> Vec<Arc<Monitor>> {
        let before = self.kinds.read().clone();
        let (mut kinds, mut new) = (Kinds::default(), Vec::new());
        let mut by_plural = HashMap::new();
        let watched = catalog.preferred().filter(|served| {
            let kind = &served.kind;
            served.can(&["list", "watch", "delete"]) && !IGNORED.contains(&(&*kind.group, &*kind.plural))
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
        for served in catalog.iter() {
            let Kind { group, plural, kind, .. } = &served.kind;
            let at = by_plural.get(&(group, plural)).copied();
            let name = full_name(&served.kind.api_version(), kind);
            kinds.by_name.insert(name, (Arc::new(served.kind.clone()), at));
        }
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

    /// Is ready when there may be other kinds than before.
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

    pub(super) fn again(&self, item: &Item) {
        self.queue.retry(item.clone());
    }

    pub(super) fn monitors(&self) -> Vec<Arc<Monitor>> {
        self.kinds.read().monitors.clone()
    }

    /// Whether everything that can be known about dependents is known.
    pub(super) fn is_complete(&self) -> bool {
        let patience = super::FIRST_LISTS;
        let late = |monitor: &Monitor| self.clock.moment() - monitor.since > patience;
        self.kinds.read().monitors.iter().all(|monitor| monitor.objects.is_synced() || late(monitor))
    }

    /// The object as it is known, if it is that very one.
    pub(super) fn find(&self, item: &Item) -> Option<Arc<dyn AnyObject>> {
        let kinds = self.kinds.read().clone();
        let found = kinds.monitors[*kinds.by_kind.get(&item.kind)?].objects.get(&item.key)?;
        (found.meta().uid.as_deref() == Some(&*item.uid)).then_some(found)
    }

    /// The kind that a reference means, and whether that is watched; none if nobody knows it.
    pub(super) fn kind_of(&self, reference: &OwnerReference) -> Option<(Arc<Kind>, Option<Arc<Monitor>>)> {
        let kinds = self.kinds.read();
        let (kind, at) = kinds.by_name.get(&full_name(&reference.api_version, &reference.kind))?;
        Some((kind.clone(), at.map(|at| kinds.monitors[at].clone())))
    }

    /// Where an object in `namespace` looks for an owner of this kind.
    pub(super) fn key_of(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Key {
        Key::new(self.cache.cluster().clone(), namespace.filter(|_| kind.namespaced), name)
    }

    /// What became of an owner, as far as it is watched.
    pub(super) fn observed(&self, reference: &OwnerReference, namespace: Option<&str>) -> Option<Owner> {
        let (kind, monitor) = self.kind_of(reference)?;
        let owner = monitor?.objects.get(&self.key_of(&kind, namespace, &reference.name))?;
        let meta = owner.meta();
        if meta.uid.as_deref() != Some(&reference.uid) || (kind.namespaced && namespace.is_none()) {
            return None;
        }
        Some(if doing(meta) == Doing::Waits { Owner::Waiting } else { Owner::Solid })
    }

    /// Everything that names this UID as an owner.
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

    /// Queues whatever there is something to be done about.
    pub(super) fn look_at_all(&self) {
        for monitor in self.monitors() {
            for object in monitor.objects.list() {
                self.look_at(&monitor.kind, object.meta());
            }
        }
    }

    fn look_at(&self, kind: &Arc<Kind>, meta: &ObjectMeta) {
        let is_due = match doing(meta) {
            Doing::Orphans | Doing::Waits => true,
            Doing::Goes => false,
            Doing::Lives => references(meta)
                .iter()
                .any(|owner| self.observed(owner, meta.namespace.as_deref()) != Some(Owner::Solid)),
        };
        if is_due {
            self.add(kind, meta);
        }
    }

    /// Hears of every change of every object: quick, and mostly nothing is to be done.
    fn changed(&self, kind: &Arc<Kind>, changed: &Changed) {
        // Every server has API services from the start: their first list is no news.
        if DEFINING.contains(&kind.group.as_ref()) && !(changed.initial && kind.plural == "apiservices") {
            self.defined.notify_one();
        }
        // With the first lists everything is looked at once they are all there; and what was forgotten may be there still.
        if changed.initial {
            return;
        }
        let (old, new) = (changed.old.as_ref().map(|it| it.meta()), changed.new.as_ref().map(|it| it.meta()));
        match (old, new) {
            (None, Some(new)) => self.look_at(kind, new),
            (Some(old), Some(new)) if old.uid != new.uid => {
                self.gone(kind, old);
                self.look_at(kind, new);
            }
            (Some(old), Some(new)) => {
                let renamed = old.owner_references != new.owner_references;
                if renamed || doing(old) != doing(new) {
                    self.look_at(kind, new);
                }
                if renamed {
                    self.unblock(old, Some(new));
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
        self.unblock(old, None);
    }

    /// Owners that wait are looked at when a dependent is one no more, or blocks no more.
    fn unblock(&self, old: &ObjectMeta, new: Option<&ObjectMeta>) {
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
            // Of thousands that go, not each is worth a look.
            let pause = if self.count_dependents(&owner.uid) == 0 { Duration::ZERO } else { GOING };
            self.add_after(&monitor.kind, object.meta(), false, pause);
        }
    }
}

pub(super) fn references(meta: &ObjectMeta) -> &[OwnerReference] {
    meta.owner_references.as_deref().unwrap_or_default()
}
