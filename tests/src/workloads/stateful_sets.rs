//! StatefulSets: order, identity, revisions and claims.

use super::manual_pods::{ended, names, ready, template};
use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::{Value, json};
use std::time::Duration;
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a stateful set scales up in order, and down from the highest ordinal", in_order)
        .test("a parallel stateful set creates all its pods at once, from its start ordinal", at_once)
        .test("a stateful set rolls out to its partition, and rolls back", rolls)
        .test("updateStrategy OnDelete waits for the deletion of pods", on_delete)
        .test("a stateful set replaces failed pods, and repairs their identity", replaces)
        .test("a stateful set's pods are available after minReadySeconds", available)
        .test("a stateful set creates claims, and follows persistentVolumeClaimRetentionPolicy", claims)
        .test("a stateful set adopts orphans", adopts)
}

/// A set called `db` with this in its spec.
fn set(fields: &Value) -> StatefulSet {
    let mut spec = json!({
        "serviceName": "db",
        "selector": { "matchLabels": { "app": "db" } },
        "template": template("db", "db:1"),
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    object("db", json!({ "spec": spec }))
}

async fn pods_are(cluster: &TestCluster, wanted: &[&str]) -> anyhow::Result<()> {
    let what = format!("the pods are {wanted:?}");
    cluster.until(&what, || names(cluster), |names| names == wanted).await.map(drop)
}

async fn status_has(cluster: &TestCluster, status: Value) -> anyhow::Result<StatefulSet> {
    cluster.eventually::<StatefulSet>("db").has(json!({ "status": status })).await
}

async fn in_order(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(set(&json!({ "replicas": 3 }))).await?;
    pods_are(&cluster, &["db-0"]).await?;
    status_has(&cluster, json!({ "replicas": 1, "observedGeneration": 1, "availableReplicas": 0 })).await?;
    let first = ready(&cluster, "db-0").await?;
    let labels = first.metadata.labels.context("it has labels")?;
    ensure!(labels["statefulset.kubernetes.io/pod-name"] == "db-0", "{labels:?}");
    ensure!(labels["apps.kubernetes.io/pod-index"] == "0", "{labels:?}");
    let spec = first.spec.context("it has a spec")?;
    ensure!(spec.hostname.as_deref() == Some("db-0") && spec.subdomain.as_deref() == Some("db"));
    pods_are(&cluster, &["db-0", "db-1"]).await?;
    ready(&cluster, "db-1").await?;
    ready(&cluster, "db-2").await?;
    let counts = json!({
        "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3,
        "collisionCount": 0,
    });
    let up = status_has(&cluster, counts).await?;
    let status = up.status.context("it has a status")?;
    ensure!(status.current_revision == status.update_revision, "{status:?}");
    // The name has the hash of the template, which is the same everywhere.
    ensure!(labels["controller-revision-hash"] == "db-648ddb86cb", "{labels:?}");
    ensure!(status.current_revision.as_deref() == Some("db-648ddb86cb"), "{status:?}");
    let told = cluster.eventually::<StatefulSet>("db").has_event("SuccessfulCreate").await?;
    ensure!(told == "Create Pod db-0 in StatefulSet db successful", "{told}");

    cluster.patch::<StatefulSet>("db", json!({ "spec": { "replicas": 1 } })).await?;
    pods_are(&cluster, &["db-0"]).await?;
    status_has(&cluster, json!({ "replicas": 1, "readyReplicas": 1, "observedGeneration": 2 })).await?;
    let told = || cluster.events::<StatefulSet>("db");
    let order = |told: &Vec<String>| {
        let place = |pod: &str| {
            let wanted = format!("SuccessfulDelete: Delete Pod {pod} in StatefulSet db successful");
            told.iter().position(|one| *one == wanted)
        };
        place("db-1").is_some() && place("db-2").is_some()
    };
    cluster.until("both deletes are told", told, order).await?;
    Ok(())
}

async fn at_once(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let fields = json!({ "replicas": 3, "podManagementPolicy": "Parallel", "ordinals": { "start": 5 } });
    cluster.create(set(&fields)).await?;
    pods_are(&cluster, &["db-5", "db-6", "db-7"]).await?;
    cluster.patch::<StatefulSet>("db", json!({ "spec": { "ordinals": { "start": 6 } } })).await?;
    pods_are(&cluster, &["db-6", "db-7", "db-8"]).await?;
    cluster.patch::<StatefulSet>("db", json!({ "spec": { "replicas": 0 } })).await?;
    pods_are(&cluster, &[]).await?;
    status_has(&cluster, json!({ "replicas": 0 })).await?;
    Ok(())
}

async fn rolls(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let strategy =
        |partition: i32| json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": partition } });
    cluster.create(set(&json!({ "replicas": 2, "updateStrategy": strategy(1) }))).await?;
    for name in ["db-0", "db-1"] {
        ready(&cluster, name).await?;
    }
    let up = status_has(&cluster, json!({ "readyReplicas": 2, "currentReplicas": 2 })).await?;
    let first = up.status.and_then(|status| status.current_revision).context("it has a revision")?;

    cluster.patch::<StatefulSet>("db", json!({ "spec": { "template": image("2") } })).await?;
    let updated = |pod: &Pod| image_of(pod) == Some("db:2");
    cluster.eventually::<Pod>("db-1").is("is of the new image", updated).await?;
    ready(&cluster, "db-1").await?;
    let counts = json!({
        "readyReplicas": 2, "updatedReplicas": 1, "currentReplicas": 1, "currentRevision": first,
    });
    status_has(&cluster, counts).await?;
    ensure!(!updated(&cluster.get::<Pod>("db-0").await?), "below the partition nothing changes");

    cluster.patch::<StatefulSet>("db", json!({ "spec": { "updateStrategy": strategy(0) } })).await?;
    cluster.eventually::<Pod>("db-0").is("is of the new image", updated).await?;
    ready(&cluster, "db-0").await?;
    let done = |set: &StatefulSet| {
        let status = set.status.as_ref();
        status.is_some_and(|status| {
            status.current_revision == status.update_revision
                && status.current_revision.as_ref() != Some(&first)
                && status.updated_replicas == Some(2)
        })
    };
    cluster.eventually::<StatefulSet>("db").is("is wholly of the new revision", done).await?;

    // Back again: the first revision becomes the newest.
    cluster.patch::<StatefulSet>("db", json!({ "spec": { "template": image("1") } })).await?;
    cluster.eventually::<ControllerRevision>(&first).has(json!({ "revision": 3 })).await?;
    let revisions = cluster.list::<ControllerRevision>().await?;
    ensure!(revisions.len() == 2, "no third one is made: {revisions:?}");
    let back = |pod: &Pod| image_of(pod) == Some("db:1");
    cluster.eventually::<Pod>("db-1").is("is of the old image", back).await?;

    // Of what nobody uses, none is kept.
    ready(&cluster, "db-1").await?;
    cluster.eventually::<Pod>("db-0").is("is of the old image", back).await?;
    ready(&cluster, "db-0").await?;
    cluster.patch::<StatefulSet>("db", json!({ "spec": { "revisionHistoryLimit": 0 } })).await?;
    let one = |revisions: &Vec<ControllerRevision>| revisions.len() == 1;
    cluster.until("one revision is left", || cluster.list::<ControllerRevision>(), one).await?;
    Ok(())
}

fn image(tag: &str) -> Value {
    json!({ "spec": { "containers": [{ "name": "app", "image": format!("db:{tag}") }] } })
}

fn image_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}

async fn on_delete(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(set(&json!({ "replicas": 1, "updateStrategy": { "type": "OnDelete" } }))).await?;
    let old = ready(&cluster, "db-0").await?;
    // By then the status says of which revision it is.
    status_has(&cluster, json!({ "readyReplicas": 1 })).await?;
    cluster.patch::<StatefulSet>("db", json!({ "spec": { "template": image("2") } })).await?;
    let told = |set: &StatefulSet| {
        set.status.as_ref().is_some_and(|status| {
            status.current_revision != status.update_revision && status.observed_generation == Some(2)
        })
    };
    cluster.eventually::<StatefulSet>("db").is("knows of the update", told).await?;
    let still = cluster.get::<Pod>("db-0").await?;
    ensure!(still.metadata.uid == old.metadata.uid, "it is still the old one");
    cluster.delete::<Pod>("db-0").await?;
    let updated = |pod: &Pod| image_of(pod) == Some("db:2");
    cluster.eventually::<Pod>("db-0").is("is of the new image", updated).await?;
    Ok(())
}

async fn replaces(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(set(&json!({ "replicas": 2 }))).await?;
    let first = ready(&cluster, "db-0").await?;
    ready(&cluster, "db-1").await?;
    status_has(&cluster, json!({ "readyReplicas": 2 })).await?;
    ended(&cluster, "db-0", 1).await?;
    let another = |pod: &Pod| pod.metadata.uid != first.metadata.uid;
    cluster.eventually::<Pod>("db-0").is("is another one", another).await?;
    ready(&cluster, "db-0").await?;
    status_has(&cluster, json!({ "readyReplicas": 2 })).await?;

    let name = "statefulset.kubernetes.io/pod-name";
    cluster.patch::<Pod>("db-1", json!({ "metadata": { "labels": { name: null } } })).await?;
    let mended = json!({ "metadata": { "labels": { name: "db-1" } } });
    cluster.eventually::<Pod>("db-1").has(mended).await?;
    Ok(())
}

async fn available(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    // On the reference the time really passes.
    let seconds = if cluster.embedded().is_some() { 600 } else { 4 };
    cluster.create(set(&json!({ "replicas": 2, "minReadySeconds": seconds }))).await?;
    ready(&cluster, "db-0").await?;
    status_has(&cluster, json!({ "readyReplicas": 1, "availableReplicas": 0 })).await?;
    pods_are(&cluster, &["db-0"]).await?;
    cluster.advance(Duration::from_secs(seconds)).await;
    status_has(&cluster, json!({ "availableReplicas": 1 })).await?;
    pods_are(&cluster, &["db-0", "db-1"]).await
}

async fn claims(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let claim = json!({
        "metadata": { "name": "data", "labels": { "kind": "data" } },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let fields = json!({
        "replicas": 2,
        "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Retain", "whenDeleted": "Delete" },
    });
    let made = cluster.create(set(&fields)).await?;
    let pod = ready(&cluster, "db-0").await?;
    ready(&cluster, "db-1").await?;
    let volumes = pod.spec.and_then(|spec| spec.volumes).unwrap_or_default();
    let named = volumes.iter().find(|volume| volume.name == "data");
    let source = named.and_then(|volume| volume.persistent_volume_claim.as_ref());
    ensure!(source.is_some_and(|claim| claim.claim_name == "data-db-0"), "{volumes:?}");
    let owner = json!({ "metadata": {
        "labels": { "app": "db", "kind": "data" },
        "ownerReferences": [{ "kind": "StatefulSet", "name": "db", "uid": made.metadata.uid, "controller": true }],
    } });
    for name in ["data-db-0", "data-db-1"] {
        cluster.eventually::<PersistentVolumeClaim>(name).has(owner.clone()).await?;
    }
    let told = cluster.events::<StatefulSet>("db").await?;
    let wanted = "SuccessfulCreate: Create Claim data-db-0 Pod db-0 in StatefulSet db success";
    ensure!(told.iter().any(|one| one == wanted), "{told:?}");

    // Retained when scaled: it is there for the next.
    cluster.patch::<StatefulSet>("db", json!({ "spec": { "replicas": 1 } })).await?;
    pods_are(&cluster, &["db-0"]).await?;
    cluster.get::<PersistentVolumeClaim>("data-db-1").await?;

    // Retained when deleted: nobody's.
    let retain = json!({ "spec": { "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain" } } });
    cluster.patch::<StatefulSet>("db", retain).await?;
    let nobodys = |claim: &PersistentVolumeClaim| claim.metadata.owner_references.is_none();
    cluster.eventually::<PersistentVolumeClaim>("data-db-0").is("is nobody's", nobodys).await?;

    // Deleted when scaled: it goes with the pod.
    let delete = json!({ "spec": { "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Delete" }, "replicas": 0 } });
    cluster.patch::<StatefulSet>("db", delete).await?;
    pods_are(&cluster, &[]).await?;
    let look = || cluster.find::<PersistentVolumeClaim>("data-db-0");
    let goes = |claim: &Option<PersistentVolumeClaim>| match claim {
        None => true,
        Some(claim) => claim.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "Pod"),
    };
    cluster.until("the claim goes with its pod", look, goes).await?;
    Ok(())
}

async fn adopts(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(set(&json!({ "replicas": 1 }))).await?;
    let pod = ready(&cluster, "db-0").await?;
    status_has(&cluster, json!({ "readyReplicas": 1 })).await?;
    let orphaned = json!({ "metadata": { "ownerReferences": null } });
    cluster.patch::<Pod>("db-0", orphaned).await?;
    let owned = |pod: &Pod| pod.metadata.owner_references.iter().flatten().any(|owner| owner.name == "db");
    let again = cluster.eventually::<Pod>("db-0").is("is owned again", owned).await?;
    ensure!(again.metadata.uid == pod.metadata.uid, "it is the same pod");
    Ok(())
}
