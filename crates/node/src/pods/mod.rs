//! The pod workers of a node: one watch, and one worker for each pod that observes, decides, acts and reports.
//!
//! | file | what |
//! |---|---|
//! | `pod_worker` | the loop of one pod; `admission` and `observe` are parts of it |
//! | `pod_state` | the observed state of a pod, besides its object |
//! | `decide` | pure: from a pod and its state to steps and a status; `container_sync` does so for one container |
//! | `act` | takes the steps: volumes, sandbox, images, containers, hooks |
//! | `adopt` | what a kubelet that restarts finds: running shims, and what is left of pods that were deleted meanwhile |
//! | `container_spec`, `environment`, `security_context`, `etc_files` | what a container is started with |
//! | `probe_manager`, `image_manager` | probes and images of a pod |
//!
//! A worker takes steps until none is left and only then reports, so that the start of a pod is one write. What it knows
//! (`pod_state`) is safe to lose: after a restart the shims are asked, and what a dead shim left is taken for killed. In a
//! new sandbox, init containers run again.

mod act;
mod adopt;
mod backoff;
mod container_spec;
mod container_status;
mod container_stop;
mod container_sync;
mod decide;
#[cfg(test)]
mod decide_tests;
mod environment;
mod etc_files;
mod image_manager;
pub(crate) mod node_context;
mod pod_state;
mod pod_worker;
mod probe_manager;
mod restart_policy;
pub(crate) mod sandbox_network;
pub(crate) mod security_context;
mod sysctls;
mod termination_message;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use node_context::NodeContext;
use parking_lot::Mutex;
use pod_worker::PodWorker;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::{Id, JoinSet};
use windlass::Key;
use windlass::cache::AnyObject;

/// The wait before a worker that panicked is started again.
const PANIC_BACKOFF: Duration = Duration::from_secs(1);
/// The wait before what could not be removed of deleted pods is tried again.
const RETRY_LEFTOVERS: Duration = Duration::from_secs(60);
/// The number of deleted pods that are removed at once.
const CONCURRENT_REMOVALS: usize = 8;

/// The running workers, by pod UID.
pub(crate) type Workers = Arc<Mutex<HashMap<String, Arc<Notify>>>>;

fn uid_of(object: &Arc<dyn AnyObject>) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

/// Whether a pod has a container of this name, init and ephemeral ones included.
pub(crate) fn has_container(pod: &Pod, name: &str) -> bool {
    pod_worker::container(pod, name).is_some()
}

/// Runs the workers of a node's pods until the other end sends or is dropped. When it returns all workers have stopped, and their
/// directories can be removed.
pub(crate) async fn run(context: Arc<NodeContext>, until: oneshot::Receiver<()>) {
    let mut tasks = JoinSet::new();
    tokio::select! {
        _ = until => {}
        () = run_workers(&context, &mut tasks) => {}
    }
    tasks.shutdown().await;
}

async fn run_workers(context: &Arc<NodeContext>, tasks: &mut JoinSet<()>) {
    let workers = context.workers.clone();
    let changed = Arc::new(Notify::new());
    let (handlers, notify) = (workers.clone(), changed.clone());
    let _listening = context.pods.listen_while(Arc::new(move |change| {
        let uids = [&change.old, &change.new].into_iter().flatten().map(uid_of);
        let workers = handlers.lock();
        let mut new = false;
        for uid in uids {
            match workers.get(&uid) {
                Some(worker) => worker.notify_one(),
                None => new = true,
            }
        }
        if new {
            notify.notify_one();
        }
    }));
    context.pods.synced().await;
    context.services.synced().await;
    remove_orphans(context).await;
    let mut by_task: HashMap<Id, String> = HashMap::new();
    loop {
        for pod in context.pods.list() {
            start_worker(context, &pod, &workers, tasks, &mut by_task);
        }
        let leftovers = !context.leftovers.lock().is_empty();
        tokio::select! {
            () = changed.notified() => {}
            () = context.clock.sleep(RETRY_LEFTOVERS), if leftovers => remove_leftovers(context).await,
            Some(ended) = tasks.join_next_with_id() => {
                let (id, panicked) = match ended {
                    Ok((id, ())) => (id, false),
                    Err(error) => (error.id(), error.is_panic()),
                };
                if panicked {
                    tracing::error!("the worker of a pod panicked and is started again");
                    context.clock.sleep(PANIC_BACKOFF).await;
                }
                if let Some(uid) = by_task.remove(&id) {
                    workers.lock().remove(&uid);
                }
            }
        }
    }
}

/// Starts the worker of a pod, unless it runs.
fn start_worker(
    context: &Arc<NodeContext>,
    pod: &Pod,
    workers: &Workers,
    tasks: &mut JoinSet<()>,
    by_task: &mut HashMap<Id, String>,
) {
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    // It becomes the name of a directory.
    if uid.is_empty() || !uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return;
    }
    let mut workers = workers.lock();
    if workers.contains_key(&uid) {
        return;
    }
    let changed = Arc::new(Notify::new());
    let key = Key::of("".into(), &pod.metadata);
    workers.insert(uid.clone(), changed.clone());
    drop(workers);
    let worker = PodWorker::new(context.clone(), key, uid.clone(), changed);
    let task = tasks.spawn(worker.run());
    by_task.insert(task.id(), uid);
}

/// Tries again to remove what is left of deleted pods.
async fn remove_leftovers(context: &NodeContext) {
    let uids: Vec<String> = context.leftovers.lock().iter().cloned().collect();
    for some in uids.chunks(CONCURRENT_REMOVALS) {
        join_all(some.iter().map(|uid| adopt::remove_pod(context, uid, None))).await;
    }
}

/// Removes what is left of pods that were deleted while no kubelet was running.
async fn remove_orphans(context: &NodeContext) {
    let known: HashSet<String> =
        context.pods.list().iter().filter_map(|pod| pod.metadata.uid.clone()).collect();
    let mut orphans: HashSet<String> = adopt::orphans(context, &known).into_iter().collect();
    if let Some(network) = &context.network
        && let Ok(allocated) = network.allocated().await
    {
        orphans.extend(allocated.into_iter().map(|(uid, _)| uid).filter(|uid| !known.contains(uid)));
    }
    let orphans: Vec<String> = orphans.into_iter().collect();
    for some in orphans.chunks(CONCURRENT_REMOVALS) {
        join_all(some.iter().map(|uid| adopt::remove_pod(context, uid, None))).await;
    }
}

/// Kills all pods, and the network: nothing is left on the machine.
pub(crate) async fn kill_all(context: &NodeContext) {
    let uids = adopt::orphans(context, &HashSet::new());
    for some in uids.chunks(CONCURRENT_REMOVALS) {
        join_all(some.iter().map(|uid| adopt::remove_pod(context, uid, None))).await;
    }
    if let Some(network) = context.network.clone()
        && let Err(error) = network.end().await
    {
        tracing::warn!("failed to stop the node's network: {error}");
    }
}
