//! The shared cache: one watch per kind and scope however many use it, objects shared and never copied, and one's own
//! writes readable at once.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kube::core::PartialObjectMeta;
//! use tokio::task::JoinSet;
//! use windlass::cache::{Cache, Scope};
//! use windlass::clock::Clock;
//!
//! # async fn run(client: kube::Client) -> Result<(), windlass::cache::SelectorError> {
//! let cache = Cache::new("local".into(), "shop");
//! let maps = cache.store::<ConfigMap>();                 // held as long as the cache is
//! let mut tasks = JoinSet::new();
//! cache.start(&client, &Clock::real(), &mut tasks);
//! cache.synced().await;
//! println!("{} config maps", maps.len());
//!
//! // While it runs: other kinds, other scopes, or metadata alone. Closed, and its memory given back, when dropped.
//! let secrets = cache.open::<PartialObjectMeta<Secret>>(Scope::default().labelled("tier=db")?);
//! secrets.synced().await;
//! println!("{} secrets, {:?}", secrets.len(), cache.stats());
//! # Ok(()) }
//! ```
//!
//! The way of an object: `wire` (lines of a watch) -> `decoder` (decoded, trimmed, measured) -> `overlay` (is it newer than
//! what is known?) -> `view` (with its indexes) -> listeners.
//!
//! - An object that cannot be decoded is reported, counted and left out, and so is the older state of it: neither ends the
//!   watch.
//! - What is held is lean: of `managedFields` only the entries of our own field managers, and metadata alone where a type
//!   asks for no more.
//! - Stores know no Rust type: only `typed_decoder.rs` does, and `store.rs` gives users their type back. With a copy of the
//!   cache per kind, most of the code in a cluster's controllers was the same, and code is most of what a cluster at rest
//!   keeps in memory.

mod any_store;
mod compressed;
mod decoded_lru;
mod decoder;
mod index;
mod json_spans;
#[cfg(test)]
mod kinds_tests;
mod memory_size;
mod metadata_store;
mod object;
mod open_stores;
mod overlay;
#[cfg(test)]
mod overlay_tests;
mod scope;
mod selection;
mod stats;
mod store;
#[cfg(test)]
mod store_tests;
mod typed_decoder;
mod view;
mod watch_events;
mod watching;
#[cfg(test)]
mod watching_tests;
mod wire;
#[cfg(test)]
mod world;

pub(crate) use any_store::AnyStore;
pub use any_store::Listening;
pub use decoder::Unreadable;
pub use index::Index;
pub(crate) use index::{AnyIndex, Filed};
pub(crate) use json_spans::{elements, members, value_of};
pub use metadata_store::AnyOpened;
pub use object::AnyObject;
pub(crate) use object::{owner_uids, typed};
pub use open_stores::Opened;
pub use overlay::{Change, ObjectVersion, Overlay, Stale};
pub use scope::{Namespaces, Scope};
pub(crate) use selection::{Select, Selectable, Selection};
pub use stats::Stats;
pub use store::{Changed, Listener, Origin, Store};
pub use windlass_schema::selector::SelectorError;
pub(crate) use wire::escape;

use crate::key::Key;
use crate::kind::{Cached, Kind, Object};
use decoder::{Decoder, Managers, Transforms};
use kube::Client;
use open_stores::OpenStores;
use parking_lot::Mutex;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::JoinSet;
use windlass_clock::Clock;

/// The caches of one cluster. Cheap to clone; clones share.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

struct Shared {
    cluster: Arc<str>,
    namespaces: Namespaces,
    managers: Managers,
    /// By type: its [`Transforms`].
    transforms: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    open_stores: Arc<OpenStores>,
}

