//! ReplicaSets and ReplicationControllers.

use super::manual_pods::{self, controller, fares, is_ready, pods, wait_for_count};
use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use kube::ResourceExt;
use serde_json::json;
use std::time::Duration;
use windlass_harness::{Suite, Target};
use windlass_testing::{Building, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a replica set creates its pods, and replaces deleted ones", makes_its_pods)
        .test("a replica set's status counts its pods", counts_its_pods)
        .test("a replica set that scales down deletes the cheapest pods first", shrinks)
        .test("a replica set adopts matching orphans and releases pods that no longer match", adopts_and_releases)
        .test("two replica sets of one selector do not affect each other's pods", overlap)
        .test("a pod is available after minReadySeconds", min_ready)
        .test("a failed pod is replaced and not counted", replaces_failed)
        .test("a replica set whose pods are rejected has ReplicaFailure, and creates them once they are accepted", cannot_create)
        .test("a replica set of hundreds of pods becomes ready and is deleted", hundreds)
        .test("a replication controller keeps its number of replicas too", replication_controller)
}

fn set(name: &str, app: &str, replicas: i32) -> ReplicaSet {
    object(
        name,
        json!({ "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": app } },
            "template": manual_pods::template(app, "nginx"),
        } }),
    )
}

async fn makes_its_pods(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let made = cluster.create(set("web", "web", 3)).await?;
    let first = wait_for_count(&cluster, "web", 3).await?;
    for pod in &first {
        let (name, owner) = (pod.name_any(), &pod.owner_references()[0]);
        ensure!(name.starts_with("web-") && name.len() == 9, "a name of five more: {name}");
        ensure!(pod.metadata.generate_name.as_deref() == Some("web-"), "{:?}", pod.metadata.generate_name);
        ensure!(Some(&owner.uid) == made.metadata.uid.as_ref(), "{owner:?}");
        ensure!((owner.controller, owner.block_owner_deletion) == (Some(true), Some(true)), "{owner:?}");
    }
    let status = json!({ "status": {
        "replicas": 3, "fullyLabeledReplicas": 3, "observedGeneration": 1, "terminatingReplicas": 0,
    } });
    cluster.eventually::<ReplicaSet>("web").has(status).await?;
    let told = cluster.eventually::<ReplicaSet>("web").has_event("SuccessfulCreate").await?;
    ensure!(told.starts_with("Created pod: web-"), "{told}");

    cluster.delete::<Pod>(&first[0].name_any()).await?;
    let lost = first[0].name_any();
    let again = cluster
        .until(
            "the lost pod is replaced",
            || pods(&cluster, "web"),
            |pods| pods.len() == 3 && pods.iter().all(|pod| pod.name_any() != lost),
        )
        .await?;
    let kept = again.iter().filter(|pod| first.iter().any(|one| one.name_any() == pod.name_any()));
    ensure!(kept.count() == 2, "the others stay");

    cluster.patch::<ReplicaSet>("web", json!({ "spec": { "replicas": 0 } })).await?;
    wait_for_count(&cluster, "web", 0).await?;
    let status = json!({ "status": { "replicas": 0, "observedGeneration": 2 } });
    cluster.eventually::<ReplicaSet>("web").has(status).await?;
    let told = cluster.eventually::<ReplicaSet>("web").has_event("SuccessfulDelete").await?;
    ensure!(told.starts_with("Deleted pod: web-"), "{told}");
    Ok(())
}

async fn counts_its_pods(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(set("web", "web", 3)).await?;
    let pods = wait_for_count(&cluster, "web", 3).await?;
    fares(&cluster, &pods[0], true).await?;
    fares(&cluster, &pods[1], true).await?;
    let two = json!({ "status": { "replicas": 3, "readyReplicas": 2, "availableReplicas": 2 } });
    cluster.eventually::<ReplicaSet>("web").has(two).await?;
    fares(&cluster, &pods[1], false).await?;
    let one = json!({ "status": { "replicas": 3, "readyReplicas": 1, "availableReplicas": 1 } });
    cluster.eventually::<ReplicaSet>("web").has(one).await?;
    // One that holds itself with a finalizer is on its way out, and is told apart.
    let held = json!({ "metadata": { "finalizers": ["windlass.dev/held"] } });
    cluster.patch::<Pod>(&pods[0].name_any(), held).await?;
    cluster.delete::<Pod>(&pods[0].name_any()).await?;
    let going = json!({ "status": { "replicas": 3, "terminatingReplicas": 1 } });
    cluster.eventually::<ReplicaSet>("web").has(going).await?;
    cluster.patch::<Pod>(&pods[0].name_any(), json!({ "metadata": { "finalizers": null } })).await?;
    let gone = json!({ "status": { "replicas": 3, "terminatingReplicas": 0 } });
    cluster.eventually::<ReplicaSet>("web").has(gone).await?;
    Ok(())
}

