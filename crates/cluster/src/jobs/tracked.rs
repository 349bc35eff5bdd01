//! Pods that carry the finalizer of Jobs and have none that would count them: it is taken off.

use super::decide::{TRACKING, ended, is_tracked};
use super::is_ours;
use crate::owning::controller_of;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;
use std::sync::Arc;
use windlass::{Controller, Key, Kind, Manager, Object, Reconcile, ReconcileError, Relation, Requeue};

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
        release(&ctx, pod).await?;
        return Ok(Requeue::on_change());
    };
    let Some(owner) = job_of(&pod).map(|_| owner) else { return Ok(Requeue::on_change()) };
    let key = Key::new(ctx.cache().cluster().clone(), pod.metadata.namespace.as_deref(), &owner.name);
    let cached = ctx.cache().store::<Job>().get(&key);
    let counts = |job: &Job| job.metadata.uid.as_ref() == Some(&owner.uid) && ended(job).is_none();
    let job = match cached {
        Some(job) if !is_ours(&job) || counts(&job) => return Ok(Requeue::on_change()),
        Some(job) if job.metadata.uid.as_ref() == Some(&owner.uid) => Some(job),
        // The cache of Jobs may be behind that of pods: a pod that is let go now would never be counted.
        _ => {
            let live = ctx.writer().read(&Kind::of::<Job>(), &key).await?;
            live.and_then(|json| serde_json::from_value(json).ok()).map(Arc::new)
        }
    };
    if !job.is_some_and(|job| counts(&job)) {
        release(&ctx, pod).await?;
    }
    Ok(Requeue::on_change())
}

/// Takes the finalizer off a pod. One that is gone or changed meanwhile is passed over: the change begins another reconcile.
pub(super) async fn release<K: Object>(ctx: &Reconcile<K>, pod: Arc<Pod>) -> Result<(), ReconcileError> {
    let kept = pod.metadata.finalizers.iter().flatten().filter(|finalizer| *finalizer != TRACKING);
    let kept: Vec<&String> = kept.collect();
    let version = pod.metadata.resource_version.as_deref();
    let patch = json!({ "metadata": { "finalizers": kept, "resourceVersion": version } });
    match ctx.merge(&*pod, "", patch).await {
        Ok(_) => Ok(()),
        Err(ReconcileError::Act(error)) if matches!(error.code(), Some(404 | 409 | 422)) => Ok(()),
        Err(error) => Err(error),
    }
}
