//! Watches the ConfigMaps and Secrets of one pod, each by name: a node is authorized for no others.

use super::objects::{Names, Objects};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use windlass::cache::{Cache, Listening, Opened, Scope};
use windlass::{Key, Object};
use windlass_clock::Clock;

/// How long the first list of an object may take.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);

/// The objects that a pod refers to, kept up to date.
pub(crate) struct WatchedObjects {
    namespace: String,
    names: Names,
    config_maps: BTreeMap<String, (Opened<ConfigMap>, Listening)>,
    secrets: BTreeMap<String, (Opened<Secret>, Listening)>,
}

impl std::fmt::Debug for WatchedObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedObjects").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl WatchedObjects {
    /// Starts the watches; `changed` is notified of every change.
    pub(crate) fn open(cache: &Cache, namespace: &str, names: Names, changed: &Arc<Notify>) -> Self {
        Self {
            namespace: namespace.to_owned(),
            config_maps: names
                .config_maps
                .iter()
                .map(|name| (name.clone(), open(cache, namespace, name, changed)))
                .collect(),
            secrets: names
                .secrets
                .iter()
                .map(|name| (name.clone(), open(cache, namespace, name, changed)))
                .collect(),
            names,
        }
    }

    /// The names of the watched objects.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Waits until all watches have synced. An error names the first that has not.
    pub(crate) async fn synced(&self, clock: &Clock) -> Result<(), String> {
        let late =
            |kind: &str, name: &str| format!("failed to sync {kind} cache: {name} was not read in time");
        for (name, (store, _)) in &self.config_maps {
            clock.timeout(SYNC_TIMEOUT, store.synced()).await.map_err(|_| late("configmap", name))?;
        }
        for (name, (store, _)) in &self.secrets {
            clock.timeout(SYNC_TIMEOUT, store.synced()).await.map_err(|_| late("secret", name))?;
        }
        Ok(())
    }

    /// The current objects.
    pub(crate) fn objects(&self) -> Objects {
        let key = |name: &String| Key::new("".into(), Some(&self.namespace), name);
        Objects {
            config_maps: self
                .config_maps
                .iter()
                .filter_map(|(name, (store, _))| Some((name.clone(), store.get(&key(name))?)))
                .collect(),
            secrets: self
                .secrets
                .iter()
                .filter_map(|(name, (store, _))| Some((name.clone(), store.get(&key(name))?)))
                .collect(),
        }
    }
}

fn open<K: Object>(
    cache: &Cache,
    namespace: &str,
    name: &str,
    changed: &Arc<Notify>,
) -> (Opened<K>, Listening) {
    let scope = Scope::default().within(namespace).with_fields(&format!("metadata.name={name}"));
    let opened = cache.open::<K>(scope.unwrap_or_else(|_| Scope::default().within(namespace)));
    let changed = changed.clone();
    let listening = opened.listen_while(Arc::new(move |_| changed.notify_one()));
    (opened, listening)
}
