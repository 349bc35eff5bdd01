//! Jobs: pods that run until enough of them succeeded, each counted exactly once.
//!
//! A pod carries the finalizer `batch.kubernetes.io/job-tracking` until it is counted, in three writes: the status lists it
//! in `uncountedTerminatedPods`, then its finalizer is removed, and only then the count goes up. A reconcile makes one of
//! these writes, so that a crash is always between two. The condition that says why a Job finishes is written before its pods
//! are deleted, since deleted pods look like failures. Back-off is computed from the pods that exist, not from memory.

mod backoff;
mod completion_indexes;
mod decide;
mod orphan_pods;
mod pod_counts;
mod pod_template;
mod policies;
mod status;
#[cfg(test)]
mod tests;
mod ttl_after_finished;

use crate::{controller_ref, pod_control, pods, slow_start};
pub(crate) use decide::finished_condition;
use decide::{Plan, TRACKING, View, decide};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use std::sync::Arc;
use std::time::Duration;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Manager, Reason, Reconcile, ReconcileError, Relation, Requeue, Selector};

/// Jobs that name another controller are left to it.
const CONTROLLER: &str = "kubernetes.io/job-controller";

pub(crate) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(reconcile)
        .named("job-controller")
        .filter(is_ours)
        .owns::<Pod>()
        .watches::<Pod>(|job: &Job| selector(job).map_or_else(Relation::nothing, Relation::selected))
        .concurrency(8);
    ttl_after_finished::add(orphan_pods::add(manager.controller(controller)))
}

fn is_ours(job: &Job) -> bool {
    let manager = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
    manager.is_none_or(|manager| manager == CONTROLLER)
}

fn selector(job: &Job) -> Option<Selector> {
    Selector::of(job.spec.as_ref()?.selector.as_ref()?).ok()
}

async fn reconcile(job: Arc<Job>, ctx: Reconcile<Job>) -> Result<Requeue, ReconcileError> {
    let Some(selector) = selector(&job).filter(|_| finished_condition(&job).is_none()) else {
        return Ok(Requeue::on_change());
    };
    let found = pods::own_and_orphans(ctx.cache(), &job.metadata);
    let mine = controller_ref::claim_with(&ctx, &job.metadata, &selector, found, Some(TRACKING)).await?;
    let owned = |pod: &Arc<Pod>| {
        let owner = controller_ref::controller_of(&pod.metadata);
        owner.is_some_and(|owner| Some(&owner.uid) == job.metadata.uid.as_ref())
    };
    if !mine.iter().all(owned) {
        // Some were taken up just now, and are seen with their finalizer in the next pass.
        return Ok(Requeue::on_change());
    }
    let now = ctx.clock().now();
    let Some(view) = View::of(&job, &mine, now) else { return Ok(Requeue::on_change()) };
    let plan = decide(&view);
    let managed = manage(&ctx, &view, &plan).await;
    if matches!(managed, Ok(true)) {
        // The next pass counts what is there now.
        return Ok(Requeue::on_change());
    }
    if job.status.as_ref() != Some(&plan.status) {
        ctx.replace_status(&Job { status: Some(plan.status), ..(*job).clone() }).await?;
        for (warning, reason, message) in plan.events {
            let reason = Reason::new(reason, message);
            if warning { ctx.warning(reason) } else { ctx.event(reason) }
        }
    } else {
        slow_start::each(plan.release, |pod| {
            orphan_pods::remove_tracking_finalizer(&ctx, pod, Basis::Observed)
        })
        .await?;
    }
    managed?;
    let wait = plan.wait.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
    Ok(wait.map_or_else(Requeue::on_change, Requeue::after))
}

/// Makes and deletes pods. True if there was anything to do.
async fn manage(ctx: &Reconcile<Job>, job: &View<'_>, plan: &Plan) -> Result<bool, ReconcileError> {
    if plan.uncounted {
        slow_start::each(plan.delete.clone(), |pod| {
            orphan_pods::remove_tracking_finalizer(ctx, pod, Basis::Observed)
        })
        .await?;
    }
    let deleted = pod_control::delete(ctx, plan.delete.clone(), &Deletion::new(Basis::Observed)).await;
    let make = |place: usize| {
        let (index, replaces) = &plan.create[place];
        pod_template::pod(job, ctx.owner_reference(), *index, replaces.as_deref())
    };
    let made = pod_control::create(ctx, plan.create.len(), make).await;
    Ok(deleted.map_err(|failed| failed.error)? | made.map_err(|failed| failed.error)?)
}
