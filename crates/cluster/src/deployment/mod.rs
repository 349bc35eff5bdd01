//! Deployments: rolling updates and re-creation of pods through ReplicaSets.
//!
//! [`replica_sets`] reads what exists, [`scale`] computes the sizes of the ReplicaSets, [`status`] the status, and [`decide`]
//! the next step: one at a time, each valid by what is observed now; the passes of a reconcile carry the rollout on. An old
//! ReplicaSet that was just scaled down counts for no more pods than its spec asks for, since its status lags behind and its
//! pods would be spent twice. Pods are not watched: that the last old pod of a `Recreate` Deployment is gone shows in the
//! status of its ReplicaSet.

mod decide;
mod replica_sets;
mod scale;
mod status;
#[cfg(test)]
mod tests;

use crate::controller_ref::{claim, controller_of};
use crate::pod_control::{message, namespace_is_terminating};
use crate::pods;
use decide::{Step, status_when_made, status_when_not_made, step};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use replica_sets::{REVISION, Rollout, name, same, size};
use std::sync::Arc;
use windlass::write::{Basis, Deletion, WriteError};
use windlass::{
    Controller, Key, Kind, Manager, Reason, Reconcile, ReconcileError, Relation, Requeue, Selector,
};

const CONTROLLER: &str = "deployment-controller";
/// The number of workers.
const WORKERS: usize = 8;

pub(crate) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(reconcile)
        .named(CONTROLLER)
        .owns::<ReplicaSet>()
        .watches::<ReplicaSet>(|deployment: &Deployment| {
            selector(deployment).map_or_else(Relation::nothing, Relation::selected)
        })
        .concurrency(WORKERS);
    manager.controller(controller)
}

/// The selector; an empty one selects nothing, not everything.
fn selector(deployment: &Deployment) -> Option<Selector> {
    let selector = Selector::of(&deployment.spec.as_ref()?.selector).ok()?;
    (!selector.is_empty()).then_some(selector)
}

async fn reconcile(
    deployment: Arc<Deployment>,
    ctx: Reconcile<Deployment>,
) -> Result<Requeue, ReconcileError> {
    let Some(rollout) = Rollout::of(&deployment) else { return Ok(Requeue::on_change()) };
    let Some(selector) = selector(&deployment) else { return selects_all(&deployment, &ctx).await };
    let found = ctx.observed().list::<ReplicaSet>().map_err(ReconcileError::terminal)?;
    let sets = claim(&ctx, &deployment.metadata, &selector, found).await?;
    let pods = ctx.cache().store::<Pod>();
    // Also terminating ones: they may hold what their successors need.
    let runs = |set: &ReplicaSet| {
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        replica_sets::status(set).replicas > 0 || pods.owned_by(uid).iter().any(|pod| !pods::has_ended(pod))
    };
    let now = ctx.clock().now();
    match step(&rollout, sets, ctx.owner_reference(), runs, now) {
        Step::Create(set) => create(&rollout, &ctx, &set).await?,
        Step::Update(sets) => {
            for (before, set) in sets {
                ctx.replace(&set).await?;
                record_scaling(&ctx, name(&set), before, size(&set));
            }
        }
        Step::Delete(sets) => {
            for set in sets {
                ctx.delete(&*set, &Deletion::new(Basis::Observed)).await?;
            }
        }
        Step::UpdateStatus(status, revision) => update_status(&deployment, &ctx, *status, revision).await?,
        Step::Done(after) => return Ok(after.map_or_else(Requeue::on_change, Requeue::after)),
    }
    Ok(Requeue::on_change())
}

fn record_scaling(ctx: &Reconcile<Deployment>, set: &str, before: i32, now: i32) {
    let way = match now - before {
        0 => return,
        1.. => "up",
        _ => "down",
    };
    let message = format!("Scaled {way} replica set {set} from {before} to {now}");
    ctx.event(Reason::new("ScalingReplicaSet", message));
}

/// Updates the status and the revision annotation, which belongs to it.
async fn update_status(
    deployment: &Deployment,
    ctx: &Reconcile<Deployment>,
    status: DeploymentStatus,
    revision: Option<String>,
) -> Result<(), ReconcileError> {
    let mut deployment = Deployment { status: Some(status), ..deployment.clone() };
    if let Some(revision) = revision {
        deployment.metadata.annotations.get_or_insert_default().insert(REVISION.to_owned(), revision);
    }
    ctx.replace_status(&deployment).await?;
    Ok(())
}

async fn create(
    rollout: &Rollout<'_>,
    ctx: &Reconcile<Deployment>,
    set: &ReplicaSet,
) -> Result<(), ReconcileError> {
    let now = ctx.clock().now();
    let error = match ctx.create(set).await {
        Ok(made) => {
            record_scaling(ctx, name(&made), 0, size(&made));
            let revision = replica_sets::annotation(&made, REVISION).map(str::to_owned);
            return update_status(rollout.deployment, ctx, status_when_made(rollout, &made, now), revision)
                .await;
        }
        Err(error) => error,
    };
    if namespace_is_terminating(&error) {
        return Ok(());
    }
    if matches!(&error, ReconcileError::Act(WriteError::Conflict(_))) {
        return taken(rollout, ctx, set, error).await;
    }
    let message = format!("Failed to create new replica set \"{}\": {}", name(set), message(&error));
    if let Some(status) = status_when_not_made(rollout, &message, now) {
        update_status(rollout.deployment, ctx, status, None).await?;
    }
    ctx.warning(Reason::new(status::reasons::NOT_CREATED, message));
    Err(error)
}

/// There is a set of that name already. If it is ours after all, the cache will know soon; if not, two templates have one
/// hash, and the next try is with another.
async fn taken(
    rollout: &Rollout<'_>,
    ctx: &Reconcile<Deployment>,
    set: &ReplicaSet,
    error: ReconcileError,
) -> Result<(), ReconcileError> {
    let key = Key::of(ctx.cache().cluster().clone(), &set.metadata);
    let Some(there) = ctx.writer().read(&Kind::of::<ReplicaSet>(), &key).await? else { return Err(error) };
    let there: ReplicaSet = serde_json::from_value(there).map_err(ReconcileError::custom)?;
    let owner = controller_of(&there.metadata).map(|owner| owner.uid.as_str());
    let is_ours = owner == rollout.deployment.metadata.uid.as_deref();
    let template = there.spec.as_ref().and_then(|spec| spec.template.as_ref());
    if is_ours && template.is_some_and(|template| same(template, &rollout.spec.template)) {
        return Err(error);
    }
    let mut status = rollout.deployment.status.clone().unwrap_or_default();
    status.collision_count = Some(status.collision_count.unwrap_or_default() + 1);
    update_status(rollout.deployment, ctx, status, None).await
}

/// One that selects everything does nothing: it would take up what is anybody's.
async fn selects_all(
    deployment: &Deployment,
    ctx: &Reconcile<Deployment>,
) -> Result<Requeue, ReconcileError> {
    let mut status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation < deployment.metadata.generation {
        let message = "This deployment is selecting all pods. A non-empty selector is required.";
        ctx.warning(Reason::new("SelectingAll", message));
        status.observed_generation = deployment.metadata.generation;
        update_status(deployment, ctx, status, None).await?;
    }
    Ok(Requeue::on_change())
}
