//! DaemonSets: placement, rolling updates and history.

use super::manual_pods::{self, all_ready, controller, fares, is_ready, pods, wait_for_count};
use super::watch_record::Record;
use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass_harness::{Suite, Target};
use windlass_testing::{Building, TestCluster, object};

/// The label of the nodes that a test's daemons are for: no node that runs pods has it.
const LABEL: &str = "windlass.dev/daemons-of";

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a daemon set has one pod on every matching node", one_on_each)
        .test("NoSchedule taints keep daemon pods away, and NoExecute taints evict them", taints)
        .test("a daemon set's rolling update respects maxUnavailable", updates)
        .test("a daemon set with OnDelete waits for the deletion of pods", updates_by_hand)
        .test("maxSurge creates the new daemon pod before the old one is deleted", surges)
        .test("a failed daemon pod is replaced", replaces_failed)
        .test("a daemon set keeps revisionHistoryLimit revisions", forgets)
}

fn daemons(cluster: &TestCluster, strategy: Value) -> DaemonSet {
    let mut template = manual_pods::template("logs", "one");
    template["spec"]["nodeSelector"] = json!({ LABEL: cluster.namespace() });
    // A daemon that no scheduler takes is not given up by Kubernetes' own controller when its node fits no longer.
    template["spec"]["schedulerName"] = json!("default-scheduler");
    object(
        "logs",
        json!({ "spec": {
            "selector": { "matchLabels": { "app": "logs" } },
            "updateStrategy": strategy,
            "template": template,
        } }),
    )
}

fn rolling(bounds: Value) -> Value {
    json!({ "type": "RollingUpdate", "rollingUpdate": bounds })
}

fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "app", "image": image }] } } } })
}

/// Nodes of this test; nobody runs pods on them.
async fn nodes(cluster: &TestCluster, count: usize) -> anyhow::Result<Vec<String>> {
    let names: Vec<String> = (0..count).map(|number| format!("{}-{number}", cluster.namespace())).collect();
    for name in &names {
        cluster.create(object::<Node>(name.as_str(), json!({})).labelled(LABEL, cluster.namespace())).await?;
        let now = cluster.clock().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let ready =
            json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now });
        cluster.patch_status::<Node>(name, json!({ "conditions": [ready] })).await?;
    }
    Ok(names)
}

async fn remove(cluster: &TestCluster, nodes: &[String]) -> anyhow::Result<()> {
    for name in nodes {
        cluster.delete::<Node>(name).await?;
    }
    Ok(())
}

/// The node that a pod is for.
fn node_of(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let field = required.node_selector_terms.first()?.match_fields.as_ref()?.first()?;
    field.values.as_ref()?.first().cloned()
}

async fn on_nodes(cluster: &TestCluster, wanted: &[&String]) -> anyhow::Result<Vec<Pod>> {
    let wanted: BTreeSet<String> = wanted.iter().map(ToString::to_string).collect();
    let fits = |pods: &Vec<Pod>| {
        pods.len() == wanted.len() && pods.iter().filter_map(node_of).collect::<BTreeSet<_>>() == wanted
    };
    cluster.until(&format!("there are daemons for {wanted:?}"), || pods(cluster, "logs"), fits).await
}

fn image_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}

