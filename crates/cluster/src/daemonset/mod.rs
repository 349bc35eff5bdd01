//! DaemonSets: one pod on every eligible node.
//!
//! [`nodes`] says which nodes are eligible, by the scheduler's own rules for affinity and taints, and what the pods look
//! like; [`decide`] says what to create and delete; failed pods are replaced with a [`backoff`].

mod backoff;
mod decide;
mod nodes;
#[cfg(test)]
mod tests;

use crate::pod_control::{self, Failed};
use crate::{controller_ref, history, pods};
use backoff::Backoffs;
use decide::{Observed, Steps, manage, rolling_update, status, until_available};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Manager, Reason, Reconcile, ReconcileError, Relation, Requeue, Selector};

/// The default of `revisionHistoryLimit`.
const DEFAULT_HISTORY_LIMIT: i32 = 10;

pub(crate) fn add(manager: Manager) -> Manager {
    let backoffs = Arc::new(Backoffs::default());
    let controller = Controller::reconciling(move |set, ctx| reconcile(set, ctx, backoffs.clone()))
        .named("daemonset-controller")
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .watches::<Pod>(selected)
        .watches::<ControllerRevision>(selected)
        .watches::<Node>(|_: &DaemonSet| Relation::all())
        .concurrency(4);
    manager.controller(controller)
}

/// The selector; an empty one selects nothing, not everything.
fn selector(set: &DaemonSet) -> Option<Selector> {
    let selector = Selector::of(&set.spec.as_ref()?.selector).ok()?;
    (!selector.is_empty()).then_some(selector)
}

fn selected(set: &DaemonSet) -> Relation {
    selector(set).map_or_else(Relation::nothing, Relation::selected)
}

async fn reconcile(
    set: Arc<DaemonSet>,
    ctx: Reconcile<DaemonSet>,
    backoffs: Arc<Backoffs>,
) -> Result<Requeue, ReconcileError> {
    // The pods of a terminating set may be half deleted: its status would not be meaningful.
    let Some(spec) = set.spec.as_ref().filter(|_| set.metadata.deletion_timestamp.is_none()) else {
        return Ok(Requeue::on_change());
    };
    let Some(selector) = selector(&set) else {
        let message = "This daemon set is selecting all pods. A non-empty selector is required.";
        ctx.warning(Reason::new("SelectingAll", message));
        return Ok(Requeue::on_change());
    };
    let found = history::own_and_orphans(ctx.cache(), &set.metadata);
    let history = history::claim(&ctx, &set.metadata, &selector, found).await?;
    let old_status = set.status.as_ref();
    let collisions = old_status.and_then(|status| status.collision_count).unwrap_or_default();
    let (current, collisions) =
        history::sync_current(&ctx, &set.metadata, &spec.template, &history, collisions).await?;
    let hash = hash_of(&current).unwrap_or_default().to_owned();

    let found = pods::own_and_orphans(ctx.cache(), &set.metadata);
    let mine = controller_ref::claim(&ctx, &set.metadata, &selector, found).await?;
    let all = ctx.cache().store::<Node>().list();
    let observed = Observed::new(&set, spec, &hash, all, mine, ctx.clock().now());
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    let moment = ctx.clock().moment();
    let mut steps = manage(&observed, |node| backoffs.may_replace(uid, node, moment));
    let wait = steps.wait;
    if steps.is_empty() {
        steps = rolling_update(&observed);
    }
    let failed = match act(&set, &ctx, &hash, steps).await {
        // The next pass counts what is there now, and tells it once.
        Ok(true) => return Ok(Requeue::on_change()),
        Ok(false) => None,
        Err(failed) => Some(failed),
    };
    let status = status(&observed, collisions);
    if old_status != Some(&status) {
        ctx.replace_status(&DaemonSet { status: Some(status), ..(*set).clone() }).await?;
    }
    if let Some(failed) = failed {
        return Err(failed.error);
    }
    clean_up_history(&ctx, &observed, &history, &current).await?;
    let next = wait.into_iter().chain(until_available(&observed)).min();
    Ok(next.map_or_else(Requeue::on_change, Requeue::after))
}

fn hash_of(revision: &ControllerRevision) -> Option<&str> {
    revision.metadata.labels.as_ref()?.get(history::HASH_LABEL).map(String::as_str)
}

/// Carries out the steps; returns whether there were any.
async fn act(set: &DaemonSet, ctx: &Reconcile<DaemonSet>, hash: &str, steps: Steps) -> Result<bool, Failed> {
    let owner = ctx.owner_reference();
    let wanted: Vec<Pod> =
        steps.create.iter().filter_map(|node| nodes::pod_on(set, owner.clone(), hash, node)).collect();
    let made = pod_control::create(ctx, wanted.len(), |index| wanted[index].clone()).await;
    let mut to_delete = Vec::with_capacity(steps.delete.len());
    for deletion in steps.delete {
        match deletion.event {
            Some((true, reason, message)) => ctx.warning(Reason::new(reason, message)),
            Some((false, reason, message)) => ctx.event(Reason::new(reason, message)),
            None => {}
        }
        to_delete.push(deletion.pod);
    }
    let ended = pod_control::delete(ctx, to_delete, &Deletion::new(Basis::Observed)).await?;
    Ok(made? || ended)
}

/// Deletes revisions that no pod uses, except the newest within the limit.
async fn clean_up_history(
    ctx: &Reconcile<DaemonSet>,
    observed: &Observed<'_>,
    history: &[Arc<ControllerRevision>],
    current: &ControllerRevision,
) -> Result<(), ReconcileError> {
    let hashes = observed
        .pods
        .values()
        .flatten()
        .filter_map(|pod| pod.metadata.labels.as_ref()?.get(history::HASH_LABEL));
    let used: BTreeSet<&str> = hashes.map(String::as_str).collect();
    let of_pods = history.iter().filter(|revision| hash_of(revision).is_some_and(|hash| used.contains(hash)));
    let mut live: BTreeSet<&str> = of_pods.filter_map(|revision| revision.metadata.name.as_deref()).collect();
    live.extend(current.metadata.name.as_deref());
    let limit = observed.spec.revision_history_limit.unwrap_or(DEFAULT_HISTORY_LIMIT);
    history::truncate(ctx, history, &live, limit).await
}