impl Cache {
    /// The caches of a cluster, of all namespaces or of some.
    ///
    /// ```
    /// use windlass::cache::{Cache, Namespaces};
    ///
    /// let everywhere = Cache::new("local".into(), Namespaces::All);
    /// let in_two = Cache::new("local".into(), vec!["shop".to_string(), "bank".to_string()]);
    /// ```
    pub fn new(cluster: Arc<str>, namespaces: impl Into<Namespaces>) -> Self {
        Self {
            shared: Arc::new(Shared {
                cluster,
                namespaces: namespaces.into(),
                managers: Managers::default(),
                transforms: Mutex::default(),
                open_stores: Arc::default(),
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

    /// Changes every object of a type before it is held, from now on: fields that nobody reads need no memory. What a plan
    /// applies must stay, or it would look as if it had to be applied again.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use windlass::cache::{Cache, Namespaces};
    ///
    /// let cache = Cache::new("local".into(), Namespaces::All);
    /// cache.transform(|pod: &mut Pod| pod.status = None);
    /// ```
    pub fn transform<K: Cached>(&self, transform: impl Fn(&mut K) + Send + Sync + 'static) {
        self.transforms::<K>().write().push(Arc::new(transform));
    }

    fn transforms<K: Cached>(&self) -> Transforms<K> {
        let mut all = self.shared.transforms.lock();
        let new = || Arc::new(Transforms::<K>::default()) as Arc<dyn Any + Send + Sync>;
        let transforms = all.entry(TypeId::of::<K>()).or_insert_with(new);
        transforms.downcast_ref::<Transforms<K>>().cloned().expect("filed under its own type")
    }

    /// The store of a kind, in the cache's namespaces. Asking for it declares that it is to be watched as long as the
    /// cache is there; asking again shares it. Two Rust types for one kind have a store and a watch each: with
    /// `PartialObjectMeta<K>`, it is of metadata alone.
    pub fn store<K: Object>(&self) -> Arc<Store<K>> {
        self.store_of(Kind::of::<K>())
    }

    /// As [`Cache::store`], for a kind that the type does not know: `kube::core::DynamicObject`, or
    /// `kube::core::PartialObjectMeta` for metadata alone.
    ///
    /// ```
    /// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    /// use windlass::Kind;
    /// use windlass::cache::{Cache, Namespaces};
    ///
    /// let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    /// let cache = Cache::new("local".into(), Namespaces::All);
    /// let widgets = cache.store_of::<DynamicObject>(Kind::of_resource(&resource, true));
    /// assert_eq!(widgets.kind().plural, "widgets");
    /// ```
    pub fn store_of<K: Cached>(&self, kind: Kind) -> Arc<Store<K>> {
        self.kept(kind, Scope::default())
    }

    fn kept<K: Cached>(&self, kind: Kind, scope: Scope) -> Arc<Store<K>> {
        let opened = self.open_of(kind, scope);
        self.shared.open_stores.keep(&opened);
        opened.into_store()
    }

    /// As [`Cache::store_of`], in a scope and with its type forgotten.
    pub(crate) fn any_store<K: Cached>(&self, kind: Kind, scope: Scope) -> Arc<AnyStore> {
        self.kept::<K>(kind, scope).any.clone()
    }

    /// Opens a kind in a scope, whether the cache runs already or not. It is closed, and its memory given back, when the
    /// last of those who opened it drops what is returned.
    pub fn open<K: Object>(&self, scope: Scope) -> Opened<K> {
        self.open_of(Kind::of::<K>(), scope)
    }

    /// As [`Cache::open`], for a kind that the type does not know.
    pub fn open_of<K: Cached>(&self, kind: Kind, scope: Scope) -> Opened<K> {
        let scope = scope.resolve(&self.shared.namespaces, kind.namespaced);
        OpenStores::open(&self.shared.open_stores, kind.clone(), &scope, || {
            let (cluster, managers) = (self.shared.cluster.clone(), self.shared.managers.clone());
            AnyStore::new(Decoder::new(kind, cluster, managers, self.transforms::<K>()), scope.clone())
        })
    }

    /// Starts the watches that are declared, and those that will be, as a task in `tasks`: dropping that stops them. The
    /// task ends by itself only if a watch panicked.
    pub fn start(&self, client: &Client, clock: &Clock, tasks: &mut JoinSet<()>) {
        tasks.spawn(self.shared.open_stores.clone().supervise(client.clone(), clock.clone()));
    }

    /// Waits until every kind that is declared by now had its first list.
    pub async fn synced(&self) {
        let waiting: Vec<_> =
            self.shared.open_stores.all().iter().map(|store| store.subscribe_synced()).collect();
        for mut synced in waiting {
            // An error means that it was closed meanwhile: nobody waits for it.
            let _ = synced.wait_for(|synced| *synced).await;
        }
    }

    /// The kinds that had no first list yet.
    pub fn unsynced(&self) -> Vec<Kind> {
        let stores = self.shared.open_stores.all();
        stores.iter().filter(|store| !store.is_synced()).map(|store| store.kind().clone()).collect()
    }

    /// What is held and what became of the watches, of each kind and scope.
    pub fn stats(&self) -> Vec<Stats> {
        self.shared.open_stores.all().iter().map(|store| store.stats()).collect()
    }

    /// The version that an object is known with, newest first.
    pub(crate) fn version_of(&self, kind: &Kind, key: &Key) -> Option<ObjectVersion> {
        let stores = self.shared.open_stores.of(kind);
        stores
            .iter()
            .filter_map(|store| store.version_of(key))
            .max_by_key(|object_version| object_version.version)
    }

    /// The object under a key, as the first store that has it shows it.
    pub(crate) fn any_object(&self, kind: &Kind, key: &Key) -> Option<Arc<dyn AnyObject>> {
        self.shared.open_stores.of(kind).iter().find_map(|store| store.get(key))
    }

    /// Tells every store of a kind that the server answered with the object in a text, which is under this key and has this
    /// version.
    pub(crate) fn wrote(
        &self,
        kind: &Kind,
        key: &Key,
        object_version: &ObjectVersion,
        text: &[u8],
        origin: Option<&Origin>,
    ) -> Result<(), Unreadable> {
        let mut result = Ok(());
        for store in self.shared.open_stores.of(kind) {
            // One that cannot read it does not keep the others from it.
            result = result.and(store.wrote(key, object_version, text, origin.cloned()));
        }
        result
    }

    /// Gives every store of a kind an object that was read live, unless it has it. Each is asked by itself: two stores of a kind
    /// have watches of their own.
    pub(crate) fn learn(&self, kind: &Kind, key: &Key, version: &ObjectVersion, text: impl Fn() -> Vec<u8>) {
        for store in self.shared.open_stores.of(kind) {
            if store.version_of(key).as_ref() != Some(version) {
                // One that cannot be read is reported by the store.
                let _ = store.wrote(key, version, &text(), None);
            }
        }
    }

    /// Tells every store of a kind that an object is gone.
    pub(crate) fn wrote_gone(&self, kind: &Kind, key: &Key, last: &ObjectVersion, origin: Option<&Origin>) {
        self.shared
            .open_stores
            .of(kind)
            .iter()
            .for_each(|store| store.wrote_gone(key, last, origin.cloned()));
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stores = self.shared.open_stores.all();
        f.debug_list()
            .entries(stores.iter().map(|store| format!("{} {}", store.kind(), store.scope())))
            .finish()
    }
}
