//! The health of nodes: one that falls silent is said to be unknown and gets taints, which keep pods away and, after their
//! patience, drive them out; taints follow conditions; and pods that nobody takes away are collected.

mod collect;
mod decide;
mod evict;

use crate::pods::BY_NODE;
use decide::{is_ready, last_word, silent, taints};
use evict::leaves;
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Manager, Reason, Reconcile, ReconcileError, Relation, Requeue};
use windlass_clock::Moment;

/// So long a node may be silent, and so long a new one that never said anything.
const GRACE: Duration = Duration::from_secs(50);
const FIRST_GRACE: Duration = Duration::from_secs(60);
/// While pods are to leave, how often is looked for new ones.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// So many pods are written to at once.
const AT_ONCE: usize = 16;
/// Where Leases of nodes are.
const LEASES: &str = "kube-node-lease";

/// When each node was last seen to say something new, by our own clock: theirs may go wrong. Safe to lose: then each gets its
/// grace anew.
type Heard = Arc<Mutex<HashMap<String, (Option<Timestamp>, Option<Timestamp>, Moment)>>>;

pub(crate) fn add(manager: Manager) -> Manager {
    let heard = Heard::default();
    let controller = Controller::reconciling(move |node, ctx| reconcile(node, ctx, heard.clone()))
        .named("node-controller")
        .watches::<Lease>(|node: &Node| {
            Relation::named(node.metadata.name.clone().unwrap_or_default()).in_namespace(LEASES)
        })
        // Only so that they are there to be looked at: no pod's change is a reason to look.
        .watches::<Pod>(|_| Relation::nothing())
        .concurrency(4);
    collect::add(manager.controller(controller))
}

async fn reconcile(node: Arc<Node>, ctx: Reconcile<Node>, heard: Heard) -> Result<Requeue, ReconcileError> {
    let name = ctx.key().name().to_owned();
    if node.metadata.deletion_timestamp.is_some() {
        heard.lock().remove(&name);
        return Ok(Requeue::on_change());
    }
    let lease = ctx.observed().get_in::<Lease>(LEASES, &name).map_err(ReconcileError::terminal)?;
    let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0));
    let said = (last_word(&node), renewed);
    let now = ctx.clock().moment();
    let since = {
        let mut heard = heard.lock();
        let entry = heard.entry(name.clone()).or_insert((said.0, said.1, now));
        if (entry.0, entry.1) != said {
            *entry = (said.0, said.1, now);
        }
        entry.2
    };
    let grace = if said == (None, None) { FIRST_GRACE } else { GRACE };
    let (wall, mut node) = (ctx.clock().now(), (*node).clone());
    if now - since >= grace
        && let Some(conditions) = silent(&node, wall)
    {
        let was_ready = is_ready(&node);
        let patch = at_version(&node, json!({ "status": { "conditions": conditions } }));
        ctx.merge(&node, "status", patch).await?;
        if was_ready {
            let message = format!("Node {name} status is now: NodeNotReady");
            ctx.event(Reason::new("NodeNotReady", message));
            pods_are_not_ready(&ctx, &name).await;
        }
        // The next pass sees it, and taints it.
        return Ok(Requeue::on_change());
    }
    if let Some(taints) = taints(&node, wall) {
        ctx.merge(&node, "", at_version(&node, json!({ "spec": { "taints": taints } }))).await?;
        node.spec.get_or_insert_default().taints = Some(taints);
    }
    let next_pod = drive_out(&ctx, &node, wall).await?;
    let silence = Some(grace.saturating_sub(now - since)).filter(|left| !left.is_zero());
    Ok(match silence.into_iter().chain(next_pod).min() {
        Some(after) => Requeue::after(after),
        None => Requeue::on_change(),
    })
}

/// The patch, for just the version that was seen: a list is replaced whole, and nobody's change to it may be lost.
fn at_version(node: &Node, mut patch: Value) -> Value {
    patch["metadata"]["resourceVersion"] = json!(node.metadata.resource_version);
    patch
}

fn pods_of(ctx: &Reconcile<Node>, name: &str) -> Vec<Arc<Pod>> {
    ctx.cache().store::<Pod>().find(BY_NODE, name)
}

/// Nobody knows how the pods of a silent node fare: none of them counts as ready.
async fn pods_are_not_ready(ctx: &Reconcile<Node>, name: &str) {
    let ready: Vec<Arc<Pod>> =
        pods_of(ctx, name).into_iter().filter(|pod| crate::pods::is_ready(pod)).collect();
    let stamp = ctx.clock().now();
    let stamp = Timestamp::from_second(stamp.as_second()).unwrap_or(stamp).to_string();
    let saying = futures::stream::iter(ready).map(|pod| {
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
                // It changed just now, or is gone: whoever wrote knows more than we do.
                Err(error) => {
                    tracing::debug!(pod = ?pod.metadata.name, "it was not said to be unready: {error}")
                }
            }
        }
    });
    saying.buffer_unordered(AT_ONCE).collect::<()>().await;
}

/// Ends the pods that do not tolerate the node's taints any longer. Answers after how long the next one has to go.
async fn drive_out(
    ctx: &Reconcile<Node>,
    node: &Node,
    now: Timestamp,
) -> Result<Option<Duration>, ReconcileError> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    if !taints.iter().any(|taint| taint.effect == "NoExecute") {
        return Ok(None);
    }
    let (mut due, mut next) = (Vec::new(), LOOK_AGAIN);
    for pod in pods_of(ctx, ctx.key().name()) {
        if crate::pods::is_going(&pod) {
            continue;
        }
        match leaves(&pod, taints, now) {
            Some(at) if at <= now => due.push(pod),
            Some(at) => next = next.min(Duration::try_from(at.duration_since(now)).unwrap_or_default()),
            None => {}
        }
    }
    let ending = futures::stream::iter(due).map(|pod| async move { evict(ctx, &pod).await });
    let ended: Vec<Result<(), ReconcileError>> = ending.buffer_unordered(AT_ONCE).collect().await;
    ended.into_iter().collect::<Result<Vec<()>, _>>()?;
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