async fn one_on_each(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let names = nodes(&cluster, 3).await?;
    cluster.patch::<Node>(&names[2], json!({ "metadata": { "labels": { LABEL: "elsewhere" } } })).await?;
    cluster.create(daemons(&cluster, rolling(json!({})))).await?;
    let first = on_nodes(&cluster, &[&names[0], &names[1]]).await?;
    let revisions = cluster.list::<ControllerRevision>().await?;
    let [revision] = &revisions[..] else { anyhow::bail!("one revision, not {}", revisions.len()) };
    let hash = revision.labels().get("controller-revision-hash").context("a hash")?;
    ensure!(revision.name_any() == format!("logs-{hash}") && revision.revision == 1, "{revision:?}");
    for pod in &first {
        ensure!(controller(pod) == Some("logs") && pod.name_any().starts_with("logs-"), "{}", pod.name_any());
        let label = |key: &str| pod.labels().get(key).map(String::as_str);
        ensure!(label("controller-revision-hash") == Some(hash), "{:?}", pod.labels());
        ensure!(label("pod-template-generation") == Some("1"), "{:?}", pod.labels());
        let tolerations = pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten());
        let keys: BTreeSet<_> = tolerations.filter_map(|one| one.key.as_deref()).collect();
        ensure!(keys.len() == 6 && keys.contains("node.kubernetes.io/unschedulable"), "{keys:?}");
    }
    let logs = || cluster.eventually::<DaemonSet>("logs");
    let status = json!({ "status": {
        "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 0, "updatedNumberScheduled": 2,
        "numberUnavailable": 2, "observedGeneration": 1, "numberMisscheduled": 0,
    } });
    logs().has(status).await?;
    logs().has_event("SuccessfulCreate").await?;
    all_ready(&cluster, "logs").await?;
    logs().has(json!({ "status": { "numberReady": 2, "numberAvailable": 2 } })).await?;
    // A node that comes to fit gets one; one that fits no longer loses it; and one that is gone too.
    let fits = json!({ "metadata": { "labels": { LABEL: cluster.namespace() } } });
    cluster.patch::<Node>(&names[2], fits).await?;
    on_nodes(&cluster, &[&names[0], &names[1], &names[2]]).await?;
    cluster.patch::<Node>(&names[0], json!({ "metadata": { "labels": { LABEL: null } } })).await?;
    on_nodes(&cluster, &[&names[1], &names[2]]).await?;
    cluster.delete::<Node>(&names[1]).await?;
    on_nodes(&cluster, &[&names[2]]).await?;
    logs().has(json!({ "status": { "desiredNumberScheduled": 1, "currentNumberScheduled": 1 } })).await?;
    remove(&cluster, &[names[0].clone(), names[2].clone()]).await
}

async fn taints(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let names = nodes(&cluster, 2).await?;
    cluster.create(daemons(&cluster, rolling(json!({})))).await?;
    on_nodes(&cluster, &[&names[0], &names[1]]).await?;
    let taint = |effect: &str| json!({ "spec": { "taints": [{ "key": "own", "effect": effect }] } });
    cluster.patch::<Node>(&names[0], taint("NoSchedule")).await?;
    let status = json!({ "status": { "desiredNumberScheduled": 1, "numberMisscheduled": 1 } });
    cluster.eventually::<DaemonSet>("logs").has(status).await?;
    on_nodes(&cluster, &[&names[0], &names[1]]).await.context("what is there stays")?;
    let there = pods(&cluster, "logs").await?;
    let lost = there.iter().find(|pod| node_of(pod).as_ref() == Some(&names[0])).context("it")?;
    cluster.delete::<Pod>(&lost.name_any()).await?;
    on_nodes(&cluster, &[&names[1]]).await.context("and is not made again")?;
    cluster.patch::<Node>(&names[1], taint("NoExecute")).await?;
    on_nodes(&cluster, &[]).await?;
    remove(&cluster, &names).await
}

async fn updates(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let names = nodes(&cluster, 4).await?;
    cluster.create(daemons(&cluster, rolling(json!({ "maxUnavailable": 1 })))).await?;
    wait_for_count(&cluster, "logs", 4).await?;
    all_ready(&cluster, "logs").await?;
    cluster.eventually::<DaemonSet>("logs").has(json!({ "status": { "numberAvailable": 4 } })).await?;
    let record = Record::<Pod>::start(&cluster).await?;
    cluster.patch::<DaemonSet>("logs", image("two")).await?;
    let look = || async {
        all_ready(&cluster, "logs").await?;
        cluster.get::<DaemonSet>("logs").await
    };
    let done = |set: &DaemonSet| {
        let status = set.status.clone().unwrap_or_default();
        status.observed_generation == set.metadata.generation
            && (status.updated_number_scheduled, status.number_available) == (Some(4), Some(4))
    };
    cluster.until("all are new", look, done).await?;
    ensure!(pods(&cluster, "logs").await?.iter().all(|pod| image_of(pod) == Some("two")), "all are new");
    let ready = |pod: &&Pod| is_ready(pod) && pod.metadata.deletion_timestamp.is_none();
    for moment in record.moments(&cluster).await? {
        let count = moment.values().filter(ready).count();
        ensure!(count >= 3, "three at least are ready at every moment, not {count}");
    }
    // Back again: the first revision is the newest now.
    cluster.patch::<DaemonSet>("logs", image("one")).await?;
    cluster.until("all are old again", look, done).await?;
    let mut revisions = cluster.list::<ControllerRevision>().await?;
    revisions.sort_by_key(|revision| revision.revision);
    let numbers: Vec<_> = revisions.iter().map(|revision| revision.revision).collect();
    ensure!(numbers == [2, 3], "{numbers:?}");
    remove(&cluster, &names).await
}

