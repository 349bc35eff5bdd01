//! CronJobs: creates a Job at each scheduled time.
//!
//! Time zones are those bundled with `jiff`: a time that the local clock skips does not occur, a time that it shows twice
//! occurs twice. A Job is named after its scheduled time, so that it is never created twice.

mod decide;
#[cfg(test)]
mod tests;

use crate::{controller_ref, pod_control};
use decide::{Observed, Plan, decide, started};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use std::sync::Arc;
use std::time::Duration;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Key, Kind, Manager, Reason, Reconcile, ReconcileError, Requeue};

pub(crate) fn add(manager: Manager) -> Manager {
    let controller =
        Controller::reconciling(reconcile).named("cronjob-controller").owns::<Job>().concurrency(4);
    manager.controller(controller)
}

async fn reconcile(cron: Arc<CronJob>, ctx: Reconcile<CronJob>) -> Result<Requeue, ReconcileError> {
    let uid = cron.metadata.uid.as_deref().unwrap_or_default();
    let mut jobs = ctx.cache().store::<Job>().owned_by(uid);
    jobs.retain(|job| controller_ref::controller_of(&job.metadata).is_some_and(|owner| owner.uid == uid));
    let gone = gone(&ctx, &cron, &jobs).await?;
    let now = ctx.clock().now();
    let plan = decide(&Observed { cron: &cron, jobs: &jobs, gone: &gone, now }, &ctx.owner_reference());
    for (warning, reason, message) in &plan.events {
        let reason = Reason::new(*reason, message);
        if *warning { ctx.warning(reason) } else { ctx.event(reason) }
    }
    for job in plan.expire.iter().chain(&plan.replace) {
        delete(&ctx, job).await?;
    }
    let next = plan.next.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
    let status = create(&ctx, plan).await?;
    if cron.status.as_ref() != Some(&status) {
        ctx.replace_status(&CronJob { status: Some(status), ..(*cron).clone() }).await?;
    }
    Ok(next.map_or_else(Requeue::on_change, Requeue::after))
}

/// The active Jobs that are gone. The cache may be stale, so the API is asked.
async fn gone(
    ctx: &Reconcile<CronJob>,
    cron: &CronJob,
    jobs: &[Arc<Job>],
) -> Result<Vec<String>, ReconcileError> {
    let active = cron.status.iter().flat_map(|status| status.active.iter().flatten());
    let mut gone = Vec::new();
    for reference in active {
        let (Some(uid), Some(name)) = (&reference.uid, &reference.name) else { continue };
        if jobs.iter().any(|job| job.metadata.uid.as_ref() == Some(uid)) {
            continue;
        }
        let namespace = cron.metadata.namespace.as_deref();
        let key = Key::new(ctx.cache().cluster().clone(), namespace, name);
        let live = ctx.writer().read(&Kind::of::<Job>(), &key).await?;
        let there = live.as_ref().and_then(|job| job.pointer("/metadata/uid")?.as_str());
        if there != Some(uid) {
            gone.push(uid.clone());
        }
    }
    Ok(gone)
}

async fn delete(ctx: &Reconcile<CronJob>, job: &Job) -> Result<(), ReconcileError> {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    match ctx.delete(job, &Deletion::new(Basis::Observed)).await {
        Ok(_) => {
            ctx.event(Reason::new("SuccessfulDelete", format!("Deleted job {name}")));
            Ok(())
        }
        Err(error) => {
            let why = pod_control::message(&error);
            ctx.warning(Reason::new("FailedDelete", format!("Deleted job: {why}")));
            Err(error)
        }
    }
}

/// Creates the Job that is due; returns the status with it.
async fn create(
    ctx: &Reconcile<CronJob>,
    plan: Plan,
) -> Result<k8s_openapi::api::batch::v1::CronJobStatus, ReconcileError> {
    let Some((job, due)) = plan.create else { return Ok(plan.status) };
    match ctx.create(&*job).await {
        Ok(made) => {
            let name = made.metadata.name.as_deref().unwrap_or_default();
            ctx.event(Reason::new("SuccessfulCreate", format!("Created job {name}")));
            Ok(started(plan.status, &made, due))
        }
        Err(error) if pod_control::namespace_is_terminating(&error) => Ok(plan.status),
        Err(ReconcileError::Act(error)) if error.code() == Some(409) => {
            // Made by us, before the status could tell of it; or by somebody else, who knows what they do.
            let key = Key::of(ctx.cache().cluster().clone(), &job.metadata);
            let live = ctx.writer().read(&Kind::of::<Job>(), &key).await?;
            let there = live.and_then(|json| serde_json::from_value::<Job>(json).ok());
            let uid = ctx.owner_reference().uid;
            let ours = |job: &Job| {
                controller_ref::controller_of(&job.metadata).is_some_and(|owner| owner.uid == uid)
            };
            Ok(match there.filter(ours) {
                Some(job) => started(plan.status, &job, due),
                None => plan.status,
            })
        }
        Err(error) => {
            let why = pod_control::message(&error);
            ctx.warning(Reason::new("FailedCreate", format!("Error creating job: {why}")));
            Err(error)
        }
    }
}
