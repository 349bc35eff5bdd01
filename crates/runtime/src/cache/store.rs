//! The cached objects of one kind and scope, with their indexes: reads share, writes merge, listeners hear of changes.

use super::object::{AnyObject, face, owner_uids};
use super::overlay::{Change, Overlay, Stale, Stamp};
use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::metrics::Held;
use crate::relation::{Resolved, Select};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::RwLock;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Who wrote: a controller, in its turn for one object. That turn needs no telling of its own writes; everybody else does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The controller's name, which is also its field manager.
    pub controller: Arc<str>,
    /// The object whose turn it is.
    pub turn: Key,
}

/// An object changed in the cache.
#[derive(Debug, Clone)]
pub struct Changed {
    /// Which.
    pub key: Key,
    /// What the cache held before.
    pub old: Option<Arc<dyn AnyObject>>,
    /// What it holds now.
    pub new: Option<Arc<dyn AnyObject>>,
    /// Who did it, if it was one of our own writes.
    pub origin: Option<Origin>,
    /// Whether it came with the first list, when everything is new to us and nothing is urgent.
    pub initial: bool,
}

/// Hears of every change, outside the cache's lock. It must be quick: it runs where the watch is read.
pub type Listener = Arc<dyn Fn(&Changed) + Send + Sync>;

/// An object that cannot be taken in.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It does not fit the type.
    #[error("{kind} {name} does not fit its type")]
    Type {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What did not fit.
        #[source]
        source: serde_json::Error,
    },
    /// It has no UID or no numeric resourceVersion, so nothing can be said about how new it is.
    #[error("{kind} {name} has no UID or no numeric resourceVersion")]
    Stamp {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
}

/// The field managers whose entries cached objects keep; everybody else's are dropped, and with them most of the memory.
pub(crate) type Managers = Arc<RwLock<HashSet<Arc<str>>>>;

/// The cached objects of one kind and scope.
#[derive(Debug)]
pub struct Store<K> {
    kind: Kind,
    cluster: Arc<str>,
    namespace: Option<String>,
    managers: Managers,
    view: RwLock<View<K>>,
    listeners: Listeners,
    label_index: AtomicBool,
    synced: watch::Sender<bool>,
}

#[derive(Default)]
struct Listeners(RwLock<Vec<Listener>>);

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} listeners", self.0.read().len())
    }
}

#[derive(Debug)]
struct View<K> {
    overlay: Overlay<Key, Arc<K>>,
    by_owner: Index<String>,
    by_label: Index<(Option<String>, String, String)>,
}

/// From a property to those that have it.
type Index<P> = HashMap<P, BTreeSet<Key>>;

impl<K: Object> Store<K> {
    pub(crate) fn new(cluster: Arc<str>, namespace: Option<String>, managers: Managers) -> Self {
        Self {
            kind: Kind::of::<K>(),
            cluster,
            namespace,
            managers,
            view: RwLock::new(View {
                overlay: Overlay::default(),
                by_owner: HashMap::new(),
                by_label: HashMap::new(),
            }),
            listeners: Listeners::default(),
            label_index: AtomicBool::new(false),
            synced: watch::channel(false).0,
        }
    }

    /// The kind it holds.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The cluster it is of.
    pub fn cluster(&self) -> &Arc<str> {
        &self.cluster
    }

