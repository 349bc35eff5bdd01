//! The pods of a node: one watch, and one task for each of them that observes, decides, acts and reports.
//!
//! `decide.rs` is pure: from a pod and what is known of it (`known.rs`) to steps and a status. `act.rs` carries steps out,
//! `worker.rs` is the loop around both. What is known is safe to lose: a node that starts again asks the shims (`adopt.rs`).

mod act;
mod adopt;
mod backoff;
mod decide;
#[cfg(test)]
mod decide_tests;
mod environment;
pub(crate) mod ephemeral;
pub(crate) mod expand;
pub(crate) mod fields;
mod finding;
mod hosts;
pub(crate) mod identity;
pub(crate) mod known;
mod life;
pub(crate) mod objects;
mod policy;
mod probing;
pub(crate) mod qos;
mod report;
pub(crate) mod site;
mod start;
mod statuses;
mod stopping;
mod sysctls;
pub(crate) mod tokens;
mod watched;
mod words;
mod worker;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use site::Site;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::{Id, JoinSet};
use windlass::Key;
use windlass::cache::AnyObject;
use worker::Worker;

/// A task that panicked begins again after so long.
const AFTER_A_PANIC: Duration = Duration::from_secs(1);
/// So many of those that are gone are cleared at once.
const CLEARED_AT_ONCE: usize = 8;

/// Who looks after which pod, by its UID.
pub(crate) type Workers = Arc<Mutex<HashMap<String, Arc<Notify>>>>;

fn uid_of(object: &Arc<dyn AnyObject>) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

/// Whether a pod has a container of this name, of whatever kind.
pub(crate) fn has_container(pod: &Pod, name: &str) -> bool {
    worker::container(pod, name).is_some()
}

/// Looks after the pods of a node until it is told or the other end is dropped. When it returns nobody does: whoever clears
/// their folders then meets none who writes there.
pub(crate) async fn keep(site: Arc<Site>, until: oneshot::Receiver<()>) {
    let mut tasks = JoinSet::new();
    tokio::select! {
        _ = until => {}
        () = look_after(&site, &mut tasks) => {}
    }
    tasks.shutdown().await;
}

async fn look_after(site: &Arc<Site>, tasks: &mut JoinSet<()>) {
    let workers = site.workers.clone();
    let changed = Arc::new(Notify::new());
    let (heard_by, told) = (workers.clone(), changed.clone());
    let _listening = site.pods.listen_while(Arc::new(move |news| {
        let uids = [&news.old, &news.new].into_iter().flatten().map(uid_of);
        let workers = heard_by.lock();
        let mut new = false;
        for uid in uids {
            match workers.get(&uid) {
                Some(worker) => worker.notify_one(),
                None => new = true,
            }
        }
        if new {
            told.notify_one();
        }
    }));
    site.pods.synced().await;
    site.services.synced().await;
    clear_orphans(site).await;
    let mut by_task: HashMap<Id, String> = HashMap::new();
    loop {
        for pod in site.pods.list() {
            begin(site, &pod, &workers, tasks, &mut by_task);
        }
        tokio::select! {
            () = changed.notified() => {}
            Some(ended) = tasks.join_next_with_id() => {
                let (id, panicked) = match ended {
                    Ok((id, ())) => (id, false),
                    Err(error) => (error.id(), error.is_panic()),
                };
                if panicked {
                    tracing::error!("what looks after a pod panicked; it begins again");
                    site.clock.sleep(AFTER_A_PANIC).await;
                }
                if let Some(uid) = by_task.remove(&id) {
                    workers.lock().remove(&uid);
                }
            }
        }
    }
}

/// Begins to look after a pod, unless somebody does.
fn begin(
    site: &Arc<Site>,
    pod: &Pod,
    workers: &Workers,
    tasks: &mut JoinSet<()>,
    by_task: &mut HashMap<Id, String>,
) {
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    // It names a folder: what is no UID is nobody's pod.
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
    let worker = Worker::new(site.clone(), key, uid.clone(), changed);
    let task = tasks.spawn(worker.run());
    by_task.insert(task.id(), uid);
}

/// Ends what is left of pods that went while nobody looked.
async fn clear_orphans(site: &Site) {
    let known: HashSet<String> = site.pods.list().iter().filter_map(|pod| pod.metadata.uid.clone()).collect();
    let mut orphans: HashSet<String> = adopt::orphans(site, &known).into_iter().collect();
    if let Some(network) = &site.network
        && let Ok(lent) = network.lent().await
    {
        orphans.extend(lent.into_iter().map(|(uid, _)| uid).filter(|uid| !known.contains(uid)));
    }
    let orphans: Vec<String> = orphans.into_iter().collect();
    for some in orphans.chunks(CLEARED_AT_ONCE) {
        join_all(some.iter().map(|uid| adopt::clear(site, uid, None))).await;
    }
}

/// Ends all pods that are here, and the network: nothing is left on the machine.
pub(crate) async fn end_all(site: &Site) {
    let uids = adopt::orphans(site, &HashSet::new());
    for some in uids.chunks(CLEARED_AT_ONCE) {
        join_all(some.iter().map(|uid| adopt::clear(site, uid, None))).await;
    }
    if let Some(network) = site.network.clone()
        && let Err(error) = network.end().await
    {
        tracing::warn!("the node's network does not end: {error}");
    }
}
