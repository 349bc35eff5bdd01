//! Which stores are open, who holds them open, and the one task that keeps their watches running.

use super::any::AnyOpened;
use super::erased::AnyStore;
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
    slots: Weak<Slots>,
    kind: Kind,
    id: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.upgrade() {
            slots.close(&self.kind, self.id);
        }
    }
}

#[derive(Default)]
pub(super) struct Slots {
    inner: Mutex<Inner>,
    opened: Notify,
}

#[derive(Default)]
struct Inner {
    by_kind: BTreeMap<Kind, Vec<Slot>>,
    /// Those that stay as long as the cache.
    kept: Vec<Arc<Lease>>,
    next_id: u64,
}

impl std::fmt::Debug for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} kinds", self.inner.lock().by_kind.len())
    }
}

struct Slot {
    id: u64,
    store: Arc<AnyStore>,
    lease: Weak<Lease>,
    watches: Watches,
}

enum Watches {
    Declared,
    Running(Vec<AbortHandle>),
}

impl Slots {
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
        let slots = inner.by_kind.get(&kind).into_iter().flatten();
        let mut slots = slots.filter(|slot| slot.store.of_type() == of_type && slot.store.scope() == scope);
        // Without a lease, it is being closed. One that is found must not be dropped here: it would close the store while we
        // hold the lock.
        if let Some(found) = slots.find_map(|slot| Some((slot.store.clone(), slot.lease.upgrade()?))) {
            return found;
        }
        let store = Arc::new(new());
        inner.next_id += 1;
        let id = inner.next_id;
        let lease = Arc::new(Lease { slots: Arc::downgrade(self), kind: kind.clone(), id });
        inner.by_kind.entry(kind).or_default().push(Slot {
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
        let slots = inner.by_kind.get(kind).into_iter().flatten();
        let slots = slots.filter(|slot| slot.store.scope() == scope);
        let mut found: Vec<AnyOpened> = slots
            .filter_map(|slot| Some(AnyOpened { store: slot.store.clone(), _lease: slot.lease.upgrade()? }))
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
            let Some(slots) = inner.by_kind.get_mut(kind) else { return };
            let Some(at) = slots.iter().position(|slot| slot.id == id) else { return };
            let closed = slots.remove(at);
            if slots.is_empty() {
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
        self.inner.lock().by_kind.values().flatten().map(|slot| slot.store.clone()).collect()
    }

    /// Every store of a kind that is open.
    pub(super) fn of(&self, kind: &Kind) -> Vec<Arc<AnyStore>> {
        self.inner.lock().by_kind.get(kind).into_iter().flatten().map(|slot| slot.store.clone()).collect()
    }

    /// Runs the watches of all that is open, and of what is opened later. Ends only if one of them panicked.
    pub(super) async fn supervise(self: Arc<Self>, client: Client, clock: Clock) {
        let mut watches = JoinSet::new();
        loop {
            for slot in self.inner.lock().by_kind.values_mut().flatten() {
                if let Watches::Declared = &slot.watches {
                    slot.watches = Watches::Running(start(&slot.store, &client, &clock, &mut watches));
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