    /// The one namespace it watches, or all.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The object under a key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.view.read().overlay.get(key).cloned()
    }

    /// Everything it holds, in no particular order.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.view.read().overlay.iter().map(|(_, object)| object.clone()).collect()
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.view.read().overlay.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that name this UID among their owners, by key.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let view = self.view.read();
        let keys = view.by_owner.get(uid).into_iter().flatten();
        keys.filter_map(|key| view.overlay.get(key).cloned()).collect()
    }

    /// Calls `listener` for every change from now on.
    pub fn listen(&self, listener: Listener) {
        self.listeners.0.write().push(listener);
    }

    /// Waits until the first list is in. `false` if the cache stopped before.
    pub async fn synced(&self) -> bool {
        self.synced.subscribe().wait_for(|synced| *synced).await.is_ok()
    }

    /// Takes in an object that the server answered with.
    ///
    /// # Errors
    /// [`Unreadable`] when it does not fit its type.
    pub fn wrote(&self, object: Value, origin: Option<Origin>) -> Result<(Key, Stamp), Unreadable> {
        let (key, stamp, object) = self.read(object)?;
        if self.covers(&key) {
            let change = self.change(|view, labels| view.wrote(key.clone(), stamp.clone(), object, labels));
            self.tell(change, origin, false);
        }
        Ok((key, stamp))
    }

    /// Takes note that the server says an object is gone.
    pub fn wrote_gone(&self, key: &Key, last: &Stamp, origin: Option<Origin>) {
        let change = self.change(|view, _| {
            let change = view.overlay.wrote_gone(key.clone(), last);
            view.reindex(change, false)
        });
        self.tell(change, origin, false);
    }

    /// The stamp of the object under a key.
    pub fn stamp(&self, key: &Key) -> Option<Stamp> {
        self.view.read().overlay.stamp(key).cloned()
    }

    /// Up to which version the watch has been seen.
    pub(crate) fn progress(&self) -> u64 {
        self.view.read().overlay.progress()
    }

    pub(crate) fn shown(&self, object: Value) {
        match self.read(object) {
            Ok((key, stamp, object)) => {
                let change = self.change(|view, labels| {
                    let change = view.overlay.shown(key, stamp, object);
                    view.reindex(change, labels)
                });
                self.tell(change, None, false);
            }
            Err(error) => warn_unreadable(&error),
        }
    }

    pub(crate) fn shown_deleted(&self, object: &Value) {
        let Some((key, stamp)) = self.identify(object) else { return };
        let change = self.change(|view, _| {
            let change = view.overlay.shown_deleted(key, &stamp);
            view.reindex(change, false)
        });
        self.tell(change, None, false);
    }

    pub(crate) fn bookmark(&self, version: u64) {
        self.view.write().overlay.bookmark(version);
    }

    pub(crate) fn listed(&self, objects: Vec<Value>, version: u64) -> Result<(), Stale> {
        let mut items = Vec::with_capacity(objects.len());
        for object in objects {
            match self.read(object) {
                Ok(item) => items.push(item),
                Err(error) => warn_unreadable(&error),
            }
        }
        let labels = self.label_index.load(Ordering::Acquire);
        let changes: Vec<_> = {
            let mut view = self.view.write();
            let changes = view.overlay.listed(items, version)?;
            changes.into_iter().filter_map(|change| view.reindex(Some(change), labels)).collect()
        };
        let initial = !self.synced.send_replace(true);
        for change in changes {
            self.tell(Some(change), None, initial);
        }
        Ok(())
    }

    /// Forgets everything, because the server's history was rewound.
    pub(crate) fn reset(&self) {
        let changes: Vec<_> = {
            let mut view = self.view.write();
            let changes = view.overlay.reset();
            changes.into_iter().filter_map(|change| view.reindex(Some(change), false)).collect()
        };
        for change in changes {
            self.tell(Some(change), None, false);
        }
    }

    fn change(
        &self,
        change: impl FnOnce(&mut View<K>, bool) -> Option<Change<Key, Arc<K>>>,
    ) -> Option<Change<Key, Arc<K>>> {
        let labels = self.label_index.load(Ordering::Acquire);
        change(&mut self.view.write(), labels)
    }

    fn tell(&self, change: Option<Change<Key, Arc<K>>>, origin: Option<Origin>, initial: bool) {
        let Some(change) = change else { return };
        let erase = |object: Option<Arc<K>>| object.map(|object| object as Arc<dyn AnyObject>);
        let changed =
            Changed { key: change.name, old: erase(change.old), new: erase(change.new), origin, initial };
        let listeners = self.listeners.0.read().clone();
        for listener in listeners {
            listener(&changed);
        }
    }

    /// Whether the object is among those watched: a write elsewhere must not enter a view that never hears of it again.
    fn covers(&self, key: &Key) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == key.namespace()
    }

    fn identify(&self, object: &Value) -> Option<(Key, Stamp)> {
        let meta = object.get("metadata")?;
        let text = |field: &str| meta.get(field).and_then(Value::as_str);
        let key = Key::new(self.cluster.clone(), text("namespace"), text("name")?);
        Some((key, Stamp { uid: text("uid")?.into(), version: text("resourceVersion")?.parse().ok()? }))
    }

    fn read(&self, object: Value) -> Result<(Key, Stamp, Arc<K>), Unreadable> {
        let kind = || self.kind.kind.clone();
        let Some((key, stamp)) = self.identify(&object) else {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name");
            return Err(Unreadable::Stamp { kind: kind(), name: name.to_owned() });
        };
        match serde_json::from_value::<K>(object) {
            Ok(mut object) => {
                self.trim(object.meta_mut());
                Ok((key, stamp, Arc::new(object)))
            }
            Err(source) => Err(Unreadable::Type { kind: kind(), name: key.to_string(), source }),
        }
    }

    /// Keeps the managedFields of our own controllers, which say whether an apply would change anything, and no others.
    fn trim(&self, meta: &mut ObjectMeta) {
        if let Some(entries) = &mut meta.managed_fields {
            let managers = self.managers.read();
            entries
                .retain(|entry| entry.manager.as_deref().is_some_and(|manager| managers.contains(manager)));
            entries.shrink_to_fit();
        }
        if meta.managed_fields.as_ref().is_some_and(Vec::is_empty) {
            meta.managed_fields = None;
        }
    }
}

