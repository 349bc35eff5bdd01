//! Garbage collection: deletes dependents whose owners are gone, in the background or before their owners (foreground), or
//! orphans them, as the deletion of the owner asks.
//!
//! It is a task over the caches of every kind that can be listed, watched and deleted (`Cache::open_any`): a store of whole
//! objects is shared with the controller that has one, otherwise only metadata is cached. There is no graph beside the
//! caches: dependents are found by their index of owners. The one queue holds objects, not intents: what to do about an
//! object follows from its state when it is processed.
//!
//! An owner counts as gone when its deletion was observed or the API says so, never because a cache lacks it. A delete
//! carries the resourceVersion whose owner references were checked. Dependents to be orphaned are listed live: one that the
//! cache does not show yet would be collected a moment later.
//!
//! - `decide`: what to do about an object, given the state of its owners
//! - `graph`: owners and dependents, and the queue
//! - `worker`: processes one object at a time
//! - `absent_owners`: a bounded cache of owners that are known to be gone

mod absent_owners;
mod decide;
mod graph;
mod worker;

use crate::discovery::Discovery;
use graph::Graph;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::{Manager, Task};
use worker::Outcome;

/// The number of workers, as in Kubernetes.
const WORKERS: usize = 20;
/// How long the first lists may take before garbage collection starts without them.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);
/// When discovery is repeated after a CRD or APIService changed: the API may report the change before it serves the kind.
const REDISCOVER_AFTER: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(10)];

pub(crate) fn add(manager: Manager) -> Manager {
    manager.task("garbage-collector-controller", |task| async move { Ok(collect(task).await?) })
}

async fn collect(task: Task) -> kube::Result<()> {
    let graph = Graph::new(&task);
    sync_monitors(&task, &graph).await?;
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(run_worker(graph.clone()));
    }
    let mut attempt = REDISCOVER_AFTER.len();
    loop {
        let pause = async {
            match REDISCOVER_AFTER.get(attempt) {
                Some(pause) => task.clock().sleep(*pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = task.stopped() => break,
            () = graph.kinds_changed() => attempt = 0,
            () = pause => {
                match sync_monitors(&task, &graph).await {
                    Ok(()) => attempt += 1,
                    Err(error) => {
                        tracing::warn!("discovery failed, keeping the known kinds: {error}");
                        attempt = REDISCOVER_AFTER.len() - 1;
                    }
                }
            }
        }
    }
    graph.stop();
    while workers.join_next().await.is_some() {}
    Ok(())
}

/// Discovers the kinds, watches the new ones, and queues all objects.
async fn sync_monitors(task: &Task, graph: &Arc<Graph>) -> kube::Result<()> {
    let new = graph.watch(&Discovery::discover_stored(task.client()).await?);
    let synced = futures::future::join_all(new.iter().map(|monitor| monitor.objects.synced()));
    let in_time = task.clock().timeout(SYNC_TIMEOUT, synced);
    tokio::select! {
        () = task.stopped() => return Ok(()),
        in_time = in_time => if in_time.is_err() {
            let late = new.iter().filter(|monitor| !monitor.objects.is_synced());
            let late: Vec<String> = late.map(|monitor| monitor.kind.to_string()).collect();
            tracing::warn!("garbage collection continues without {}: their lists did not sync in time", late.join(", "));
        }
    }
    if !new.is_empty() {
        // Objects of kinds that are known already may name owners of the new ones.
        graph.enqueue_all();
    }
    Ok(())
}

async fn run_worker(graph: Arc<Graph>) {
    while let Some(taken) = graph.next().await {
        match graph.work(&taken).await {
            Ok(Outcome::Done) => graph.done(&taken),
            Ok(Outcome::Requeue) => graph.requeue(&taken),
            // It changed meanwhile: the cache will show it.
            Err(error) if crate::metadata_client::code(&error) == Some(409) => graph.requeue(&taken),
            Err(error) => {
                tracing::warn!(kind = %taken.kind, object = %taken.key, "cannot process the object, retrying: {error}");
                graph.requeue(&taken);
            }
        }
    }
}
