//! The node lifecycle controller: marks nodes without heartbeats as unknown, taints nodes by their conditions, evicts pods that do
//! not tolerate the taints, and garbage collects pods.

mod conditions;
mod pod_gc;
mod taint_eviction;

use crate::pods::BY_NODE;
use conditions::{heartbeat_time, taints, unreachable};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use taint_eviction::eviction_time;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Manager, Reason, Reconcile, ReconcileError, Relation, Requeue};
use windlass_clock::Moment;
use windlass_component_helpers::node_status::is_ready;

/// The node monitor grace period: how long a node may go without a heartbeat.
const GRACE: Duration = Duration::from_secs(50);
/// The grace period of a new node that has not sent one yet.
const STARTUP_GRACE: Duration = Duration::from_secs(60);
/// While pods have to be evicted, how often new ones are looked for.
const EVICTION_INTERVAL: Duration = Duration::from_secs(5);
/// The number of pods that are written at once.
const CONCURRENT_WRITES: usize = 16;
/// The namespace of node Leases.
const LEASES: &str = "kube-node-lease";

/// The last heartbeat of each node (status and Lease), and when it was observed by our own clock: theirs may be wrong. Safe to
/// lose: then each node gets its grace period anew.
type Heartbeats = Arc<Mutex<HashMap<String, (Option<Timestamp>, Option<Timestamp>, Moment)>>>;

pub(crate) fn add(manager: Manager) -> Manager {
    let heartbeats = Heartbeats::default();
    let controller = Controller::reconciling(move |node, ctx| reconcile(node, ctx, heartbeats.clone()))
        .named("node-controller")
        .watches::<Lease>(|node: &Node| {
            Relation::named(node.metadata.name.clone().unwrap_or_default()).in_namespace(LEASES)
        })
        // Only so that the cache has them: no change of a pod is a reason to reconcile.
        .watches::<Pod>(|_| Relation::nothing())
        .concurrency(4);
    pod_gc::add(manager.controller(controller))
}

async fn reconcile(
    node: Arc<Node>,
    ctx: Reconcile<Node>,
    heartbeats: Heartbeats,
) -> Result<Requeue, ReconcileError> {
    let name = ctx.key().name().to_owned();
    if node.metadata.deletion_timestamp.is_some() {
        heartbeats.lock().remove(&name);
        return Ok(Requeue::on_change());
    }
    let lease = ctx.observed().get_in::<Lease>(LEASES, &name).map_err(ReconcileError::terminal)?;
    let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0));
    let said = (heartbeat_time(&node), renewed);
    let now = ctx.clock().moment();
    let since = {
        let mut heartbeats = heartbeats.lock();
        let entry = heartbeats.entry(name.clone()).or_insert((said.0, said.1, now));
        if (entry.0, entry.1) != said {
            *entry = (said.0, said.1, now);
        }
        entry.2
    };
    let grace = if said == (None, None) { STARTUP_GRACE } else { GRACE };
    let (wall, mut node) = (ctx.clock().now(), (*node).clone());
    if now - since >= grace
        && let Some(conditions) = unreachable(&node, wall)
    {
        let was_ready = is_ready(&node);
        let patch = at_version(&node, json!({ "status": { "conditions": conditions } }));
        ctx.merge(&node, "status", patch).await?;
        if was_ready {
            let message = format!("Node {name} status is now: NodeNotReady");
            ctx.event(Reason::new("NodeNotReady", message));
            mark_pods_not_ready(&ctx, &name).await;
        }
        // The next reconcile sees it, and taints it.
        return Ok(Requeue::on_change());
    }
    if let Some(taints) = taints(&node, wall) {
        ctx.merge(&node, "", at_version(&node, json!({ "spec": { "taints": taints } }))).await?;
        node.spec.get_or_insert_default().taints = Some(taints);
    }
    let next_pod = evict_pods(&ctx, &node, wall).await?;
    let expiry = Some(grace.saturating_sub(now - since)).filter(|left| !left.is_zero());
    Ok(match expiry.into_iter().chain(next_pod).min() {
        Some(after) => Requeue::after(after),
        None => Requeue::on_change(),
    })
}