async fn shrinks(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(set("web", "web", 5)).await?;
    let all = wait_for_count(&cluster, "web", 5).await?;
    for pod in &all[..3] {
        fares(&cluster, pod, true).await?;
    }
    let cost = |cost: &str| json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": cost } } });
    cluster.patch::<Pod>(&all[0].name_any(), cost("100")).await?;
    cluster.patch::<Pod>(&all[1].name_any(), cost("-100")).await?;
    cluster.eventually::<ReplicaSet>("web").has(json!({ "status": { "readyReplicas": 3 } })).await?;
    cluster.patch::<ReplicaSet>("web", json!({ "spec": { "replicas": 3 } })).await?;
    let left = wait_for_count(&cluster, "web", 3).await?;
    ensure!(left.iter().all(is_ready), "those that are not ready go first");
    cluster.patch::<ReplicaSet>("web", json!({ "spec": { "replicas": 2 } })).await?;
    let left = wait_for_count(&cluster, "web", 2).await?;
    ensure!(left.iter().all(|pod| pod.name_any() != all[1].name_any()), "then the cheapest");
    cluster.patch::<ReplicaSet>("web", json!({ "spec": { "replicas": 1 } })).await?;
    let left = wait_for_count(&cluster, "web", 1).await?;
    ensure!(left[0].name_any() == all[0].name_any(), "the dearest stays");
    Ok(())
}

async fn adopts_and_releases(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    manual_pods::lone_pod(&cluster, "orphan", "web").await?;
    cluster.create(set("web", "web", 2)).await?;
    let both = wait_for_count(&cluster, "web", 2).await?;
    ensure!(both.iter().any(|pod| pod.name_any() == "orphan"), "it is one of the two");
    cluster.eventually::<Pod>("orphan").is("is the set's", |pod| controller(pod) == Some("web")).await?;

    cluster.patch::<Pod>("orphan", json!({ "metadata": { "labels": { "app": "other" } } })).await?;
    cluster.eventually::<Pod>("orphan").is("is let go", |pod| pod.owner_references().is_empty()).await?;
    let again = wait_for_count(&cluster, "web", 2).await?;
    ensure!(again.iter().all(|pod| controller(pod) == Some("web")), "another took its place");

    // Back again, there is one too many.
    cluster.patch::<Pod>("orphan", json!({ "metadata": { "labels": { "app": "web" } } })).await?;
    cluster
        .until(
            "there are two again, all of them the set's",
            || pods(&cluster, "web"),
            |pods| pods.len() == 2 && pods.iter().all(|pod| controller(pod) == Some("web")),
        )
        .await?;
    Ok(())
}

async fn overlap(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(set("one", "web", 2)).await?;
    wait_for_count(&cluster, "web", 2).await?;
    cluster.create(set("two", "web", 3)).await?;
    let all = wait_for_count(&cluster, "web", 5).await?;
    let of = |name: &str| all.iter().filter(|pod| controller(pod) == Some(name)).count();
    ensure!((of("one"), of("two")) == (2, 3), "each has its own");
    cluster.eventually::<ReplicaSet>("one").has(json!({ "status": { "replicas": 2 } })).await?;
    cluster.eventually::<ReplicaSet>("two").has(json!({ "status": { "replicas": 3 } })).await?;
    cluster.patch::<ReplicaSet>("one", json!({ "spec": { "replicas": 0 } })).await?;
    let left = wait_for_count(&cluster, "web", 3).await?;
    ensure!(left.iter().all(|pod| controller(pod) == Some("two")), "and ends only its own");
    Ok(())
}

