//! How many pods the controllers of pods want, of whatever kind they are: from the cache, or from their scale subresource.

use crate::controller_ref::controller_of;
use crate::discovery::{Discovery, group_of};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass::cache::Cache;
use windlass::{Key, Object};

/// The discovered kinds; discovery is repeated when an unknown one is met.
pub(super) type Kinds = Arc<Mutex<Arc<Discovery>>>;

/// The scale of the controllers of pods, in sum.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) pods: i32,
    /// Whether some pod has no controller with a scale.
    pub(super) unmanaged: bool,
}

/// Opens the caches of the built-in controllers.
pub(super) fn watch(cache: &Cache) {
    cache.store::<ReplicaSet>();
    cache.store::<ReplicationController>();
    cache.store::<StatefulSet>();
    cache.store::<Deployment>();
}

/// Finds the scale of each controller once.
pub(super) async fn wanted(
    client: &Client,
    cache: &Cache,
    kinds: &Kinds,
    pods: &[Arc<Pod>],
) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    // By the UID of the controller; and the owners that were seen.
    let (mut scales, mut seen) = (BTreeMap::new(), BTreeSet::new());
    for pod in pods {
        let Some(owner) = controller_of(&pod.metadata) else {
            wanted.unmanaged = true;
            continue;
        };
        if !seen.insert(owner.uid.as_str()) {
            continue;
        }
        let namespace = pod.metadata.namespace.as_deref();
        let found = match from_cache(cache, owner, namespace) {
            Some(found) => Some(found),
            None => from_scale_subresource(client, kinds, owner, namespace).await?,
        };
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let (uid, scale) = found.ok_or_else(|| format!("found no controllers for pod {name:?}"))?;
        scales.insert(uid, scale);
    }
    wanted.pods = scales.values().fold(0, |sum: i32, scale| sum.saturating_add(*scale));
    Ok(wanted)
}

type Found = Option<(String, i32)>;

/// A controller of a built-in kind, from the cache: its UID, or that of its Deployment, and its scale.
fn from_cache(cache: &Cache, owner: &OwnerReference, namespace: Option<&str>) -> Found {
    let uid = owner.uid.clone();
    match (group_of(&owner.api_version), owner.kind.as_str()) {
        ("apps" | "extensions", "ReplicaSet") => {
            let set = get::<ReplicaSet>(cache, owner, namespace)?;
            let above = controller_of(&set.metadata).filter(|above| above.kind == "Deployment");
            if let Some(above) = above {
                let deployment = get::<Deployment>(cache, above, namespace)?;
                return Some((above.uid.clone(), deployment.spec.as_ref()?.replicas.unwrap_or(1)));
            }
            Some((uid, set.spec.as_ref()?.replicas.unwrap_or(1)))
        }
        ("apps", "StatefulSet") => {
            let set = get::<StatefulSet>(cache, owner, namespace)?;
            Some((uid, set.spec.as_ref()?.replicas.unwrap_or(1)))
        }
        ("", "ReplicationController") => {
            let controller = get::<ReplicationController>(cache, owner, namespace)?;
            Some((uid, controller.spec.as_ref()?.replicas.unwrap_or(1)))
        }
        _ => None,
    }
}

fn get<K: Object>(cache: &Cache, owner: &OwnerReference, namespace: Option<&str>) -> Option<Arc<K>> {
    let found = cache.store::<K>().get(&Key::new(cache.cluster().clone(), namespace, &owner.name))?;
    (found.meta().uid.as_deref() == Some(&owner.uid)).then_some(found)
}

/// A controller of any other kind, by its scale subresource.
async fn from_scale_subresource(
    client: &Client,
    kinds: &Kinds,
    owner: &OwnerReference,
    namespace: Option<&str>,
) -> Result<Found, String> {
    if matches!(owner.kind.as_str(), "ReplicaSet" | "StatefulSet" | "ReplicationController" | "Deployment") {
        return Ok(None);
    }
    let known = |discovery: &Discovery| discovery.find(&owner.api_version, &owner.kind).cloned();
    let mut served = known(&kinds.lock().clone());
    if served.is_none() {
        let fresh = Discovery::discover(client).await.map_err(|error| error.to_string())?;
        served = known(&fresh);
        *kinds.lock() = Arc::new(fresh);
    }
    let Some(served) = served else { return Ok(None) };
    if !served.has_scale {
        let resource = format!("{}.{}", served.kind.plural, served.kind.group);
        let resource = resource.trim_end_matches('.');
        return Err(format!("{resource} does not implement the scale subresource"));
    }
    let path = format!("{}/{}/scale", served.kind.collection_path(namespace), owner.name);
    let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    match client.request::<Value>(request).await {
        Ok(scale) if scale.pointer("/metadata/uid").and_then(Value::as_str) == Some(&owner.uid) => {
            let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
            Ok(Some((owner.uid.clone(), i32::try_from(replicas).unwrap_or(i32::MAX))))
        }
        Ok(_) => Ok(None),
        Err(error) if crate::metadata_client::code(&error) == Some(404) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
