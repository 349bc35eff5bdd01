//! What is in use is not lost: a claim that a pod uses and a volume that a claim has stay, by a finalizer, until they are let go.

use crate::pods::claims;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use windlass::cache::Index;
use windlass::{Controller, Manager, Object, Reconcile, ReconcileError, Relation, Requeue};

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

/// Pods by the claims that they name.
pub(super) const BY_CLAIM: Index<Pod> =
    Index::new("claims", |pod| claims(pod).map(|claimed| claimed.name).collect());

pub(super) fn add(manager: Manager) -> Manager {
    let claims = Controller::reconciling(claim)
        .named("pvc-protection-controller")
        .filter(|claim: &PersistentVolumeClaim| goes(&claim.metadata, CLAIM))
        .watches::<Pod>(|claim: &PersistentVolumeClaim| {
            Relation::indexed(BY_CLAIM, claim.metadata.name.clone().unwrap_or_default())
        })
        .concurrency(2);
    let volumes = Controller::reconciling(volume)
        .named("pv-protection-controller")
        .filter(|volume: &PersistentVolume| goes(&volume.metadata, VOLUME))
        .concurrency(2);
    manager.controller(claims).controller(volumes)
}

pub(super) fn goes(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.deletion_timestamp.is_some() && meta.finalizers.iter().flatten().any(|one| one == finalizer)
}

async fn claim(
    claim: Arc<PersistentVolumeClaim>,
    ctx: Reconcile<PersistentVolumeClaim>,
) -> Result<Requeue, ReconcileError> {
    let name = ctx.key().name();
    let pods = ctx.observed().list::<Pod>().map_err(ReconcileError::terminal)?;
    if pods.iter().any(|pod| uses(pod, name)) {
        return Ok(Requeue::on_change());
    }
    // The cache of pods may be behind that of claims, and what is let go is lost: the API itself is asked.
    let namespace = ctx.key().namespace().unwrap_or_default();
    let live: Api<Pod> = Api::namespaced(ctx.writer().client().clone(), namespace);
    let live = live.list(&ListParams::default()).await.map_err(ReconcileError::custom)?;
    if !live.items.iter().any(|pod| uses(pod, name)) {
        let_go(&ctx, &*claim, CLAIM).await?;
        return Ok(Requeue::on_change());
    }
    Ok(Requeue::after(LOOK_AGAIN))
}

/// How soon a claim is looked at again whose pod only the API knows of.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Whether a pod uses the claim of this name. One without a node does not use it yet, and never will.
fn uses(pod: &Pod, claim: &str) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
        && claims(pod).any(|claimed| claimed.name == claim)
}

async fn volume(
    volume: Arc<PersistentVolume>,
    ctx: Reconcile<PersistentVolume>,
) -> Result<Requeue, ReconcileError> {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase != Some("Bound") {
        let_go(&ctx, &*volume, VOLUME).await?;
    }
    Ok(Requeue::on_change())
}

pub(super) async fn let_go<K: Object>(
    ctx: &Reconcile<K>,
    object: &K,
    finalizer: &str,
) -> Result<(), ReconcileError> {
    let kept = object.meta().finalizers.iter().flatten().filter(|one| *one != finalizer);
    let kept: Vec<&String> = kept.collect();
    let version = object.meta().resource_version.as_deref();
    let patch = json!({ "metadata": { "finalizers": kept, "resourceVersion": version } });
    match ctx.merge(object, "", patch).await {
        Err(ReconcileError::Act(error)) if error.code() == Some(404) => Ok(()),
        done => done.map(drop),
    }
}
