//! ReplicaSets and ReplicationControllers: a number of pods, made from a template.
//!
//! One controller for both kinds: [`replicated`] has what they have in common, [`decide`] what is to be done and told, [`deletion_order`]
//! which pods go first.

mod decide;
mod deletion_order;
mod replicated;

use crate::controller_ref::{claim, controller_of};
use crate::pod_control::{self, Failed};
use crate::pods;
use crate::throttle::Pace;
use decide::{Step, Trouble, step, told, until_available};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use replicated::Replicated;
use std::sync::Arc;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Manager, Reconcile, ReconcileError, Relation, Requeue, Selector};

/// So many sets are worked on at once.
const WORKERS: usize = 8;

pub(crate) fn add(manager: Manager) -> Manager {
    manager.controller(controller::<ReplicaSet>()).controller(controller::<ReplicationController>())
}

fn controller<K: Replicated>() -> Controller<K> {
    let pace = Arc::new(Pace::default());
    Controller::reconciling(move |set, ctx| reconcile(set, ctx, pace.clone()))
        .named(K::CONTROLLER)
        .owns::<Pod>()
        .watches::<Pod>(|set: &K| set.selector().map_or_else(Relation::nothing, Relation::selected))
        .concurrency(WORKERS)
}

async fn reconcile<K: Replicated>(
    set: Arc<K>,
    ctx: Reconcile<K>,
    pace: Arc<Pace>,
) -> Result<Requeue, ReconcileError> {
    let before = set.told();
    if let Some(rest) = pace.rests(ctx.key(), ctx.clock().moment()) {
        return Ok(Requeue::after(rest));
    }
    let Some(selector) = set.selector() else { return Ok(Requeue::on_change()) };
    let found = pods::own_and_orphans(ctx.cache(), set.meta());
    pace.begin(ctx.key(), found.len(), ctx.clock().moment());
    let mine = claim(&ctx, set.meta(), &selector, found).await?;
    let active = mine.iter().filter(|pod| pods::is_active(pod)).count();
    let done = match step(&*set, active) {
        Step::Create(count) => create(&*set, &ctx, count).await,
        Step::Delete(count) => delete(&*set, &ctx, &mine, count).await,
        Step::Nothing => Ok(false),
    };
    let failed = match done {
        // The next pass counts what is there now, and tells it once.
        Ok(true) => return Ok(Requeue::on_change()),
        Ok(false) => None,
        Err(failed) => Some(failed),
    };
    let now = ctx.clock().now();
    // What was made before something failed counts too.
    let mine = if failed.is_some() { own(&ctx, &*set, &selector) } else { mine };
    let trouble =
        failed.as_ref().map(|failed| Trouble { reason: failed.reason, message: failed.message.clone() });
    let now_told = told(&*set, &mine, trouble.as_ref(), now);
    if now_told != before {
        ctx.replace_status(&set.telling(now_told)).await?;
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

/// Makes so many pods. Whether any was made.
async fn create<K: Replicated>(set: &K, ctx: &Reconcile<K>, count: usize) -> Result<bool, Failed> {
    let Some(template) = set.template() else { return Ok(false) };
    let mut pod = pods::from_template(template, set.meta().namespace.as_deref(), ctx.owner_reference());
    pod.metadata.generate_name = Some(pods::prefix(ctx.key().name()));
    pod_control::create(ctx, count, |_| pod.clone()).await
}

/// Ends so many of the pods, those that are missed least. Whether any was ended.
async fn delete<K: Replicated>(
    set: &K,
    ctx: &Reconcile<K>,
    mine: &[Arc<Pod>],
    count: usize,
) -> Result<bool, Failed> {
    let active: Vec<Arc<Pod>> = mine.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
    let related = siblings(set, ctx, &active);
    let going = deletion_order::first_to_go(active, &related, count, ctx.clock().now());
    pod_control::delete(ctx, going, &Deletion::new(Basis::Observed)).await
}

/// The pods of all sets with the same controller: in a rollout, those of the Deployment.
fn siblings<K: Replicated>(set: &K, ctx: &Reconcile<K>, own: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    let Some(owner) = controller_of(set.meta()) else { return own.to_vec() };
    let sets = ctx.cache().store::<K>().owned_by(&owner.uid);
    let pods = ctx.cache().store::<Pod>();
    let of_sets = sets.iter().filter_map(|set| set.meta().uid.as_deref()).flat_map(|uid| pods.owned_by(uid));
    of_sets.collect()
}
