//! Which stores are open, who holds them open, and the one task that keeps their watches running.
//!
//! One task runs the watches of all stores, so that kinds can be opened and closed while the cache runs.

use super::any_store::AnyStore;
use super::metadata_store::AnyOpened;
use super::scope::Scope;
use super::store::Store;
use super::watching::keep_watching;
use crate::kind::{Cached, Kind};
use kube::Client;
use parking_lot::Mutex;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use windlass_clock::Clock;

/// A store that is open as long as somebody holds one of these. Reads like the [`Store`] that it is.
#[derive(Debug)]
pub struct Opened<K> {
    store: Arc<Store<K>>,
    lease: Arc<Lease>,
}

impl<K> Clone for Opened<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), lease: self.lease.clone() }
    }
}

impl<K> Deref for Opened<K> {
    type Target = Store<K>;

    fn deref(&self) -> &Store<K> {
        &self.store
    }
}

impl<K> Opened<K> {
    pub(super) fn into_store(self) -> Arc<Store<K>> {
        self.store
    }

    pub(super) fn into_parts(self) -> (Arc<Store<K>>, Arc<Lease>) {
        (self.store, self.lease)
    }
}

/// All who hold a store open share one; when it goes, the store is closed.
#[derive(Debug)]
pub(super) struct Lease {
    stores: Weak<OpenStores>,
    kind: Kind,
    id: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(stores) = self.stores.upgrade() {
            stores.close(&self.kind, self.id);
        }
    }
}

#[derive(Default)]
pub(super) struct OpenStores {
    inner: Mutex<Inner>,
    opened: Notify,
}

#[derive(Default)]
struct Inner {
    by_kind: BTreeMap<Kind, Vec<OpenStore>>,
    /// Those that stay as long as the cache.
    kept: Vec<Arc<Lease>>,
    next_id: u64,
}

impl std::fmt::Debug for OpenStores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} kinds", self.inner.lock().by_kind.len())
    }
}

struct OpenStore {
    id: u64,
    store: Arc<AnyStore>,
    lease: Weak<Lease>,
    watches: Watches,
}

enum Watches {
    Declared,
    Running(Vec<AbortHandle>),
}

impl OpenStores {
    /// The store of this type and scope: the one that is open, or a new one.
    pub(super) fn open<K: Cached>(
        self: &Arc<Self>,
        kind: Kind,
        scope: &Scope,
        new: impl FnOnce() -> AnyStore,
    ) -> Opened<K> {
        let (store, lease) = self.open_any(kind, TypeId::of::<K>(), scope, Box::new(new));
        Opened { store: Arc::new(Store::of(store)), lease }
    }

    fn open_any(
        self: &Arc<Self>,
        kind: Kind,
        of_type: TypeId,
        scope: &Scope,
        new: Box<dyn FnOnce() -> AnyStore + '_>,
    ) -> (Arc<AnyStore>, Arc<Lease>) {
        let mut inner = self.inner.lock();
        let stores = inner.by_kind.get(&kind).into_iter().flatten();
        let mut stores = stores.filter(|open| open.store.of_type() == of_type && open.store.scope() == scope);
        // Without a lease, it is being closed. One that is found must not be dropped here: it would close the store while we
        // hold the lock.
        if let Some(found) = stores.find_map(|open| Some((open.store.clone(), open.lease.upgrade()?))) {
            return found;
        }
        let store = Arc::new(new());
        inner.next_id += 1;
        let id = inner.next_id;
        let lease = Arc::new(Lease { stores: Arc::downgrade(self), kind: kind.clone(), id });
        inner.by_kind.entry(kind).or_default().push(OpenStore {
            id,
            store: store.clone(),
            lease: Arc::downgrade(&lease),
            watches: Watches::Declared,
        });
        drop(inner);
        self.opened.notify_one();
        (store, lease)
    }

    /// A store of this kind and scope that is open, of whatever type: of several the one that holds most.
    pub(super) fn find(&self, kind: &Kind, scope: &Scope) -> Option<AnyOpened> {
        let inner = self.inner.lock();
        let stores = inner.by_kind.get(kind).into_iter().flatten();
        let stores = stores.filter(|open| open.store.scope() == scope);
        let mut found: Vec<AnyOpened> = stores
            .filter_map(|open| Some(AnyOpened { store: open.store.clone(), _lease: open.lease.upgrade()? }))
            .collect();
        // A lease must not be dropped while we hold the lock: it would close its store.
        drop(inner);
        found.sort_by_key(|opened| opened.store.stats().metadata_only);
        found.into_iter().next()
    }

    /// Holds a store open as long as the cache is there.
    pub(super) fn keep<K>(&self, opened: &Opened<K>) {
        let mut inner = self.inner.lock();
        if inner.kept.iter().all(|lease| lease.id != opened.lease.id) {
            inner.kept.push(opened.lease.clone());
        }
    }

    fn close(&self, kind: &Kind, id: u64) {
        let closed = {
            let mut inner = self.inner.lock();
            let Some(stores) = inner.by_kind.get_mut(kind) else { return };
            let Some(at) = stores.iter().position(|open| open.id == id) else { return };
            let closed = stores.remove(at);
            if stores.is_empty() {
                inner.by_kind.remove(kind);
            }
            closed
        };
        if let Watches::Running(watches) = &closed.watches {
            watches.iter().for_each(AbortHandle::abort);
        }
    }

    /// Every store that is open.
    pub(super) fn all(&self) -> Vec<Arc<AnyStore>> {
        self.inner.lock().by_kind.values().flatten().map(|open| open.store.clone()).collect()
    }

    /// Every store of a kind that is open.
    pub(super) fn of(&self, kind: &Kind) -> Vec<Arc<AnyStore>> {
        self.inner.lock().by_kind.get(kind).into_iter().flatten().map(|open| open.store.clone()).collect()
    }

    /// Runs the watches of all that is open, and of what is opened later. Ends only if one of them panicked.
    pub(super) async fn supervise(self: Arc<Self>, client: Client, clock: Clock) {
        let mut watches = JoinSet::new();
        loop {
            for open in self.inner.lock().by_kind.values_mut().flatten() {
                if let Watches::Declared = &open.watches {
                    open.watches = Watches::Running(start(&open.store, &client, &clock, &mut watches));
                }
            }
            tokio::select! {
                () = self.opened.notified() => {}
                Some(ended) = watches.join_next() => {
                    // Of a store that was closed, nothing more is to be seen; a panic is another matter.
                    if !ended.is_err_and(|error| error.is_cancelled()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Starts the watches of a store.
fn start(store: &Arc<AnyStore>, client: &Client, clock: &Clock, tasks: &mut JoinSet<()>) -> Vec<AbortHandle> {
    let parts = store.scope().parts().into_iter().enumerate();
    let watch = |(part, namespace)| {
        let (client, clock) = (client.clone(), clock.clone());
        tasks.spawn(keep_watching(client, clock, store.clone(), part, namespace))
    };
    parts.map(watch).collect()
}
