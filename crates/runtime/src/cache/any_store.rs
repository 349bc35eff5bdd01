//! The cached objects of one kind and scope, their type forgotten: reads share, writes merge, listeners hear of changes.

use super::decoder::{Decoder, Raw, Unreadable};
use super::index::AnyIndex;
use super::object::AnyObject;
use super::overlay::ObjectVersion;
use super::scope::Scope;
use super::selection::{Select, Selection};
use super::stats::{Counters, Stats};
use super::store::{Changed, Listener, Origin};
use super::view::{Changes, Seen, View};
use crate::key::Key;
use crate::kind::Kind;
use parking_lot::RwLock;
use std::any::TypeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

/// A store whose type is forgotten: what all of them are made of. [`Store`](super::Store) gives objects their type again.
#[derive(Debug)]
pub(crate) struct AnyStore {
    pub(super) decoder: Decoder,
    scope: Scope,
    pub(super) view: RwLock<View>,
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

impl AnyStore {
    pub(super) fn new(decoder: Decoder, scope: Scope) -> Self {
        let view = View::new(scope.parts(), decoder.objects.clone());
        let empty = view.parts.is_empty();
        Self {
            decoder,
            scope,
            view: RwLock::new(view),
            listeners: Arc::default(),
            // Of no namespace, nothing is missing.
            synced: watch::channel(empty).0,
            counters: Counters::default(),
        }
    }

    /// The kind it holds.
    pub(crate) fn kind(&self) -> &Kind {
        &self.decoder.wants.kind
    }

    /// The cluster it is of.
    pub(crate) fn cluster(&self) -> &Arc<str> {
        &self.decoder.wants.cluster
    }

    /// Which objects it holds.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The namespaces that it holds objects of; `None` is all of them.
    pub(crate) fn namespaces(&self) -> Vec<Option<String>> {
        self.scope.parts().into_iter().map(|part| part.map(|namespace| namespace.to_string())).collect()
    }

    /// The object under a key.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<dyn AnyObject>> {
        self.view.read().get(key)
    }

    /// Everything it holds, in no particular order.
    pub(crate) fn list(&self) -> Vec<Arc<dyn AnyObject>> {
        self.view.read().list()
    }

    /// The keys of everything it holds, in no particular order.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.view.read().iter().map(|(key, _)| key.clone()).collect()
    }

    /// How many objects it holds.
    pub(crate) fn len(&self) -> usize {
        self.view.read().len()
    }

    /// The objects that name this UID among their owners, by key.
    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Arc<dyn AnyObject>> {
        self.view.read().owned_by(uid)
    }

    /// The objects with a term in an index, by key. The first to ask for an index makes it.
    pub(super) fn find(&self, index: &AnyIndex, term: &str) -> Vec<Arc<dyn AnyObject>> {
        self.make_index(index);
        self.view.read().find(index, term)
    }

    fn make_index(&self, index: &AnyIndex) {
        if !self.view.read().has_index(index) {
            self.view.write().index(index);
        }
    }

    pub(super) fn count_owned_by(&self, uid: &str) -> usize {
        self.view.read().count_owned_by(uid)
    }

    /// Those that are related so.
    pub(crate) fn select(&self, relation: &Selection) -> Vec<Arc<dyn AnyObject>> {
        if let Select::Term(index, _) = &relation.select {
            if !index.reads(self.of_type()) {
                let kind = self.kind();
                tracing::error!(%kind, index = index.name(), "the index is for another type: nothing is found");
                return Vec::new();
            }
            self.make_index(index);
        }
        self.view.read().select(self.cluster(), relation)
    }

    /// Files objects by their labels too.
    pub(crate) fn index_labels(&self) {
        self.view.write().index_labels();
    }

    /// The type that its objects are held as.
    pub(super) fn of_type(&self) -> TypeId {
        self.decoder.objects.reads.of()
    }

    /// Calls `listener` for every change from now on, as long as the store is there.
    pub(crate) fn listen(&self, listener: Listener) {
        self.add_listener(listener);
    }

    /// Calls `listener` for every change from now on, until what is returned is dropped.
    pub(crate) fn listen_while(&self, listener: Listener) -> Listening {
        Listening { id: self.add_listener(listener), listeners: self.listeners.clone() }
    }

    fn add_listener(&self, listener: Listener) -> u64 {
        let id = self.listeners.next.fetch_add(1, Ordering::Relaxed);
        self.listeners.all.write().push((id, listener));
        id
    }

    pub(super) fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    pub(super) fn subscribe_synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// What it holds, and what became of its watch.
    pub(crate) fn stats(&self) -> Stats {
        let (objects, bytes, parts) = {
            let view = self.view.read();
            (view.len(), view.bytes(), view.parts.len())
        };
        let counted = self.counters.stats(self.kind(), &self.scope, parts);
        Stats {
            objects,
            bytes,
            metadata_only: self.decoder.wants.partial,
            synced: *self.synced.borrow(),
            ..counted
        }
    }

    /// Takes in an object that the server answered with, which is there as text under this key and with this version.
    pub(crate) fn wrote(
        &self,
        key: &Key,
        object_version: &ObjectVersion,
        text: &[u8],
        origin: Option<Origin>,
    ) -> Result<(), Unreadable> {
        let (part, news, others) = {
            let view = self.view.read();
            let Some(part) = view.part_of(key) else { return Ok(()) };
            (part, view.parts[part].overlay.is_news(key, object_version), view.len())
        };
        if !news {
            return Ok(());
        }
        if !self.scope.selects_text(text) {
            self.change(origin, |view| view.parts[part].overlay.wrote_out(key.clone(), object_version));
            return Ok(());
        }
        match self.decoder.read(key, Raw::Text(text), others) {
            Ok(held) => {
                self.change(origin, |view| {
                    view.parts[part].overlay.wrote(key.clone(), object_version.clone(), held)
                });
                Ok(())
            }
            Err(error) => {
                self.pass_over(&key.to_string(), &error);
                self.change(origin, |view| view.parts[part].overlay.wrote_out(key.clone(), object_version));
                Err(error)
            }
        }
    }

    /// Takes note that the server says an object is gone.
    pub(crate) fn wrote_gone(&self, key: &Key, last: &ObjectVersion, origin: Option<Origin>) {
        self.change(origin, |view| {
            let part = view.part_of(key)?;
            view.parts[part].overlay.wrote_gone(key.clone(), last)
        });
    }

    /// The version of the object under a key.
    pub(crate) fn version_of(&self, key: &Key) -> Option<ObjectVersion> {
        let view = self.view.read();
        view.parts[view.part_of(key)?].overlay.version_of(key).cloned()
    }

    pub(super) fn change(&self, origin: Option<Origin>, change: impl FnOnce(&mut View) -> Option<Changes>) {
        let change = {
            let mut view = self.view.write();
            change(&mut view).map(|change| {
                let seen = view.objects(&change);
                view.follow(&change.name, &seen);
                (change.name, seen)
            })
        };
        if let Some((key, seen)) = change {
            self.notify(key, seen, origin, false);
        }
    }

    pub(super) fn notify(&self, key: Key, seen: Seen, origin: Option<Origin>, initial: bool) {
        let listeners: Vec<Listener> =
            self.listeners.all.read().iter().map(|(_, listener)| listener.clone()).collect();
        let changed = Changed { key, old: seen.old, new: seen.new, origin, initial };
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