/// The patch, for exactly the resourceVersion that was observed: a list is replaced whole, and no change to it may be lost.
fn at_version(node: &Node, mut patch: Value) -> Value {
    patch["metadata"]["resourceVersion"] = json!(node.metadata.resource_version);
    patch
}

fn pods_of(ctx: &Reconcile<Node>, name: &str) -> Vec<Arc<Pod>> {
    ctx.cache().store::<Pod>().find(BY_NODE, name)
}

/// Marks the pods of an unreachable node as not ready.
async fn mark_pods_not_ready(ctx: &Reconcile<Node>, name: &str) {
    let ready: Vec<Arc<Pod>> =
        pods_of(ctx, name).into_iter().filter(|pod| crate::pods::is_ready(pod)).collect();
    let stamp = ctx.clock().now();
    let stamp = Timestamp::from_second(stamp.as_second()).unwrap_or(stamp).to_string();
    let patching = futures::stream::iter(ready).map(|pod| {
        let stamp = stamp.clone();
        async move {
            let mut conditions = json!(pod.status.as_ref().and_then(|status| status.conditions.clone()));
            for condition in conditions.as_array_mut().into_iter().flatten() {
                if condition["type"] == "Ready" {
                    condition["status"] = json!("False");
                    condition["lastTransitionTime"] = json!(stamp);
                }
            }
            let patch = json!({
                "metadata": { "resourceVersion": pod.metadata.resource_version },
                "status": { "conditions": conditions },
            });
            match ctx.merge(&*pod, "status", patch).await {
                Ok(_) => ctx.event_about(&*pod, true, Reason::new("NodeNotReady", "Node is not ready")),
                // It changed or was deleted meanwhile: whoever wrote it knows more.
                Err(error) => {
                    tracing::debug!(pod = ?pod.metadata.name, "failed to mark the pod as not ready: {error}")
                }
            }
        }
    });
    patching.buffer_unordered(CONCURRENT_WRITES).collect::<()>().await;
}

/// Deletes the pods that do not tolerate the node's taints any longer. Returns after how long the next one is due.
async fn evict_pods(
    ctx: &Reconcile<Node>,
    node: &Node,
    now: Timestamp,
) -> Result<Option<Duration>, ReconcileError> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    if !taints.iter().any(|taint| taint.effect == "NoExecute") {
        return Ok(None);
    }
    let (mut due, mut next) = (Vec::new(), EVICTION_INTERVAL);
    for pod in pods_of(ctx, ctx.key().name()) {
        if crate::pods::is_terminating(&pod) {
            continue;
        }
        match eviction_time(&pod, taints, now) {
            Some(at) if at <= now => due.push(pod),
            Some(at) => next = next.min(Duration::try_from(at.duration_since(now)).unwrap_or_default()),
            None => {}
        }
    }
    let evicting = futures::stream::iter(due).map(|pod| async move { evict(ctx, &pod).await });
    let evicted: Vec<Result<(), ReconcileError>> =
        evicting.buffer_unordered(CONCURRENT_WRITES).collect().await;
    evicted.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(Some(next))
}

async fn evict(ctx: &Reconcile<Node>, pod: &Pod) -> Result<(), ReconcileError> {
    let meta = &pod.metadata;
    let (name, namespace) =
        (meta.name.as_deref().unwrap_or_default(), meta.namespace.as_deref().unwrap_or_default());
    let stamp = ctx.clock().now();
    let stamp = Timestamp::from_second(stamp.as_second()).unwrap_or(stamp).to_string();
    let mut conditions =
        json!(pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default());
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.retain(|condition| condition["type"] != "DisruptionTarget");
        conditions.push(json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint", "lastTransitionTime": stamp,
            "observedGeneration": meta.generation,
        }));
    }
    let patch = json!({
        "metadata": { "resourceVersion": meta.resource_version }, "status": { "conditions": conditions },
    });
    match ctx.merge(pod, "status", patch).await {
        Ok(_) => {}
        Err(ReconcileError::Act(error)) if error.code() == Some(404) => return Ok(()),
        Err(error) => return Err(error),
    }
    let message = format!("Marking for deletion Pod {namespace}/{name}");
    ctx.event_about(pod, false, Reason::new("TaintManagerEviction", message));
    ctx.delete(pod, &Deletion::new(Basis::Observed)).await?;
    Ok(())
}
