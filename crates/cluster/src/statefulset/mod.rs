//! StatefulSets: pods with stable names, in order, each with its own PersistentVolumeClaims.
//!
//! [`decide`] answers in phases: the steps of one phase may run concurrently unless the set is ordered. `maxUnavailable` of
//! the rolling update is not implemented, since its feature gate is off in Kubernetes 1.36 and the API drops the field.

mod claim_retention;
mod decide;
mod identity;
mod status;
#[cfg(test)]
mod tests;

use crate::{controller_ref, history, pod_control, pods, slow_start};
use decide::{Observed, Step, TemplateRevision, decide};
use identity::{Set, revision};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use windlass::write::{Basis, Deletion};
use windlass::{
    Controller, Key, Kind, Manager, Reason, Reconcile, ReconcileError, Relation, Requeue, Selector,
};

pub(crate) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(reconcile)
        .named("statefulset-controller")
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .watches::<Pod>(selected)
        .watches::<ControllerRevision>(selected)
        .watches::<PersistentVolumeClaim>(claimed)
        .concurrency(4);
    manager.controller(controller)
}

fn selector(set: &StatefulSet) -> Option<Selector> {
    Selector::of(&set.spec.as_ref()?.selector).ok()
}

fn selected(set: &StatefulSet) -> Relation {
    selector(set).map_or_else(Relation::nothing, Relation::selected)
}

/// The claims of a set carry the labels that it selects by.
fn claimed(set: &StatefulSet) -> Relation {
    let labels = set.spec.as_ref().and_then(|spec| spec.selector.match_labels.clone());
    Relation::labelled(labels.unwrap_or_default())
}

async fn reconcile(set: Arc<StatefulSet>, ctx: Reconcile<StatefulSet>) -> Result<Requeue, ReconcileError> {
    let (Some(known), Some(selector)) = (Set::of(&set), selector(&set)) else {
        return Ok(Requeue::on_change());
    };
    let now = ctx.clock().now();
    let found = history::own_and_orphans(ctx.cache(), &set.metadata);
    let history = history::claim(&ctx, &set.metadata, &selector, found).await?;
    let mut found = pods::own_and_orphans(ctx.cache(), &set.metadata);
    found.retain(|pod| known.ordinal(pod).is_some());
    let mine = controller_ref::claim(&ctx, &set.metadata, &selector, found).await?;
    let mut pods: Vec<(i64, Arc<Pod>)> =
        mine.into_iter().filter_map(|pod| Some((known.ordinal(&pod)?, pod))).collect();
    pods.sort_by_key(|(ordinal, _)| *ordinal);

    let old = set.status.as_ref();
    let collisions = old.and_then(|status| status.collision_count).unwrap_or_default();
    let (update, collisions) =
        history::sync_current(&ctx, &set.metadata, &known.spec.template, &history, collisions).await?;
    let current = old.and_then(|status| status.current_revision.as_deref());
    let current =
        history.iter().find(|revision| revision.metadata.name.as_deref() == current).unwrap_or(&update);
    let (current, update) = (template_revision(current)?, template_revision(&update)?);

    let store = ctx.cache().store::<PersistentVolumeClaim>();
    let cluster = ctx.cache().cluster().clone();
    let claim = |name: &str| store.get(&Key::new(cluster.clone(), set.metadata.namespace.as_deref(), name));
    let observed = Observed {
        set: &known,
        owner: &ctx.owner_reference(),
        pods: &pods,
        claim: &claim,
        current: &current,
        update: &update,
        current_replicas: old.and_then(|status| status.current_replicas).unwrap_or_default().into(),
        now,
    };
    let phases = decide(&observed);
    let acted = act(&ctx, &known, phases).await;
    if !matches!(acted, Ok(true)) {
        // After a write, the next pass reports the status.
        let names = (current.name.as_str(), update.name.as_str());
        let status = status::status(&known, old, &pods, names, collisions, now);
        if old != Some(&status) {
            ctx.replace_status(&StatefulSet { status: Some(status), ..(*set).clone() }).await?;
        }
    }
    acted?;

    let mut live: BTreeSet<&str> = pods.iter().filter_map(|(_, pod)| revision(pod)).collect();
    live.extend([current.name.as_str(), update.name.as_str()]);
    let limit = known.spec.revision_history_limit.unwrap_or(10);
    history::truncate(&ctx, &history, &live, limit).await?;

    let waits = status::next_available(&known, &pods, now);
    let wait = waits.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
    Ok(wait.map_or_else(Requeue::on_change, Requeue::after))
}

fn template_revision(revision: &ControllerRevision) -> Result<TemplateRevision, ReconcileError> {
    let name = revision.metadata.name.clone().unwrap_or_default();
    match history::template(revision) {
        Some(template) => Ok(TemplateRevision { name, template }),
        None => Err(ReconcileError::terminal(format!("the ControllerRevision {name} holds no pod template"))),
    }
}