async fn updates_by_hand(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let names = nodes(&cluster, 2).await?;
    cluster.create(daemons(&cluster, json!({ "type": "OnDelete" }))).await?;
    let first = wait_for_count(&cluster, "logs", 2).await?;
    all_ready(&cluster, "logs").await?;
    cluster.patch::<DaemonSet>("logs", image("two")).await?;
    let status =
        json!({ "status": { "observedGeneration": 2, "currentNumberScheduled": 2, "numberReady": 2 } });
    cluster.eventually::<DaemonSet>("logs").has(status).await?;
    cluster.delete::<Pod>(&first[0].name_any()).await?;
    cluster.eventually::<DaemonSet>("logs").has(json!({ "status": { "updatedNumberScheduled": 1 } })).await?;
    let now = wait_for_count(&cluster, "logs", 2).await?;
    let new = now.iter().filter(|pod| image_of(pod) == Some("two")).count();
    ensure!(new == 1, "only what was deleted is new");
    remove(&cluster, &names).await
}

async fn surges(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let names = nodes(&cluster, 2).await?;
    cluster.create(daemons(&cluster, rolling(json!({ "maxSurge": 1, "maxUnavailable": 0 })))).await?;
    wait_for_count(&cluster, "logs", 2).await?;
    all_ready(&cluster, "logs").await?;
    cluster.eventually::<DaemonSet>("logs").has(json!({ "status": { "numberAvailable": 2 } })).await?;
    cluster.patch::<DaemonSet>("logs", image("two")).await?;
    for round in 1..=2 {
        // One at a time: the old one goes, and the next new one comes beside its old one.
        let is_new = |pod: &&Pod| image_of(pod) == Some("two");
        let beside = |pods: &Vec<Pod>| {
            let new = pods.iter().filter(is_new);
            pods.len() == 3
                && new.clone().count() == round
                && new.filter(|pod| is_ready(pod)).count() == round - 1
        };
        let three =
            cluster.until("a new one is beside an old one", || pods(&cluster, "logs"), beside).await?;
        let new: Vec<_> = three.iter().filter(is_new).collect();
        let waiting = new.iter().find(|pod| !is_ready(pod)).context("one that is not ready yet")?;
        fares(&cluster, waiting, true).await?;
    }
    let last = wait_for_count(&cluster, "logs", 2).await?;
    ensure!(last.iter().all(|pod| image_of(pod) == Some("two")), "all are new");
    remove(&cluster, &names).await
}

async fn replaces_failed(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let names = nodes(&cluster, 1).await?;
    cluster.create(daemons(&cluster, rolling(json!({})))).await?;
    let first = wait_for_count(&cluster, "logs", 1).await?;
    cluster.patch_status::<Pod>(&first[0].name_any(), json!({ "phase": "Failed" })).await?;
    let again = wait_for_count(&cluster, "logs", 1).await?;
    ensure!(again[0].name_any() != first[0].name_any(), "another one");
    cluster.eventually::<Pod>(&first[0].name_any()).is_deleted().await?;
    let told = cluster.eventually::<DaemonSet>("logs").has_event("FailedDaemonPod").await?;
    let name = format!("{}/{}", cluster.namespace(), first[0].name_any());
    let wanted = format!("Found failed daemon pod {name} on node {}, will try to kill it", names[0]);
    ensure!(told == wanted, "{told}");
    remove(&cluster, &names).await
}

async fn forgets(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(daemons(&cluster, rolling(json!({}))).set("spec.revisionHistoryLimit", 1)).await?;
    let numbers = || async {
        let revisions = cluster.list::<ControllerRevision>().await?;
        let mut numbers: Vec<i64> = revisions.iter().map(|revision| revision.revision).collect();
        numbers.sort_unstable();
        Ok(numbers)
    };
    cluster.until("there is a first revision", numbers, |numbers| numbers == &[1]).await?;
    cluster.patch::<DaemonSet>("logs", image("two")).await?;
    cluster.until("there is a second one", numbers, |numbers| numbers == &[1, 2]).await?;
    cluster.patch::<DaemonSet>("logs", image("three")).await?;
    cluster.until("the first is forgotten", numbers, |numbers| numbers == &[2, 3]).await?;
    Ok(())
}
