//! Garbage collection: what is owned goes after its owners, before them, or is released, as their deletion says.
//!
//! - `decide`: what becomes of an object, given what became of its owners
//! - `graph`: who owns whom, among all that can be watched and deleted
//! - `worker`: one object at a time, carried out
//! - `absent_owners`: owners that are known to be gone

mod absent_owners;
mod decide;
mod graph;
mod worker;

use crate::discovery::Catalog;
use graph::Graph;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::{Manager, Task};
use worker::Then;

/// Objects that are worked on at once, as many as Kubernetes does.
const WORKERS: usize = 20;
/// So long the first lists of kinds may take before the rest goes on without them.
const FIRST_LISTS: Duration = Duration::from_secs(30);
/// When the kinds are asked for again after a definition changed: a server may say so before it serves them.
const ASKED_AGAIN: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(10)];

pub(crate) fn add(manager: Manager) -> Manager {
    manager.task("garbage-collector-controller", |task| async move { Ok(collect(task).await?) })
}

async fn collect(task: Task) -> kube::Result<()> {
    let graph = Graph::new(&task);
    learn(&task, &graph).await?;
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(keep_working(graph.clone()));
    }
    let mut asked = ASKED_AGAIN.len();
    loop {
        let pause = async {
            match ASKED_AGAIN.get(asked) {
                Some(pause) => task.clock().sleep(*pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = task.stopped() => break,
            () = graph.kinds_changed() => asked = 0,
            () = pause => {
                match learn(&task, &graph).await {
                    Ok(()) => asked += 1,
                    Err(error) => {
                        tracing::warn!("the kinds of the server are not known: {error}");
                        asked = ASKED_AGAIN.len() - 1;
                    }
                }
            }
        }
    }
    graph.stop();
    while workers.join_next().await.is_some() {}
    Ok(())
}

/// Asks for the kinds, watches those that are new, and looks at all their objects.
async fn learn(task: &Task, graph: &Arc<Graph>) -> kube::Result<()> {
    let new = graph.watch(&Catalog::discover(task.client()).await?);
    let synced = futures::future::join_all(new.iter().map(|monitor| monitor.objects.synced()));
    let in_time = task.clock().timeout(FIRST_LISTS, synced);
    tokio::select! {
        () = task.stopped() => return Ok(()),
        in_time = in_time => if in_time.is_err() {
            let late = new.iter().filter(|monitor| !monitor.objects.is_synced());
            let late: Vec<String> = late.map(|monitor| monitor.kind.to_string()).collect();
            tracing::warn!("going on without the objects of {}: they cannot be listed", late.join(", "));
        }
    }
    if !new.is_empty() {
        // Objects of kinds that are known already may name owners of the new ones.
        graph.look_at_all();
    }
    Ok(())
}

async fn keep_working(graph: Arc<Graph>) {
    while let Some(taken) = graph.next().await {
        match graph.work(&taken).await {
            Ok(Then::Done) => graph.done(&taken),
            Ok(Then::Again) => graph.again(&taken),
            // It changed meanwhile, which the cache will show.
            Err(error) if crate::metadata_client::code(&error) == Some(409) => graph.again(&taken),
            Err(error) => {
                tracing::warn!(kind = %taken.kind, object = %taken.key, "garbage is not collected: {error}");
                graph.again(&taken);
            }
        }
    }
}
