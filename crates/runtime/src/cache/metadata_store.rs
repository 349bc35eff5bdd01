//! A kind that is opened for its metadata, whatever Rust type its objects are held as: for those who look at every kind there
//! is, such as a garbage collector.

use super::any_store::AnyStore;
use super::any_store::Listening;
use super::object::AnyObject;
use super::open_stores::{Lease, OpenStores, Opened};
use super::scope::Scope;
use super::store::Listener;
use super::{Cache, ObjectVersion};
use crate::key::Key;
use crate::kind::{Cached, Kind};
use kube::core::PartialObjectMeta;
use std::sync::Arc;

/// A store that is open as long as somebody holds one of these, of objects whose type is not known here.
#[derive(Debug, Clone)]
pub struct AnyOpened {
    pub(super) store: Arc<AnyStore>,
    /// Keeps it open.
    pub(super) _lease: Arc<Lease>,
}

impl Cache {
    /// Opens a kind for its metadata, in the cache's namespaces: shares a store of the whole objects where one is open, and
    /// holds metadata alone where none is.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// use windlass::Kind;
    /// use windlass::cache::{Cache, Namespaces};
    ///
    /// let cache = Cache::new("local".into(), Namespaces::All);
    /// let pods = cache.store::<Pod>();
    /// let same = cache.open_any(Kind::of::<Pod>());
    /// let maps = cache.open_any(Kind::of::<ConfigMap>());
    /// assert_eq!(cache.stats().len(), 2);
    /// ```
    pub fn open_any(&self, kind: Kind) -> AnyOpened {
        let scope = Scope::default().resolve(&self.shared.namespaces, kind.namespaced);
        match OpenStores::find(&self.shared.open_stores, &kind, &scope) {
            Some(found) => found,
            None => self.open_of::<PartialObjectMeta>(kind, Scope::default()).into(),
        }
    }
}

impl<K: Cached> From<Opened<K>> for AnyOpened {
    fn from(opened: Opened<K>) -> Self {
        let (store, _lease) = opened.into_parts();
        Self { store: store.any.clone(), _lease }
    }
}

impl AnyOpened {
    /// The kind it holds.
    pub fn kind(&self) -> &Kind {
        self.store.kind()
    }

    /// The object under a key.
    pub fn get(&self, key: &Key) -> Option<Arc<dyn AnyObject>> {
        self.store.get(key)
    }

    /// The version of the object under a key.
    pub fn version_of(&self, key: &Key) -> Option<ObjectVersion> {
        self.store.version_of(key)
    }

    /// Everything it holds, in no particular order.
    pub fn list(&self) -> Vec<Arc<dyn AnyObject>> {
        self.store.list()
    }

    /// The objects that name this UID among their owners, by key.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<dyn AnyObject>> {
        self.store.owned_by(uid)
    }

    /// How many objects name this UID among their owners.
    pub fn count_owned_by(&self, uid: &str) -> usize {
        self.store.count_owned_by(uid)
    }

    /// Whether the first list is in.
    pub fn is_synced(&self) -> bool {
        self.store.is_synced()
    }

    /// Waits until the first list is in; not, if it is closed before.
    pub async fn synced(&self) -> bool {
        self.store.subscribe_synced().wait_for(|synced| *synced).await.is_ok()
    }

    /// Calls `listener` for every change from now on, until what is returned is dropped.
    pub fn listen_while(&self, listener: Listener) -> Listening {
        self.store.listen_while(listener)
    }
}

#[cfg(test)]
mod tests {
    use crate::cache::world::{World, eventually, key};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::PostParams;
    use serde_json::json;

    #[tokio::test]
    async fn a_kind_that_is_held_whole_is_shared_and_another_is_held_as_metadata() -> anyhow::Result<()> {
        use crate::Kind;
        use k8s_openapi::api::core::v1::Secret;
        let mut world = World::new("default");
        let maps = world.cache.store::<ConfigMap>();
        world.start();
        let same = world.cache.open_any(Kind::of::<ConfigMap>());
        let secrets = world.cache.open_any(Kind::of::<Secret>());
        let again = world.cache.open_any(Kind::of::<Secret>());
        let owned = json!({"metadata": {"name": "child", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u1"}]}});
        world.maps("default").create(&PostParams::default(), &serde_json::from_value(owned)?).await?;
        eventually("both hold it", || maps.len() == 1 && same.get(&key("default", "child")).is_some())
            .await?;
        assert_eq!((same.count_owned_by("u1"), same.owned_by("u1").len(), same.list().len()), (1, 1, 1));
        assert_eq!(same.count_owned_by("u2"), 0);
        assert_eq!(world.cache.stats().len(), 2, "no second copy of either");
        assert!(world.stats("Secret").metadata_only && !world.stats("ConfigMap").metadata_only);
        drop((secrets, same));
        assert_eq!(world.cache.stats().len(), 2, "somebody holds it still");
        drop(again);
        assert_eq!(world.cache.stats().len(), 1);
        Ok(())
    }
}