impl<K: Object> View<K> {
    fn wrote(&mut self, key: Key, stamp: Stamp, object: Arc<K>, labels: bool) -> Option<Change<Key, Arc<K>>> {
        let change = self.overlay.wrote(key, stamp, object);
        self.reindex(change, labels)
    }

    fn reindex(&mut self, change: Option<Change<Key, Arc<K>>>, labels: bool) -> Option<Change<Key, Arc<K>>> {
        let change = change?;
        if let Some(old) = &change.old {
            let meta = old.meta();
            for uid in owner_uids(meta) {
                unfile(&mut self.by_owner, &uid.to_owned(), &change.name);
            }
            if !self.by_label.is_empty() {
                for place in label_places(meta) {
                    unfile(&mut self.by_label, &place, &change.name);
                }
            }
        }
        if let Some(new) = &change.new {
            let meta = new.meta();
            for uid in owner_uids(meta) {
                self.by_owner.entry(uid.to_owned()).or_default().insert(change.name.clone());
            }
            if labels {
                for place in label_places(meta) {
                    self.by_label.entry(place).or_default().insert(change.name.clone());
                }
            }
        }
        Some(change)
    }

    fn select(&self, cluster: &Arc<str>, relation: &Resolved, by_label: bool) -> Vec<Arc<K>> {
        let namespace = relation.namespace.as_deref();
        let found = |key: &Key| self.overlay.get(key).cloned();
        let holds = |object: &Arc<K>| relation.holds_for(face(object.meta()));
        match (&relation.select, namespace) {
            (Select::Names(names), _) if names.is_empty() => Vec::new(),
            (Select::Names(names), Some(_)) => {
                names.iter().filter_map(|name| found(&Key::new(cluster.clone(), namespace, name))).collect()
            }
            (Select::Labels(labels), Some(namespace)) if by_label => {
                let Some((key, value)) = labels.iter().next() else { return Vec::new() };
                let place = (Some(namespace.to_owned()), key.clone(), value.clone());
                let keys = self.by_label.get(&place).into_iter().flatten();
                keys.filter_map(found).filter(holds).collect()
            }
            _ => {
                let mut all: Vec<_> = self.overlay.iter().filter(|(_, object)| holds(object)).collect();
                all.sort_by_key(|(key, _)| *key);
                all.into_iter().map(|(_, object)| object.clone()).collect()
            }
        }
    }
}

