//! Deletes finished Jobs with their pods after `ttlSecondsAfterFinished`.

use super::decide::finished_condition;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use std::sync::Arc;
use std::time::Duration;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Manager, Propagation, Reconcile, ReconcileError, Requeue};

pub(super) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(reconcile)
        .named("ttl-after-finished-controller")
        .filter(|job: &Job| delete_at(job).is_some())
        .concurrency(2);
    manager.controller(controller)
}

/// When a Job is to be deleted; none for one that is not finished or has no TTL.
fn delete_at(job: &Job) -> Option<Timestamp> {
    let kept = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let finished = finished_condition(job)?.last_transition_time.as_ref()?.0;
    job.metadata.deletion_timestamp.is_none().then_some(())?;
    finished.checked_add(SignedDuration::from_secs(kept.into())).ok()
}

async fn reconcile(job: Arc<Job>, ctx: Reconcile<Job>) -> Result<Requeue, ReconcileError> {
    let Some(at) = delete_at(&job) else { return Ok(Requeue::on_change()) };
    match Duration::try_from(at.duration_since(ctx.clock().now())) {
        Ok(wait) if !wait.is_zero() => Ok(Requeue::after(wait)),
        _ => {
            // If it changed meanwhile, its TTL may have been extended.
            ctx.delete(
                &*job,
                &Deletion::new(Basis::Observed).propagation(Propagation::Foreground).if_unchanged(),
            )
            .await?;
            Ok(Requeue::on_change())
        }
    }
}
