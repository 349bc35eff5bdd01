//! The cached objects of one kind and scope: reads share, writes merge, listeners hear of changes.

use super::index::Index;
use super::intake::{Identity, Intake, Raw, Unreadable};
use super::object::AnyObject;
use super::overlay::Stamp;
use super::scope::Scope;
use super::stats::{Counters, Stats};
use super::view::{Changes, Seen, View};
use crate::key::Key;
use crate::kind::{Cached, Kind};
use parking_lot::RwLock;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// Whether it came with the first list, when everything is new to us and nothing is urgent; or, where nothing is held now,
    /// was forgotten with all the rest, and may be there still.
    pub initial: bool,
}

/// Hears of every change, outside the cache's lock. It must be quick: it runs where the watch is read.
pub type Listener = Arc<dyn Fn(&Changed) + Send + Sync>;

/// The cached objects of one kind and scope, as a [`Cache`](super::Cache) hands them out. Reads share what is held and
/// copy nothing.
#[derive(Debug)]
pub struct Store<K> {
    pub(super) intake: Intake<K>,
    scope: Scope,
    pub(super) view: RwLock<View<K>>,
    listeners: Arc<Listeners>,
    pub(super) synced: watch::Sender<bool>,
    pub(super) counters: Counters,
}

#[derive(Default)]
struct Listeners {
    all: RwLock<Vec<(u64, Listener)>>,
    next: AtomicU64,
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} listeners", self.all.read().len())
    }
}

/// Somebody listens, as long as this is held.
#[derive(Debug)]
#[must_use = "dropping it ends the listening"]
pub struct Listening {
    listeners: Arc<Listeners>,
    id: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.listeners.all.write().retain(|(id, _)| *id != self.id);
    }
}

impl<K: Cached> Store<K> {
    pub(super) fn new(intake: Intake<K>, scope: Scope) -> Self {
        let view = View::new(scope.parts(), intake.shelf.clone());
        let empty = view.parts.is_empty();
        Self {
            intake,
            scope,
            view: RwLock::new(view),
            listeners: Arc::default(),
            // Of no namespace, nothing is missing.
            synced: watch::channel(empty).0,
            counters: Counters::default(),
        }
    }

    /// The kind it holds.
    pub fn kind(&self) -> &Kind {
        &self.intake.wants.kind
    }

    /// The cluster it is of.
    pub fn cluster(&self) -> &Arc<str> {
        &self.intake.wants.cluster
    }

