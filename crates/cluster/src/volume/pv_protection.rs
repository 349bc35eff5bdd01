//! PersistentVolumeClaim and PersistentVolume protection: a finalizer keeps a claim that a pod uses, and a volume that is
//! bound.

use crate::pods::claims;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::sync::Arc;
use windlass::cache::Index;
use windlass::write::Basis;
use windlass::{Controller, Manager, Reconcile, ReconcileError, Relation, Requeue};

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

/// Pods by the claims that they refer to.
pub(super) const BY_CLAIM: Index<Pod> =
    Index::new("claims", |pod| claims(pod).map(|claimed| claimed.name).collect());

pub(super) fn add(manager: Manager) -> Manager {
    let claims = Controller::reconciling(claim)
        .named("pvc-protection-controller")
        .filter(|claim: &PersistentVolumeClaim| is_deletion_candidate(&claim.metadata, CLAIM))
        .watches::<Pod>(|claim: &PersistentVolumeClaim| {
            Relation::indexed(BY_CLAIM, claim.metadata.name.clone().unwrap_or_default())
        })
        .concurrency(2);
    let volumes = Controller::reconciling(volume)
        .named("pv-protection-controller")
        .filter(|volume: &PersistentVolume| is_deletion_candidate(&volume.metadata, VOLUME))
        .concurrency(2);
    manager.controller(claims).controller(volumes)
}

/// Whether an object is being deleted and this finalizer is on it.
pub(super) fn is_deletion_candidate(meta: &ObjectMeta, finalizer: &str) -> bool {
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
    ctx.remove_finalizer(&*claim, CLAIM, Basis::Absent).await?;
    Ok(Requeue::on_change())
}

/// Whether a pod uses the claim of this name. A pod that is not scheduled does not use it yet, and never will.
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
        ctx.remove_finalizer(&*volume, VOLUME, Basis::Observed).await?;
    }
    Ok(Requeue::on_change())
}
