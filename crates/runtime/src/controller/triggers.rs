//! From a change in the cache to the keys that it concerns: the object itself, its owner, and whoever is related to it.

use super::actions::Actions;
use super::facts::Facts;
use super::owning::owner_elsewhere;
use super::parts::{Filter, Relate};
use super::predicates::{Predicate, matters};
use crate::cache::{AnyObject, AnyStore, Changed, Selection};
use crate::key::Key;
use crate::kind::Kind;
use crate::queue::{Priority, Queue};
use crate::relation::{Relation, ReverseIndex};
use crate::write::{Ledgers, Writer};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Adds the keys that a change concerns, but not the reconcile that made it: that one looks again by itself.
#[derive(Clone)]
pub(super) struct Enqueuer {
    pub(super) controller: Arc<str>,
    pub(super) queue: Queue<Key>,
    pub(super) ledgers: Arc<Ledgers>,
}

impl Enqueuer {
    fn enqueue(&self, key: Key, changed: &Changed) {
        let own = changed
            .origin
            .as_ref()
            .is_some_and(|origin| origin.controller == self.controller && origin.reconciled == key);
        if !own && !self.ledgers.hear(&key, changed) {
            self.queue.add(key, if changed.initial { Priority::LOW } else { Priority::NORMAL });
        }
    }
}

/// A kind that objects are related to, and the way back from it.
pub(super) struct Related {
    pub(super) kind: Kind,
    pub(super) store: Arc<AnyStore>,
    pub(super) relate: Relate,
    /// Whether objects refer to those it names, and miss the ones that are not there.
    pub(super) by_name: bool,
    pub(super) index: Arc<Mutex<ReverseIndex>>,
}

impl Related {
    /// The relation of one object.
    pub(super) fn of(&self, object: &dyn AnyObject) -> Selection {
        (self.relate)(object).resolve(object.meta().namespace.as_deref(), self.kind.namespaced)
    }
}

/// How changes start reconciles.
pub(super) struct Triggers<'a> {
    pub(super) enqueuer: &'a Enqueuer,
    pub(super) predicates: &'a BTreeMap<Kind, Predicate>,
}

impl Triggers<'_> {
    /// Listens to everything that concerns a controller.
    pub(super) fn connect(
        &self,
        primary: &Arc<AnyStore>,
        filter: Option<&Filter>,
        owned: &[Arc<AnyStore>],
        related: &Arc<Vec<Related>>,
    ) {
        self.connect_primary(primary, filter, related);
        for store in owned {
            let (enqueuer, cluster, kind) =
                (self.enqueuer.clone(), primary.cluster().clone(), primary.kind().clone());
            let predicate = self.predicates.get(store.kind()).cloned();
            store.listen(Arc::new(move |changed| {
                let owners = |object: &Option<Arc<dyn AnyObject>>| {
                    object.as_deref().map(|object| owners(&kind, &cluster, object.meta())).unwrap_or_default()
                };
                for key in concerned(owners, predicate.as_ref(), changed) {
                    enqueuer.enqueue(key, changed);
                }
            }));
        }
        for relation in related.iter() {
            let (enqueuer, index) = (self.enqueuer.clone(), relation.index.clone());
            let predicate = self.predicates.get(&relation.kind).cloned();
            relation.store.index_labels();
            relation.store.listen(Arc::new(move |changed| {
                let related = |object: &Option<Arc<dyn AnyObject>>| {
                    object.as_deref().map(|object| index.lock().related_to(object.into())).unwrap_or_default()
                };
                for key in concerned(related, predicate.as_ref(), changed) {
                    enqueuer.enqueue(key, changed);
                }
            }));
        }
    }

    fn connect_primary(&self, primary: &Arc<AnyStore>, filter: Option<&Filter>, related: &Arc<Vec<Related>>) {
        let (enqueuer, filter, related) = (self.enqueuer.clone(), filter.cloned(), related.clone());
        let predicate = self.predicates.get(primary.kind()).cloned();
        // Weak: the store holds its listeners.
        let store = Arc::downgrade(primary);
        primary.listen(Arc::new(move |changed| {
            if let Some(store) = store.upgrade() {
                for relation in related.iter() {
                    // Read under the index's lock: of two changes at once, the one that comes last reads the newest.
                    let mut index = relation.index.lock();
                    let now = store.get(&changed.key).map(|object| {
                        // The relation is the operator's code, and this is the watch's task: a panic must not end it. The
                        // reconcile runs into the same panic, and tells.
                        let related = catch_unwind(AssertUnwindSafe(|| relation.of(&*object)));
                        related.unwrap_or_else(|_| Relation::nothing().resolve(None, false))
                    });
                    index.set(&changed.key, now);
                }
            }
            if !matters(predicate.as_ref(), changed) {
                return;
            }
            // One that concerned the controller until now has a last reconcile, in which it is forgotten.
            let concerns = |object: &Arc<dyn AnyObject>| match &filter {
                // A panic of the operator's code must not end the watch's task, and shows in the reconcile.
                Some(filter) => catch_unwind(AssertUnwindSafe(|| filter(&**object))).unwrap_or(true),
                None => true,
            };
            if [&changed.old, &changed.new].into_iter().flatten().any(concerns) {
                enqueuer.enqueue(changed.key.clone(), changed);
            }
        }));
    }
}

/// Has what is remembered of objects forgotten when they are gone, whoever deleted them.
pub(super) fn forget_what_is_gone(writer: &Writer, primary: &Arc<AnyStore>, owned: &[Arc<AnyStore>]) {
    primary.listen(writer.forgetting(primary.kind().clone()));
    owned.iter().for_each(|store| store.listen(writer.forgetting(store.kind().clone())));
}

/// Has facts about objects found out, and what is known of those that are gone forgotten.
pub(super) fn connect_outside(primary: &Arc<AnyStore>, actions: &Arc<Actions>, facts: &Arc<Facts>) {
    if actions.is_empty() && facts.is_empty() {
        return;
    }
    let (actions, facts) = (actions.clone(), facts.clone());
    primary.listen(Arc::new(move |changed| {
        let declared = |object: &Arc<dyn AnyObject>| (object.meta().uid.clone(), object.meta().generation);
        match &changed.new {
            None => {
                actions.forget(&changed.key);
                facts.forget(&changed.key);
            }
            Some(new) if changed.old.as_ref().map(declared) != Some(declared(new)) => facts.ask(&changed.key),
            Some(_) => {}
        }
    }));
}

/// Whom a change concerns: before it, after it, or both. One that does not matter concerns only those for whom the object came or
/// went by it.
fn concerned(
    by: impl Fn(&Option<Arc<dyn AnyObject>>) -> BTreeSet<Key>,
    predicate: Option<&Predicate>,
    changed: &Changed,
) -> BTreeSet<Key> {
    let (mut before, after) = (by(&changed.old), by(&changed.new));
    match matters(predicate, changed) {
        true => {
            before.extend(after);
            before
        }
        false => &before ^ &after,
    }
}

/// The objects of a kind that own an object.
fn owners(kind: &Kind, cluster: &Arc<str>, meta: &ObjectMeta) -> BTreeSet<Key> {
    let mut keys: BTreeSet<Key> = owner_elsewhere(meta, kind, cluster).into_iter().collect();
    for owner in meta.owner_references.iter().flatten() {
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        if owner.kind == kind.kind && group == kind.group {
            let namespace = meta.namespace.as_deref().filter(|_| kind.namespaced);
            keys.insert(Key::new(cluster.clone(), namespace, &owner.name));
        }
    }
    keys
}
