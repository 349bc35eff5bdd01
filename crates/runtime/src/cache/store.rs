//! The cached objects of one kind and scope, as users have them: with their type.

use super::any_store::{AnyStore, Listening};
use super::decoder::{Identity, Unreadable};
use super::index::Index;
use super::object::{AnyObject, typed};
use super::overlay::ObjectVersion;
use super::scope::Scope;
use super::stats::Stats;
use crate::key::Key;
use crate::kind::{Cached, Kind};
use serde_json::Value;
use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Who wrote: a controller, in its reconcile for one object. That reconcile needs no telling of its own writes; everybody else does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The controller's name, which is also its field manager.
    pub controller: Arc<str>,
    /// The object whose reconcile it is.
    pub reconciled: Key,
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
pub struct Store<K> {
    pub(super) any: Arc<AnyStore>,
    of: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any.fmt(f)
    }
}

fn all_typed<K: Cached>(objects: Vec<Arc<dyn AnyObject>>) -> Vec<Arc<K>> {
    objects.into_iter().map(typed).collect()
}

impl<K: Cached> Store<K> {
    /// Of one that holds objects of this type.
    pub(super) fn of(any: Arc<AnyStore>) -> Self {
        debug_assert_eq!(any.of_type(), TypeId::of::<K>());
        Self { any, of: PhantomData }
    }

    /// The kind it holds.
    pub fn kind(&self) -> &Kind {
        self.any.kind()
    }

    /// The cluster it is of.
    pub fn cluster(&self) -> &Arc<str> {
        self.any.cluster()
    }

    /// Which objects it holds.
    pub fn scope(&self) -> &Scope {
        self.any.scope()
    }

    /// The object under a key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.any.get(key).map(typed)
    }

    /// Everything it holds, in no particular order.
    pub fn list(&self) -> Vec<Arc<K>> {
        all_typed(self.any.list())
    }

    /// The keys of everything it holds, in no particular order.
    pub fn keys(&self) -> Vec<Key> {
        self.any.keys()
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.any.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that name this UID among their owners, by key.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        all_typed(self.any.owned_by(uid))
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
        all_typed(self.any.find(&index.erase(), term))
    }

    /// Calls `listener` for every change from now on, as long as the store is there.
    pub fn listen(&self, listener: Listener) {
        self.any.listen(listener);
    }

    /// Calls `listener` for every change from now on, until what is returned is dropped.
    pub fn listen_while(&self, listener: Listener) -> Listening {
        self.any.listen_while(listener)
    }

    /// Waits until the first list is in.
    pub async fn synced(&self) -> bool {
        self.any.subscribe_synced().wait_for(|synced| *synced).await.is_ok()
    }

    /// What it holds, and what became of its watch.
    pub fn stats(&self) -> Stats {
        self.any.stats()
    }

    /// Takes in an object that the server answered with. One that is none of its scope, as by a label that was changed, is
    /// let go of.
    ///
    /// # Errors
    /// [`Unreadable`] when it does not fit its type.
    pub fn wrote(&self, object: &Value, origin: Option<Origin>) -> Result<(Key, ObjectVersion), Unreadable> {
        self.wrote_text(object.to_string().as_bytes(), origin)
    }

    /// As [`Store::wrote`], of an object that is there as text: it is read once only.
    ///
    /// # Errors
    /// [`Unreadable`] when it does not fit its type.
    pub fn wrote_text(
        &self,
        text: &[u8],
        origin: Option<Origin>,
    ) -> Result<(Key, ObjectVersion), Unreadable> {
        let (key, object_version) = self.any.decoder.wants.identify(&Identity::in_text(text))?;
        self.any.wrote(&key, &object_version, text, origin)?;
        Ok((key, object_version))
    }

    /// Takes note that the server says an object is gone.
    pub fn wrote_gone(&self, key: &Key, last: &ObjectVersion, origin: Option<Origin>) {
        self.any.wrote_gone(key, last, origin);
    }

    /// The version of the object under a key.
    pub fn version_of(&self, key: &Key) -> Option<ObjectVersion> {
        self.any.version_of(key)
    }
}