fn label_places(meta: &ObjectMeta) -> impl Iterator<Item = (Option<String>, String, String)> + '_ {
    let labels = meta.labels.iter().flatten();
    labels.map(|(key, value)| (meta.namespace.clone(), key.clone(), value.clone()))
}

fn unfile<P: Eq + std::hash::Hash>(index: &mut Index<P>, place: &P, key: &Key) {
    if let Some(keys) = index.get_mut(place) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(place);
        }
    }
}

fn warn_unreadable(error: &Unreadable) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(cause, "{error}: left out of the cache, and of every decision");
}

/// A [`Store`] whose type is forgotten: what observing and acting use.
pub(crate) trait AnyStore: Send + Sync + std::fmt::Debug {
    fn kind(&self) -> &Kind;
    fn is_synced(&self) -> bool;
    fn get(&self, key: &Key) -> Option<Arc<dyn AnyObject>>;
    fn stamp(&self, key: &Key) -> Option<Stamp>;
    fn owned_by(&self, uid: &str) -> Vec<Arc<dyn AnyObject>>;
    fn select(&self, relation: &Resolved) -> Vec<Arc<dyn AnyObject>>;
    fn wrote(&self, object: Value, origin: Option<Origin>) -> Result<(Key, Stamp), Unreadable>;
    fn wrote_gone(&self, key: &Key, last: &Stamp, origin: Option<Origin>);
    fn listen(&self, listener: Listener);
    fn index_labels(&self);
    fn subscribe_synced(&self) -> watch::Receiver<bool>;
    fn held(&self) -> Held;
}

impl<K: Object> AnyStore for Store<K> {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    fn get(&self, key: &Key) -> Option<Arc<dyn AnyObject>> {
        Self::get(self, key).map(|object| object as Arc<dyn AnyObject>)
    }

    fn stamp(&self, key: &Key) -> Option<Stamp> {
        Self::stamp(self, key)
    }

    fn owned_by(&self, uid: &str) -> Vec<Arc<dyn AnyObject>> {
        Self::owned_by(self, uid).into_iter().map(|object| object as Arc<dyn AnyObject>).collect()
    }

    fn select(&self, relation: &Resolved) -> Vec<Arc<dyn AnyObject>> {
        let by_label = self.label_index.load(Ordering::Acquire);
        let found = self.view.read().select(&self.cluster, relation, by_label);
        found.into_iter().map(|object| object as Arc<dyn AnyObject>).collect()
    }

    fn wrote(&self, object: Value, origin: Option<Origin>) -> Result<(Key, Stamp), Unreadable> {
        Self::wrote(self, object, origin)
    }

    fn wrote_gone(&self, key: &Key, last: &Stamp, origin: Option<Origin>) {
        Self::wrote_gone(self, key, last, origin);
    }

    fn listen(&self, listener: Listener) {
        Self::listen(self, listener);
    }

    /// Files everything by its labels too, from now on and what is there already.
    fn index_labels(&self) {
        let mut view = self.view.write();
        if self.label_index.swap(true, Ordering::AcqRel) {
            return;
        }
        let filed: Vec<_> = view
            .overlay
            .iter()
            .flat_map(|(key, object)| label_places(object.meta()).map(move |place| (place, key.clone())))
            .collect();
        for (place, key) in filed {
            view.by_label.entry(place).or_default().insert(key);
        }
    }

    fn subscribe_synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    fn held(&self) -> Held {
        let Kind { group, version, kind, .. } = self.kind.clone();
        Held { group, version, kind, objects: self.len(), bytes: None, synced: self.is_synced() }
    }
}