/// Carries out the phases, one after the other. True if there was anything to do.
async fn act(
    ctx: &Reconcile<StatefulSet>,
    set: &Set<'_>,
    phases: Vec<Vec<Step>>,
) -> Result<bool, ReconcileError> {
    let any = !phases.is_empty();
    for steps in phases {
        if set.ordered {
            for step in steps {
                carry_out(ctx, set, step).await?;
            }
        } else {
            slow_start::each(steps, |step| carry_out(ctx, set, step)).await?;
        }
    }
    Ok(any)
}

async fn carry_out(ctx: &Reconcile<StatefulSet>, set: &Set<'_>, step: Step) -> Result<(), ReconcileError> {
    match step {
        Step::Create(claims, pod) => {
            create_claims(ctx, set, claims, &pod).await?;
            let made = ctx.create(&*pod).await.map(drop);
            // Whichever object has the name: the next reconcile observes it.
            if matches!(&made, Err(ReconcileError::Act(error)) if error.code() == Some(409)) {
                return made;
            }
            record_event(ctx, set, "Create", &pod, made)
        }
        Step::CreateClaims(claims, pod) => create_claims(ctx, set, claims, &pod).await,
        Step::UpdateIdentity(pod) => match update_identity(ctx, set, &pod).await {
            Ok(false) => Ok(()),
            updated => record_event(ctx, set, "Update", &pod, updated.map(drop)),
        },
        Step::SetOwners(claim, owners) => {
            let version = claim.metadata.resource_version.clone();
            let patch = json!({ "metadata": { "ownerReferences": owners, "resourceVersion": version } });
            ctx.merge(&*claim, "", patch).await.map(drop)
        }
        Step::ConflictingOwner(claim) => {
            let message = format!(
                "PersistentVolumeClaim {claim} has a conflicting OwnerReference that acts as a managing controller, the \
                 retention policy is ignored for this claim"
            );
            ctx.warning(Reason::new("ConflictingController", message));
            Ok(())
        }
        Step::Delete(pod) => {
            let deleted = ctx.delete(&*pod, &Deletion::new(Basis::Observed)).await.map(drop);
            record_event(ctx, set, "Delete", &pod, deleted)
        }
    }
}

/// Updates the identity and storage of a pod; false if it was replaced meanwhile, which the next reconcile observes.
async fn update_identity(
    ctx: &Reconcile<StatefulSet>,
    set: &Set<'_>,
    pod: &Pod,
) -> Result<bool, ReconcileError> {
    let key = Key::of(ctx.cache().cluster().clone(), &pod.metadata);
    // The cached pod is stripped: the live one has to be written.
    let Some(live) = ctx.writer().read(&Kind::of::<Pod>(), &key).await? else { return Ok(false) };
    let live: Pod = serde_json::from_value(live).map_err(ReconcileError::custom)?;
    let (ordinal, same) = (set.ordinal(&live), live.metadata.uid == pod.metadata.uid);
    match ordinal.and_then(|ordinal| set.with_identity(&live, ordinal)).filter(|_| same) {
        Some(updated) => ctx.replace(&updated).await.map(|_| true),
        None => Ok(false),
    }
}

async fn create_claims(
    ctx: &Reconcile<StatefulSet>,
    set: &Set<'_>,
    claims: Vec<PersistentVolumeClaim>,
    pod: &Pod,
) -> Result<(), ReconcileError> {
    for claim in claims {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let of = pod.metadata.name.as_deref().unwrap_or_default();
        match ctx.create(&claim).await {
            Ok(_) => {
                let message = format!("Create Claim {name} Pod {of} in StatefulSet {} success", set.name);
                ctx.event(Reason::new("SuccessfulCreate", message));
            }
            // It exists, and the cache does not show it yet.
            Err(ReconcileError::Act(error)) if error.is_already_exists() => {}
            Err(error) => {
                let why = pod_control::message(&error);
                let message = format!(
                    "Create Claim {name} for Pod {of} in StatefulSet {} failed error: {why}",
                    set.name
                );
                ctx.warning(Reason::new("FailedCreate", message));
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Records the event of a write.
fn record_event(
    ctx: &Reconcile<StatefulSet>,
    set: &Set<'_>,
    verb: &str,
    pod: &Pod,
    outcome: Result<(), ReconcileError>,
) -> Result<(), ReconcileError> {
    let pod = pod.metadata.name.as_deref().unwrap_or_default();
    let what = format!("{verb} Pod {pod} in StatefulSet {}", set.name);
    match &outcome {
        Ok(()) => ctx.event(Reason::new(format!("Successful{verb}"), format!("{what} successful"))),
        Err(error) => {
            let message = format!("{what} failed error: {}", pod_control::message(error));
            ctx.warning(Reason::new(format!("Failed{verb}"), message));
        }
    }
    outcome
}