async fn min_ready(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let seconds = if cluster.embedded().is_some() { 3600 } else { 3 };
    cluster.create(set("web", "web", 1).set("spec.minReadySeconds", seconds)).await?;
    let pods = wait_for_count(&cluster, "web", 1).await?;
    fares(&cluster, &pods[0], true).await?;
    let ready =
        cluster.eventually::<ReplicaSet>("web").has(json!({ "status": { "readyReplicas": 1 } })).await?;
    let available = ready.status.context("a status")?.available_replicas.unwrap_or_default();
    ensure!(available == 0, "ready, but not yet available");
    cluster.advance(Duration::from_secs(seconds)).await;
    cluster.eventually::<ReplicaSet>("web").has(json!({ "status": { "availableReplicas": 1 } })).await?;
    Ok(())
}

async fn replaces_failed(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(set("web", "web", 2)).await?;
    let pods = wait_for_count(&cluster, "web", 2).await?;
    let failed = pods[0].name_any();
    cluster.patch_status::<Pod>(&failed, json!({ "phase": "Failed" })).await?;
    let again = wait_for_count(&cluster, "web", 2).await?;
    ensure!(again.iter().all(|pod| pod.name_any() != failed), "another took its place");
    cluster.eventually::<ReplicaSet>("web").has(json!({ "status": { "replicas": 2 } })).await?;
    ensure!(cluster.find::<Pod>(&failed).await?.is_some(), "the failed one is left to be looked at");
    Ok(())
}

async fn cannot_create(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let class = format!("{}-high", cluster.namespace());
    let wanting = set("web", "web", 4).set("spec.template.spec.priorityClassName", class.as_str());
    cluster.create(wanting).await?;
    let because = cluster
        .eventually::<ReplicaSet>("web")
        .has_condition_because("ReplicaFailure", "FailedCreate")
        .await?;
    ensure!(because.status.context("a status")?.replicas == 0, "none is there");
    let told = cluster.eventually::<ReplicaSet>("web").has_event("FailedCreate").await?;
    ensure!(told.starts_with("Error creating: pods \"web-"), "{told}");
    use k8s_openapi::api::scheduling::v1::PriorityClass;
    cluster.create(object::<PriorityClass>(class.as_str(), json!({ "value": 1000 }))).await?;
    wait_for_count(&cluster, "web", 4).await?;
    cluster
        .eventually::<ReplicaSet>("web")
        .is("has no trouble any more", |set| {
            let conditions = set.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.is_none_or(Vec::is_empty)
        })
        .await?;
    cluster.delete::<PriorityClass>(&class).await
}

async fn hundreds(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(set("web", "web", 300)).await?;
    let web = || cluster.eventually::<ReplicaSet>("web");
    web().has(json!({ "status": { "replicas": 300, "fullyLabeledReplicas": 300 } })).await?;
    let pods = wait_for_count(&cluster, "web", 300).await?;
    for pod in &pods[..20] {
        fares(&cluster, pod, true).await?;
    }
    web().has(json!({ "status": { "readyReplicas": 20, "availableReplicas": 20 } })).await?;
    cluster.patch::<ReplicaSet>("web", json!({ "spec": { "replicas": 20 } })).await?;
    let left = wait_for_count(&cluster, "web", 20).await?;
    ensure!(left.iter().all(is_ready), "the ready ones stay");
    web().has(json!({ "status": { "replicas": 20, "observedGeneration": 2 } })).await?;
    Ok(())
}

async fn replication_controller(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    // The selector follows from the template.
    let controlled: ReplicationController =
        object("rc", json!({ "spec": { "replicas": 2, "template": manual_pods::template("old", "nginx") } }));
    cluster.create(controlled).await?;
    let pods = wait_for_count(&cluster, "old", 2).await?;
    ensure!(pods.iter().all(|pod| pod.owner_references()[0].kind == "ReplicationController"), "{pods:?}");
    fares(&cluster, &pods[0], true).await?;
    let status = json!({ "status": {
        "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 1, "availableReplicas": 1,
    } });
    cluster.eventually::<ReplicationController>("rc").has(status).await?;
    cluster.patch::<ReplicationController>("rc", json!({ "spec": { "replicas": 1 } })).await?;
    let left = wait_for_count(&cluster, "old", 1).await?;
    ensure!(left[0].name_any() == pods[0].name_any(), "the ready one stays");
    cluster.eventually::<ReplicationController>("rc").has_event("SuccessfulDelete").await?;
    Ok(())
}
