//! Removes the tracking finalizer of pods that no Job will count.

use super::decide::{TRACKING, finished_condition, is_tracked};
use super::is_ours;
use crate::controller_ref::controller_of;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use std::sync::Arc;
use windlass::write::Basis;
use windlass::{Controller, Manager, Object, Reconcile, ReconcileError, Relation, Requeue};

pub(super) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(reconcile)
        .named("job-tracking-controller")
        .filter(is_tracked)
        .watches::<Job>(|pod: &Pod| {
            job_of(pod).map_or_else(Relation::nothing, |job| Relation::named(&job.name))
        })
        .concurrency(4);
    manager.controller(controller)
}

fn job_of(pod: &Pod) -> Option<&OwnerReference> {
    controller_of(&pod.metadata).filter(|owner| owner.kind == "Job" && owner.api_version == "batch/v1")
}

async fn reconcile(pod: Arc<Pod>, ctx: Reconcile<Pod>) -> Result<Requeue, ReconcileError> {
    let Some(owner) = controller_of(&pod.metadata) else {
        remove_tracking_finalizer(&ctx, pod, Basis::Observed).await?;
        return Ok(Requeue::on_change());
    };
    if job_of(&pod).is_none() {
        return Ok(Requeue::on_change());
    }
    let job = ctx.observed().get::<Job>(&owner.name).map_err(ReconcileError::terminal)?;
    let counts =
        |job: &Job| job.metadata.uid.as_ref() == Some(&owner.uid) && finished_condition(job).is_none();
    if !job.is_some_and(|job| !is_ours(&job) || counts(&job)) {
        // A pod whose Job is not cached yet must not be released: it would never be counted.
        remove_tracking_finalizer(&ctx, pod, Basis::Absent).await?;
    }
    Ok(Requeue::on_change())
}

/// Removes the tracking finalizer of a pod. A pod that is gone or changed meanwhile is skipped: the change triggers another
/// reconcile.
pub(super) async fn remove_tracking_finalizer<K: Object>(
    ctx: &Reconcile<K>,
    pod: Arc<Pod>,
    basis: Basis,
) -> Result<(), ReconcileError> {
    match ctx.remove_finalizer(&*pod, TRACKING, basis).await {
        Ok(_) => Ok(()),
        Err(ReconcileError::Act(error)) if matches!(error.code(), Some(404 | 409 | 422)) => Ok(()),
        Err(error) => Err(error),
    }
}
