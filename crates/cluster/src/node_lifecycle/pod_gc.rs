//! The pod garbage collector: deletes pods of deleted nodes, the oldest terminated pods beyond a threshold, and terminating pods
//! that were never scheduled.

use crate::pods::{has_ended, is_terminating};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use windlass::Manager;
use windlass::cache::{Cache, Store};
use windlass_clock::{Clock, Moment};

/// The interval of the collection.
const INTERVAL: Duration = Duration::from_secs(20);
/// When a test drives the clock, and nothing else happens.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
/// How long a node has to be missing before its pods are deleted.
const QUARANTINE: Duration = Duration::from_secs(40);
/// The number of terminated pods that are kept.
const TERMINATED_POD_THRESHOLD: usize = 12_500;
/// The number of concurrent deletions.
const CONCURRENT_DELETES: usize = 16;

/// Why a pod is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    NodeDeleted,
    Terminated,
    NeverScheduled,
}

pub(super) fn add(manager: Manager) -> Manager {
    type Stores = (Arc<Store<Pod>>, Arc<Store<Node>>);
    let stores: Arc<Mutex<Option<Stores>>> = Arc::default();
    let given = stores.clone();
    let manager = manager.caching(move |cache: &Cache| {
        *given.lock() = Some((cache.store::<Pod>(), cache.store::<Node>()));
    });
    manager.task("pod-garbage-collector", move |task| {
        let stores = stores.lock().clone();
        async move {
            let Some((pods, nodes)) = stores else { return Ok(()) };
            let mut missing = HashMap::new();
            loop {
                tokio::select! {
                    () = task.stopped() => return Ok(()),
                    () = task.clock().sleep_between(INTERVAL, LONGEST_INTERVAL) => {}
                }
                collect_garbage(task.client(), task.clock(), &pods, &nodes, &mut missing).await?;
            }
        }
    })
}

async fn collect_garbage(
    client: &Client,
    clock: &Clock,
    pods: &Store<Pod>,
    nodes: &Store<Node>,
    missing: &mut HashMap<String, Moment>,
) -> Result<(), kube::Error> {
    let known: BTreeSet<String> = nodes.list().iter().filter_map(|node| node.metadata.name.clone()).collect();
    let all = pods.list();
    let now = clock.moment();
    let unknown: BTreeSet<&str> =
        all.iter().filter_map(|pod| node_of(pod)).filter(|node| !known.contains(*node)).collect();
    missing.retain(|name, _| unknown.contains(name.as_str()));
    let mut gone = BTreeSet::new();
    for name in unknown {
        let since = *missing.entry(name.to_owned()).or_insert(now);
        // The cache may lag: the absence that deletes pods is confirmed live.
        if now - since >= QUARANTINE && Api::<Node>::all(client.clone()).get_opt(name).await?.is_none() {
            gone.insert(name.to_owned());
        }
    }
    let garbage = collect(&all, &gone, TERMINATED_POD_THRESHOLD);
    use futures::StreamExt;
    let deleting = futures::stream::iter(garbage).map(|(pod, why)| async move {
        if let Err(error) = delete(client, clock, &pod, why).await {
            tracing::debug!(pod = ?pod.metadata.name, ?why, "failed to collect the pod: {error}");
        }
    });
    deleting.buffer_unordered(CONCURRENT_DELETES).collect::<()>().await;
    Ok(())
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// The pods to be deleted, and why.
fn collect(pods: &[Arc<Pod>], gone: &BTreeSet<String>, kept: usize) -> Vec<(Arc<Pod>, Why)> {
    let mut garbage: Vec<(Arc<Pod>, Why)> = Vec::new();
    let mut ended: Vec<&Arc<Pod>> = Vec::new();
    for pod in pods {
        match node_of(pod) {
            Some(node) if gone.contains(node) => garbage.push((pod.clone(), Why::NodeDeleted)),
            None if is_terminating(pod) => garbage.push((pod.clone(), Why::NeverScheduled)),
            _ if has_ended(pod) && !is_terminating(pod) => ended.push(pod),
            _ => {}
        }
    }
    let age = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |time| time.0);
    ended.sort_by_key(|pod| (age(pod), pod.metadata.name.clone()));
    let over = ended.len().saturating_sub(kept);
    garbage.extend(ended.into_iter().take(over).map(|pod| (pod.clone(), Why::Terminated)));
    garbage
}

async fn delete(client: &Client, clock: &Clock, pod: &Pod, why: Why) -> Result<(), kube::Error> {
    let meta = &pod.metadata;
    let (name, namespace) =
        (meta.name.as_deref().unwrap_or_default(), meta.namespace.as_deref().unwrap_or_default());
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    if !has_ended(pod) && why != Why::Terminated {
        let now = Timestamp::from_second(clock.now().as_second()).unwrap_or_default().to_string();
        let mut status = json!({ "phase": "Failed" });
        if why == Why::NodeDeleted {
            status["conditions"] = json!([{
                "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists", "lastTransitionTime": now,
            }]);
        }
        let patch = json!({ "metadata": { "uid": meta.uid }, "status": status });
        pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
    }
    let preconditions = Preconditions { uid: meta.uid.clone(), resource_version: None };
    let how = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }.grace_period(0);
    pods.delete(name, &how).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, node: Option<&str>, phase: &str, age: i64, going: bool) -> Arc<Pod> {
        let created = Timestamp::from_second(age).unwrap().to_string();
        let mut pod = json!({
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"nodeName": node, "containers": []}, "status": {"phase": phase},
        });
        if going {
            pod["metadata"]["deletionTimestamp"] = json!(created);
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn orphaned_terminated_and_unscheduled_pods_are_collected() {
        let pods = [
            pod("lost", Some("gone"), "Running", 1, false),
            pod("fine", Some("n"), "Running", 1, false),
            pod("waits", None, "Pending", 1, false),
            pod("given-up", None, "Pending", 1, true),
            pod("young", Some("n"), "Succeeded", 9, false),
            pod("old", Some("n"), "Failed", 2, false),
        ];
        let garbage = collect(&pods, &["gone".to_owned()].into(), 1);
        let garbage: Vec<(&str, Why)> =
            garbage.iter().map(|(pod, why)| (pod.metadata.name.as_deref().unwrap(), *why)).collect();
        assert_eq!(
            garbage,
            [("lost", Why::NodeDeleted), ("given-up", Why::NeverScheduled), ("old", Why::Terminated)]
        );
    }
}
