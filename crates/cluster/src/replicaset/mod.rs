//! ReplicaSets and ReplicationControllers: a number of pods made from a template. One controller for both kinds.
//!
//! A reconcile reads the pods that the set owns and the orphans of its namespace by two indexes, never the pods of others. It
//! creates all missing pods at once (`pod_control`: sixteen requests at a time, with a slow start); the pass after that
//! counts them and writes the status once. Above two hundred pods, reconciles of one set are spaced by 10 µs per pod
//! (`throttle`), or each of many pods becoming ready would have all of them counted.
//!
//! - [`replicated`]: what both kinds have in common
//! - [`decide`]: what to create or delete, and the status
//! - [`deletion_order`]: which pods are deleted first

mod decide;
mod deletion_order;
mod replicated;

use crate::controller_ref::{claim, controller_of};
use crate::pod_control::{self, Failed};
use crate::pods;
use crate::throttle::Throttle;
use decide::{Failure, Step, status, step, until_available};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use replicated::Replicated;
use std::sync::Arc;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Manager, Reconcile, ReconcileError, Relation, Requeue, Selector};

/// The number of workers.
const WORKERS: usize = 8;

pub(crate) fn add(manager: Manager) -> Manager {
    manager.controller(controller::<ReplicaSet>()).controller(controller::<ReplicationController>())
}

fn controller<K: Replicated>() -> Controller<K> {
    let throttle = Arc::new(Throttle::default());
    Controller::reconciling(move |set, ctx| reconcile(set, ctx, throttle.clone()))
        .named(K::CONTROLLER)
        .owns::<Pod>()
        .watches::<Pod>(|set: &K| set.selector().map_or_else(Relation::nothing, Relation::selected))
        .concurrency(WORKERS)
}

async fn reconcile<K: Replicated>(
    set: Arc<K>,
    ctx: Reconcile<K>,
    throttle: Arc<Throttle>,
) -> Result<Requeue, ReconcileError> {
    let before = set.status();
    if let Some(pause) = throttle.remaining(ctx.key(), ctx.clock().moment()) {
        return Ok(Requeue::after(pause));
    }
    let Some(selector) = set.selector() else { return Ok(Requeue::on_change()) };
    let found = pods::own_and_orphans(ctx.cache(), set.meta());
    throttle.begin(ctx.key(), found.len(), ctx.clock().moment());
    let mine = claim(&ctx, set.meta(), &selector, found).await?;
    let active = mine.iter().filter(|pod| pods::is_active(pod)).count();
    let done = match step(&*set, active) {
        Step::Create(count) => create(&*set, &ctx, count).await,
        Step::Delete(count) => delete(&*set, &ctx, &mine, count).await,
        Step::Nothing => Ok(false),
    };
    let failed = match done {
        // The next pass counts the pods and writes the status once.
        Ok(true) => return Ok(Requeue::on_change()),
        Ok(false) => None,
        Err(failed) => Some(failed),
    };
    let now = ctx.clock().now();
    // Pods that were created before the failure count too.
    let mine = if failed.is_some() { own(&ctx, &*set, &selector) } else { mine };
    let failure =
        failed.as_ref().map(|failed| Failure { reason: failed.reason, message: failed.message.clone() });
    let new_status = status(&*set, &mine, failure.as_ref(), now);
    if new_status != before {
        ctx.replace_status(&set.with_status(new_status)).await?;
    }
    match failed {
        Some(failed) => Err(failed.error),
        None => {
            let wait = until_available(&mine, set.min_ready_seconds(), now);
            Ok(wait.map_or_else(Requeue::on_change, Requeue::after))
        }
    }
}

fn own<K: Replicated>(ctx: &Reconcile<K>, set: &K, selector: &Selector) -> Vec<Arc<Pod>> {
    let mut pods = pods::own_and_orphans(ctx.cache(), set.meta());
    let uid = set.meta().uid.as_deref();
    pods.retain(|pod| {
        controller_of(&pod.metadata).is_some_and(|owner| Some(owner.uid.as_str()) == uid)
            && selector.matches(pod.metadata.labels.as_ref())
    });
    pods
}

/// Creates pods. Returns whether any was created.
async fn create<K: Replicated>(set: &K, ctx: &Reconcile<K>, count: usize) -> Result<bool, Failed> {
    let Some(template) = set.template() else { return Ok(false) };
    let mut pod = pods::from_template(template, set.meta().namespace.as_deref(), ctx.owner_reference());
    pod.metadata.generate_name = Some(pods::prefix(ctx.key().name()));
    pod_control::create(ctx, count, |_| pod.clone()).await
}

/// Deletes pods, in deletion order. Returns whether any was deleted.
async fn delete<K: Replicated>(
    set: &K,
    ctx: &Reconcile<K>,
    mine: &[Arc<Pod>],
    count: usize,
) -> Result<bool, Failed> {
    let active: Vec<Arc<Pod>> = mine.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
    let related = siblings(set, ctx, &active);
    let to_delete = deletion_order::pods_to_delete(active, &related, count, ctx.clock().now());
    pod_control::delete(ctx, to_delete, &Deletion::new(Basis::Observed)).await
}

/// The pods of all sets with the same controller: in a rollout, those of the Deployment.
fn siblings<K: Replicated>(set: &K, ctx: &Reconcile<K>, own: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    let Some(owner) = controller_of(set.meta()) else { return own.to_vec() };
    let sets = ctx.cache().store::<K>().owned_by(&owner.uid);
    let pods = ctx.cache().store::<Pod>();
    let of_sets = sets.iter().filter_map(|set| set.meta().uid.as_deref()).flat_map(|uid| pods.owned_by(uid));
    of_sets.collect()
}