    /// Which objects it holds.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The object under a key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.view.read().get(key)
    }

    /// Everything it holds, in no particular order.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.view.read().list()
    }

    /// The keys of everything it holds, in no particular order.
    pub fn keys(&self) -> Vec<Key> {
        self.view.read().iter().map(|(key, _)| key.clone()).collect()
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.view.read().len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that name this UID among their owners, by key.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        self.view.read().owned_by(uid)
    }

    /// The objects with a term in an index, by key. The first to ask for an index makes it.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use windlass::cache::{Cache, Index, Namespaces};
    ///
    /// const BY_NODE: Index<Pod> =
    ///     Index::new("node", |pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
    ///
    /// let cache = Cache::new("local".into(), Namespaces::All);
    /// let on_node = cache.store::<Pod>().find(BY_NODE, "n1");
    /// assert!(on_node.is_empty());
    /// ```
    pub fn find(&self, index: Index<K>, term: &str) -> Vec<Arc<K>> {
        let index = index.erase();
        self.make_index(&index);
        self.view.read().find(&index, term)
    }

    pub(super) fn make_index(&self, index: &super::index::AnyIndex) {
        if !self.view.read().has_index(index) {
            self.view.write().index(index);
        }
    }

    /// Calls `listener` for every change from now on, as long as the store is there.
    pub fn listen(&self, listener: Listener) {
        self.add_listener(listener);
    }

    /// Calls `listener` for every change from now on, until what is returned is dropped.
    pub fn listen_while(&self, listener: Listener) -> Listening {
        Listening { id: self.add_listener(listener), listeners: self.listeners.clone() }
    }

    fn add_listener(&self, listener: Listener) -> u64 {
        let id = self.listeners.next.fetch_add(1, Ordering::Relaxed);
        self.listeners.all.write().push((id, listener));
        id
    }

    /// Waits until the first list is in.
    pub async fn synced(&self) -> bool {
        self.synced.subscribe().wait_for(|synced| *synced).await.is_ok()
    }

    pub(super) fn subscribe_synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// What it holds, and what became of its watch.
    pub fn stats(&self) -> Stats {
        let (objects, bytes, parts) = {
            let view = self.view.read();
            (view.len(), view.bytes(), view.parts.len())
        };
        let counted = self.counters.stats(self.kind(), &self.scope, parts);
        Stats { objects, bytes, metadata_only: K::metadata_api(), synced: *self.synced.borrow(), ..counted }
    }

    /// Takes in an object that the server answered with. One that is none of its scope, as by a label that was changed, is
    /// let go of.
    ///
    /// # Errors
    /// [`Unreadable`] when it does not fit its type.
    pub fn wrote(&self, object: &Value, origin: Option<Origin>) -> Result<(Key, Stamp), Unreadable> {
        let (key, stamp) = self.intake.wants.identify(&Identity::of(object))?;
        self.take_text(&key, &stamp, object.to_string().as_bytes(), origin)?;
        Ok((key, stamp))
    }

    /// As [`Store::wrote`], of an object that is there as text: it is read once only.
    ///
    /// # Errors
    /// [`Unreadable`] when it does not fit its type.
    pub fn wrote_text(&self, text: &[u8], origin: Option<Origin>) -> Result<(Key, Stamp), Unreadable> {
        let (key, stamp) = self.intake.wants.identify(&Identity::in_text(text))?;
        self.take_text(&key, &stamp, text, origin)?;
        Ok((key, stamp))
    }

    /// The same, under this key and with this stamp.
    pub(super) fn take_text(
        &self,
        key: &Key,
        stamp: &Stamp,
        text: &[u8],
        origin: Option<Origin>,
    ) -> Result<(), Unreadable> {
        let (part, news, others) = {
            let view = self.view.read();
            let Some(part) = view.part_of(key) else { return Ok(()) };
            (part, view.parts[part].overlay.is_news(key, stamp), view.len())
        };
        if !news {
            return Ok(());
        }
        if !self.scope.selects_text(text) {
            self.change(origin, |view| view.parts[part].overlay.wrote_out(key.clone(), stamp));
            return Ok(());
        }
        match self.intake.read(key, Raw::Text(text), others) {
            Ok(held) => {
                self.change(origin, |view| view.parts[part].overlay.wrote(key.clone(), stamp.clone(), held));
                Ok(())
            }
            Err(error) => {
                self.pass_over(&key.to_string(), &error);
                self.change(origin, |view| view.parts[part].overlay.wrote_out(key.clone(), stamp));
                Err(error)
            }
        }
    }

    /// Takes note that the server says an object is gone.
    pub fn wrote_gone(&self, key: &Key, last: &Stamp, origin: Option<Origin>) {
        self.change(origin, |view| {
            let part = view.part_of(key)?;
            view.parts[part].overlay.wrote_gone(key.clone(), last)
        });
    }

    /// The stamp of the object under a key.
    pub fn stamp(&self, key: &Key) -> Option<Stamp> {
        let view = self.view.read();
        view.parts[view.part_of(key)?].overlay.stamp(key).cloned()
    }

    pub(super) fn change(
        &self,
        origin: Option<Origin>,
        change: impl FnOnce(&mut View<K>) -> Option<Changes<K>>,
    ) {
        let change = {
            let mut view = self.view.write();
            change(&mut view).map(|change| {
                let seen = view.objects(&change);
                view.follow(&change.name, &seen);
                (change.name, seen)
            })
        };
        if let Some((key, seen)) = change {
            self.tell(key, seen, origin, false);
        }
    }

    pub(super) fn tell(&self, key: Key, seen: Seen<K>, origin: Option<Origin>, initial: bool) {
        let listeners: Vec<Listener> =
            self.listeners.all.read().iter().map(|(_, listener)| listener.clone()).collect();
        let erase = |object: Option<Arc<K>>| object.map(|object| object as Arc<dyn AnyObject>);
        let changed = Changed { key, old: erase(seen.old), new: erase(seen.new), origin, initial };
        for listener in listeners {
            listener(&changed);
        }
    }

    /// Says that something is not read; everything else goes on.
    pub(super) fn pass_over(&self, name: &str, error: &dyn std::error::Error) {
        let why = match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        tracing::warn!(kind = %self.kind(), object = name, "{why}: left out of the cache, and of every decision");
        self.counters.unreadable(name, why);
    }
}
