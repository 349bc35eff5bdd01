//! What is in use is not lost: a claim that a pod uses and a volume that a claim has stay, by a finalizer, until they are let go.

use crate::pods::claims;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use windlass::cache::Index;
use windlass::{Controller, Manager, Next, Object, Relation, Turn, TurnError};

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

/// Pods by the claims that they name.
pub(super) const BY_CLAIM: Index<Pod> =
    Index::new("claims", |pod| claims(pod).map(|claimed| claimed.name).collect());

pub(super) fn add(manager: Manager) -> Manager {
    let claims = Controller::reconciling(claim)
        .named("pvc-protection-controller")
        .only(|claim: &PersistentVolumeClaim| goes(&claim.metadata, CLAIM))
        .sees::<Pod>(|claim: &PersistentVolumeClaim| {
            Relation::indexed(BY_CLAIM, claim.metadata.name.clone().unwrap_or_default())
        })
        .concurrency(2);
    let volumes = Controller::reconciling(volume)
        .named("pv-protection-controller")
        .only(|volume: &PersistentVolume| goes(&volume.metadata, VOLUME))
        .concurrency(2);
    manager.controller(claims).controller(volumes)
}

pub(super) fn goes(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.deletion_timestamp.is_some() && meta.finalizers.iter().flatten().any(|one| one == finalizer)
}

async fn claim(
    claim: Arc<PersistentVolumeClaim>,
    turn: Turn<PersistentVolumeClaim>,
) -> Result<Next, TurnError> {
    let name = turn.key().name();
    let pods = turn.seen().list::<Pod>().map_err(TurnError::terminal)?;
    if pods.iter().any(|pod| uses(pod, name)) {
        return Ok(Next::on_change());
    }
    // The cache of pods may be behind that of claims, and what is let go is lost: the API itself is asked.
    let namespace = turn.key().namespace().unwrap_or_default();
    let live: Api<Pod> = Api::namespaced(turn.hand().client().clone(), namespace);
    let live = live.list(&ListParams::default()).await.map_err(TurnError::custom)?;
    if !live.items.iter().any(|pod| uses(pod, name)) {
        let_go(&turn, &*claim, CLAIM).await?;
        return Ok(Next::on_change());
    }
    Ok(Next::after_at_most(LOOK_AGAIN))
}

/// How soon a claim is looked at again whose pod only the API knows of.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Whether a pod uses the claim of this name. One without a node does not use it yet, and never will.
fn uses(pod: &Pod, claim: &str) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
        && claims(pod).any(|claimed| claimed.name == claim)
}

async fn volume(volume: Arc<PersistentVolume>, turn: Turn<PersistentVolume>) -> Result<Next, TurnError> {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase != Some("Bound") {
        let_go(&turn, &*volume, VOLUME).await?;
    }
    Ok(Next::on_change())
}

pub(super) async fn let_go<K: Object>(turn: &Turn<K>, object: &K, finalizer: &str) -> Result<(), TurnError> {
    let kept = object.meta().finalizers.iter().flatten().filter(|one| *one != finalizer);
    let kept: Vec<&String> = kept.collect();
    let version = object.meta().resource_version.as_deref();
    let patch = json!({ "metadata": { "finalizers": kept, "resourceVersion": version } });
    match turn.merge(object, "", patch).await {
        Err(TurnError::Act(error)) if error.code() == Some(404) => Ok(()),
        done => done.map(drop),
    }
}
