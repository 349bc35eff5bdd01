//! The shared cache: one watch per kind and scope however many use it, objects shared and never copied, and one's own
//! writes readable at once.

mod object;
mod overlay;
mod store;
#[cfg(test)]
mod store_tests;
mod watching;

pub use object::AnyObject;
pub(crate) use object::{face, owner_uids};
pub use overlay::{Change, Overlay, Stale, Stamp};
pub(crate) use store::AnyStore;
pub use store::{Changed, Listener, Origin, Store, Unreadable};

use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::metrics::Held;
use kube::Client;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Managers;
use tokio::task::JoinSet;
use windlass_clock::Clock;

/// The caches of one cluster. Cheap to clone; clones share.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

struct Shared {
    cluster: Arc<str>,
    namespace: Option<String>,
    managers: Managers,
    stores: Mutex<BTreeMap<Kind, Vec<Slot>>>,
}

struct Slot {
    typed: Arc<dyn Any + Send + Sync>,
    erased: Arc<dyn AnyStore>,
    /// Starts the watch; taken when it is started.
    start: Option<Start>,
}

type Start = Box<dyn FnOnce(Client, Clock, &mut JoinSet<()>) + Send>;

impl Cache {
    /// The caches of a cluster, of all namespaces or of one.
    pub fn new(cluster: Arc<str>, namespace: Option<String>) -> Self {
        Self {
            shared: Arc::new(Shared {
                cluster,
                namespace,
                managers: Managers::default(),
                stores: Mutex::new(BTreeMap::new()),
            }),
        }
    }

    /// The cluster's id.
    pub fn cluster(&self) -> &Arc<str> {
        &self.shared.cluster
    }

    /// Keeps the managedFields of this manager on cached objects. To be said before [`Cache::start`].
    pub fn keep_fields_of(&self, manager: Arc<str>) {
        self.shared.managers.write().insert(manager);
    }

    /// The store of a kind. Asking for it declares that it is to be watched; asking again shares it. Two Rust types for
    /// one kind have a store and a watch each.
    pub fn store<K: Object>(&self) -> Arc<Store<K>> {
        let kind = Kind::of::<K>();
        let scope = self.shared.namespace.clone().filter(|_| kind.namespaced);
        let mut stores = self.shared.stores.lock();
        let slots = stores.entry(kind).or_default();
        if let Some(store) = slots.iter().find_map(|slot| slot.typed.clone().downcast::<Store<K>>().ok()) {
            return store;
        }
        let store =
            Arc::new(Store::<K>::new(self.shared.cluster.clone(), scope, self.shared.managers.clone()));
        let watched = store.clone();
        slots.push(Slot {
            typed: store.clone(),
            erased: store.clone(),
            start: Some(Box::new(move |client, clock, tasks| {
                tasks.spawn(watching::keep_watching(client, clock, watched));
            })),
        });
        store
    }

    /// Starts the watches that were declared and do not run yet, as tasks in `tasks`: dropping those stops them.
    pub fn start(&self, client: &Client, clock: &Clock, tasks: &mut JoinSet<()>) {
        for slot in self.shared.stores.lock().values_mut().flatten() {
            if let Some(start) = slot.start.take() {
                start(client.clone(), clock.clone(), tasks);
            }
        }
    }

    /// Waits until every declared kind had its first list.
    pub async fn synced(&self) {
        let waiting: Vec<_> =
            self.shared.stores.lock().values().flatten().map(|slot| slot.erased.subscribe_synced()).collect();
        for mut synced in waiting {
            // The sender lives in the store, which the cache holds.
            let _ = synced.wait_for(|synced| *synced).await;
        }
    }

    /// The kinds that are watched, or will be.
    pub fn kinds(&self) -> Vec<Kind> {
        self.shared.stores.lock().keys().cloned().collect()
    }

    /// The kinds that had no first list yet.
    pub fn unsynced(&self) -> Vec<Kind> {
        let stores = self.shared.stores.lock();
        let waiting = stores.values().flatten().filter(|slot| !slot.erased.is_synced());
        waiting.map(|slot| slot.erased.kind().clone()).collect()
    }

    /// What each store holds.
    pub(crate) fn held(&self) -> Vec<Held> {
        let stores = self.shared.stores.lock();
        stores.values().flatten().map(|slot| slot.erased.held()).collect()
    }

    /// The store that acting and observing read a kind from.
    pub(crate) fn erased(&self, kind: &Kind) -> Option<Arc<dyn AnyStore>> {
        self.shared.stores.lock().get(kind)?.first().map(|slot| slot.erased.clone())
    }

    /// Tells every store of a kind that the server answered with this object.
    pub(crate) fn wrote(
        &self,
        kind: &Kind,
        object: &serde_json::Value,
        origin: Option<&Origin>,
    ) -> Result<(), Unreadable> {
        self.each(kind).iter().try_for_each(|store| store.wrote(object.clone(), origin.cloned()).map(drop))
    }

    /// Tells every store of a kind that an object is gone.
    pub(crate) fn wrote_gone(&self, kind: &Kind, key: &Key, last: &Stamp, origin: Option<&Origin>) {
        self.each(kind).iter().for_each(|store| store.wrote_gone(key, last, origin.cloned()));
    }

    fn each(&self, kind: &Kind) -> Vec<Arc<dyn AnyStore>> {
        let stores = self.shared.stores.lock();
        stores.get(kind).into_iter().flatten().map(|slot| slot.erased.clone()).collect()
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stores = self.shared.stores.lock();
        f.debug_list().entries(stores.keys().map(|kind| &kind.kind)).finish()
    }
}
