//! PersistentVolumes and PersistentVolumeClaims: binding, protection, provisioning and ephemeral volumes.

use super::manual_pods::spec;
use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount};
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttributesClass};
use serde_json::{Value, json};
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test(
            "a claim is bound to the smallest matching volume, and an unbound volume is Available",
            smallest,
        )
        .test("a claim and a volume that refer to each other are bound", by_name)
        .test("a pending claim has an event that says what it waits for", waits)
        .test("a volume without its claim is Released, and a claim without its volume is Lost", released)
        .test("claims in use by a pod and bound volumes are protected from deletion", protected)
        .test("a VolumeAttributesClass is protected while a claim or a volume refers to it", attributes)
        .test("a claim of the default class is provisioned on the node of its pod", provisioned)
        .test(
            "with WaitForFirstConsumer the first pod of a claim is scheduled, gets its volume, and runs",
            first_consumer,
        )
        .test("an ephemeral volume has a claim that its pod owns, and is deleted with it", ephemeral)
}

/// A name that no other test has: volumes are in no namespace.
fn unique(cluster: &TestCluster, name: &str) -> String {
    format!("{}-{name}", cluster.namespace())
}

async fn volume(cluster: &TestCluster, name: &str, size: &str, more: &Value) -> anyhow::Result<String> {
    let name = unique(cluster, name);
    let mut spec = json!({
        "capacity": { "storage": size },
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": unique(cluster, "class"),
        "hostPath": { "path": "/nowhere" },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let volume: PersistentVolume = object(name.as_str(), json!({ "spec": spec }));
    cluster.create(volume).await?;
    Ok(name)
}

fn claim(cluster: &TestCluster, name: &str, size: &str, more: &Value) -> PersistentVolumeClaim {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": unique(cluster, "class"),
        "resources": { "requests": { "storage": size } },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    object(name, json!({ "spec": spec }))
}

async fn phase(cluster: &TestCluster, volume: &str, phase: &str) -> anyhow::Result<PersistentVolume> {
    cluster.eventually::<PersistentVolume>(volume).has(json!({ "status": { "phase": phase } })).await
}

async fn bound(cluster: &TestCluster, claim: &str, volume: &str) -> anyhow::Result<PersistentVolumeClaim> {
    let wanted = json!({ "spec": { "volumeName": volume }, "status": { "phase": "Bound" } });
    let claim = cluster.eventually::<PersistentVolumeClaim>(claim).has(wanted).await?;
    let of_it = json!({
        "spec": { "claimRef": { "name": claim.metadata.name, "uid": claim.metadata.uid } },
        "status": { "phase": "Bound" },
    });
    cluster.eventually::<PersistentVolume>(volume).has(of_it).await?;
    Ok(claim)
}

async fn smallest(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let small = volume(&cluster, "small", "1Gi", &json!({})).await?;
    let large = volume(&cluster, "large", "9Gi", &json!({})).await?;
    let medium = volume(&cluster, "medium", "5Gi", &json!({})).await?;
    for name in [&small, &large, &medium] {
        phase(&cluster, name, "Available").await?;
    }
    cluster.create(claim(&cluster, "data", "3Gi", &json!({}))).await?;
    let claim = bound(&cluster, "data", &medium).await?;
    let annotations = claim.metadata.annotations.unwrap_or_default();
    ensure!(annotations["pv.kubernetes.io/bind-completed"] == "yes", "{annotations:?}");
    ensure!(annotations["pv.kubernetes.io/bound-by-controller"] == "yes", "{annotations:?}");
    let status = claim.status.context("it has a status")?;
    ensure!(status.capacity.is_some_and(|capacity| capacity["storage"].0 == "5Gi"));
    ensure!(status.access_modes == Some(vec!["ReadWriteOnce".to_owned()]));
    phase(&cluster, &small, "Available").await?;
    phase(&cluster, &large, "Available").await?;
    Ok(())
}

async fn by_name(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let asked = volume(&cluster, "asked", "9Gi", &json!({})).await?;
    let aside = json!({ "claimRef": { "name": "second", "namespace": cluster.namespace() } });
    let aside = volume(&cluster, "aside", "9Gi", &aside).await?;
    volume(&cluster, "tempting", "1Gi", &json!({})).await?;
    cluster.create(claim(&cluster, "first", "1Gi", &json!({ "volumeName": asked }))).await?;
    bound(&cluster, "first", &asked).await?;
    cluster.create(claim(&cluster, "second", "1Gi", &json!({}))).await?;
    bound(&cluster, "second", &aside).await?;
    let small = volume(&cluster, "too-small", "1Gi", &json!({})).await?;
    cluster.create(claim(&cluster, "third", "2Gi", &json!({ "volumeName": small }))).await?;
    let told = cluster.eventually::<PersistentVolumeClaim>("third").has_event("VolumeMismatch").await?;
    ensure!(
        told == format!("Cannot bind to requested volume {small:?}: requested PV is too small"),
        "{told}"
    );
    Ok(())
}

async fn waits(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let tells = |claim: &'static str, reason: &'static str| {
        let cluster = cluster.clone();
        async move { cluster.eventually::<PersistentVolumeClaim>(claim).has_event(reason).await }
    };
    cluster.create(claim(&cluster, "classless", "1Gi", &json!({ "storageClassName": "" }))).await?;
    let told = tells("classless", "FailedBinding").await?;
    ensure!(told == "no persistent volumes available for this claim and no storage class is set", "{told}");
    cluster.create(claim(&cluster, "unknown", "1Gi", &json!({}))).await?;
    let told = tells("unknown", "ProvisioningFailed").await?;
    ensure!(
        told == format!("storageclass.storage.k8s.io {:?} not found", unique(&cluster, "class")),
        "{told}"
    );
    let name = unique(&cluster, "later");
    let later = json!({ "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer" });
    cluster.create(object::<StorageClass>(name.as_str(), later)).await?;
    cluster.create(claim(&cluster, "later", "1Gi", &json!({ "storageClassName": name }))).await?;
    let told = tells("later", "WaitForFirstConsumer").await?;
    ensure!(told == "waiting for first consumer to be created before binding", "{told}");
    let pending = json!({ "status": { "phase": "Pending" } });
    cluster.eventually::<PersistentVolumeClaim>("later").has(pending).await?;
    Ok(())
}

async fn released(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let kept = volume(&cluster, "kept", "1Gi", &json!({})).await?;
    cluster.create(claim(&cluster, "data", "1Gi", &json!({}))).await?;
    bound(&cluster, "data", &kept).await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.eventually::<PersistentVolumeClaim>("data").is_deleted().await?;
    phase(&cluster, &kept, "Released").await?;
    // Another claim of the name is another claim.
    cluster.create(claim(&cluster, "data", "1Gi", &json!({}))).await?;
    let told = cluster.eventually::<PersistentVolumeClaim>("data").has_event("ProvisioningFailed").await?;
    ensure!(told.contains("not found"), "{told}");
    // Until somebody says that it may be used again.
    cluster.patch::<PersistentVolume>(&kept, json!({ "spec": { "claimRef": null } })).await?;
    bound(&cluster, "data", &kept).await?;
    let volume: kube::Api<PersistentVolume> = kube::Api::all(cluster.client());
    volume.delete(&kept, &kube::api::DeleteParams::default()).await?;
    // It stays while the claim has it; by force it goes, and the claim is lost.
    let force = json!({ "metadata": { "finalizers": null } });
    cluster.patch::<PersistentVolume>(&kept, force).await?;
    cluster.eventually::<PersistentVolumeClaim>("data").has(json!({ "status": { "phase": "Lost" } })).await?;
    cluster.eventually::<PersistentVolumeClaim>("data").has_event("ClaimLost").await?;
    Ok(())
}

async fn protected(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.eventually::<ServiceAccount>("default").exists().await?;
    let used = volume(&cluster, "used", "1Gi", &json!({})).await?;
    cluster.create(claim(&cluster, "data", "1Gi", &json!({}))).await?;
    bound(&cluster, "data", &used).await?;
    let mut pod = spec();
    // On a node that nobody keeps: the pod is just there.
    pod["nodeName"] = "elsewhere".into();
    pod["volumes"] = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    let pod: Pod = object("user", json!({ "spec": pod }));
    cluster.create(pod).await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.delete::<PersistentVolume>(&used).await?;
    // What is made later is seen to, so these were looked at and stay.
    volume(&cluster, "later", "1Gi", &json!({})).await?;
    cluster.create(claim(&cluster, "later", "1Gi", &json!({}))).await?;
    let done = json!({ "status": { "phase": "Bound" } });
    cluster.eventually::<PersistentVolumeClaim>("later").has(done).await?;
    let stays = cluster.get::<PersistentVolumeClaim>("data").await?;
    ensure!(stays.metadata.deletion_timestamp.is_some());
    cluster.get::<PersistentVolume>(&used).await?;
    let pods: kube::Api<Pod> = kube::Api::namespaced(cluster.client(), cluster.namespace());
    pods.delete("user", &kube::api::DeleteParams::default().grace_period(0)).await?;
    cluster.eventually::<PersistentVolumeClaim>("data").is_deleted().await?;
    cluster.eventually::<PersistentVolume>(&used).is_deleted().await
}

async fn attributes(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let [claimed, had, unused] = ["claimed", "had", "unused"].map(|name| unique(&cluster, name));
    for name in [&claimed, &had, &unused] {
        let class = json!({ "driverName": "csi.example.com", "parameters": { "tier": "usual" } });
        cluster.create(object::<VolumeAttributesClass>(name, class)).await?;
    }
    let names = json!({ "volumeAttributesClassName": claimed });
    cluster.create(claim(&cluster, "data", "1Gi", &names)).await?;
    let disk = json!({ "driver": "csi.example.com", "volumeHandle": "one" });
    let has = json!({ "volumeAttributesClassName": had, "hostPath": null, "csi": disk });
    let has = volume(&cluster, "disk", "9Gi", &has).await?;
    for name in [&claimed, &had, &unused] {
        cluster.delete::<VolumeAttributesClass>(name).await?;
    }
    cluster.eventually::<VolumeAttributesClass>(&unused).is_deleted().await?;
    cluster.get::<VolumeAttributesClass>(&claimed).await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.eventually::<VolumeAttributesClass>(&claimed).is_deleted().await?;
    cluster.get::<VolumeAttributesClass>(&had).await?;
    cluster.delete::<PersistentVolume>(&has).await?;
    cluster.eventually::<VolumeAttributesClass>(&had).is_deleted().await
}

async fn provisioned(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    if cluster.embedded().is_none() {
        // The reference makes no volumes on demand by itself.
        return Ok(());
    }
    cluster.eventually::<ServiceAccount>("default").exists().await?;
    let class = cluster.eventually::<StorageClass>("standard").exists().await?;
    ensure!(class.provisioner == "windlass.dev/local", "{class:?}");
    // The class is there by default.
    cluster.create(claim(&cluster, "data", "1Gi", &json!({ "storageClassName": null }))).await?;
    cluster.eventually::<PersistentVolumeClaim>("data").has_event("WaitForFirstConsumer").await?;
    let selected = json!({ "metadata": { "annotations": { "volume.kubernetes.io/selected-node": "n1" } } });
    let claim = cluster.patch::<PersistentVolumeClaim>("data", selected).await?;
    let name = format!("pvc-{}", claim.metadata.uid.clone().unwrap_or_default());
    bound(&cluster, "data", &name).await?;
    cluster.eventually::<PersistentVolumeClaim>("data").has_event("ProvisioningSucceeded").await?;
    let made = cluster.get::<PersistentVolume>(&name).await?;
    let spec = made.spec.context("it has a spec")?;
    ensure!(spec.host_path.is_some_and(|host| host.path.starts_with("/var/lib/windlass/volumes/")));
    ensure!(spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete"));
    let affinity = serde_json::to_value(spec.node_affinity)?;
    let values = affinity.pointer("/required/nodeSelectorTerms/0/matchExpressions/0/values");
    ensure!(values == Some(&json!(["n1"])), "{affinity}");

    // It grows, and goes with its claim.
    let larger = json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } });
    cluster.patch::<PersistentVolumeClaim>("data", larger).await?;
    let grown = json!({ "status": { "capacity": { "storage": "2Gi" } } });
    cluster.eventually::<PersistentVolumeClaim>("data").has(grown).await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.eventually::<PersistentVolumeClaim>("data").is_deleted().await?;
    cluster.eventually::<PersistentVolume>(&name).is_deleted().await
}

/// A pod of the simulated node with this volume.
fn mounting(name: &str, volume: &Value) -> Pod {
    let container = json!({
        "name": "app", "image": "nginx", "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
    });
    let mut whole = json!({ "name": "data" });
    for (field, value) in volume.as_object().into_iter().flatten() {
        whole[field] = value.clone();
    }
    let spec = json!({ "terminationGracePeriodSeconds": 0, "containers": [container], "volumes": [whole] });
    object(name, json!({ "spec": spec }))
}

async fn first_consumer(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    if cluster.embedded().is_none() {
        // The reference makes no volumes on demand by itself.
        return Ok(());
    }
    cluster.eventually::<StorageClass>("standard").exists().await?;
    cluster.create(claim(&cluster, "data", "1Gi", &json!({ "storageClassName": null }))).await?;
    cluster.eventually::<PersistentVolumeClaim>("data").has_event("WaitForFirstConsumer").await?;
    cluster.create(mounting("user", &json!({ "persistentVolumeClaim": { "claimName": "data" } }))).await?;
    let running = cluster.eventually::<Pod>("user").has_condition("Ready", true).await?;
    let node = running.spec.and_then(|spec| spec.node_name).context("it has a node")?;
    let bound = cluster.get::<PersistentVolumeClaim>("data").await?;
    ensure!(bound.status.and_then(|status| status.phase).as_deref() == Some("Bound"), "before the pod ran");
    let volume = bound.spec.and_then(|spec| spec.volume_name).context("it has a volume")?;
    let made = cluster.get::<PersistentVolume>(&volume).await?;
    let affinity = serde_json::to_value(made.spec.and_then(|spec| spec.node_affinity))?;
    let values = affinity.pointer("/required/nodeSelectorTerms/0/matchExpressions/0/values");
    ensure!(values == Some(&json!([node])), "the volume is where the pod is: {affinity}");
    // Another pod goes where the volume is; the claim stays while one of them uses it.
    cluster.create(mounting("other", &json!({ "persistentVolumeClaim": { "claimName": "data" } }))).await?;
    let other = cluster.eventually::<Pod>("other").has_condition("Ready", true).await?;
    ensure!(other.spec.and_then(|spec| spec.node_name) == Some(node));
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.delete::<Pod>("user").await?;
    cluster.eventually::<Pod>("user").is_deleted().await?;
    ensure!(cluster.find::<PersistentVolumeClaim>("data").await?.is_some(), "it is in use");
    cluster.delete::<Pod>("other").await?;
    cluster.eventually::<PersistentVolumeClaim>("data").is_deleted().await?;
    cluster.eventually::<PersistentVolume>(&volume).is_deleted().await
}

async fn ephemeral(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let class = match cluster.embedded() {
        // Made on demand there, by hand on the reference.
        Some(_) => {
            cluster.eventually::<StorageClass>("standard").exists().await?;
            Value::Null
        }
        None => {
            volume(&cluster, "static", "1Gi", &json!({})).await?;
            unique(&cluster, "class").into()
        }
    };
    let template = json!({
        "metadata": { "labels": { "of": "scratch" } },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let scratch = json!({ "ephemeral": { "volumeClaimTemplate": template } });
    let pod = cluster.create(mounting("web", &scratch)).await?;
    let made = cluster.eventually::<PersistentVolumeClaim>("web-data").exists().await?;
    let owner = made.metadata.owner_references.unwrap_or_default().pop().context("the claim has an owner")?;
    ensure!((owner.kind.as_str(), owner.controller) == ("Pod", Some(true)), "{owner:?}");
    ensure!(Some(owner.uid) == pod.metadata.uid && owner.block_owner_deletion == Some(true));
    ensure!(made.metadata.labels.unwrap_or_default().get("of").map(String::as_str) == Some("scratch"));
    cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    let bound = json!({ "status": { "phase": "Bound" } });
    cluster.eventually::<PersistentVolumeClaim>("web-data").has(bound).await?;
    cluster.delete::<Pod>("web").await?;
    cluster.eventually::<PersistentVolumeClaim>("web-data").is_deleted().await?;

    // A claim of that name that is somebody else's is not taken.
    cluster.create(claim(&cluster, "late-data", "1Gi", &json!({}))).await?;
    cluster.create(mounting("late", &scratch)).await?;
    let told = cluster.eventually::<Pod>("late").has_event("FailedBinding").await?;
    let here = cluster.namespace();
    let why = format!("PVC {here}/late-data was not created for pod {here}/late (pod is not owner)");
    ensure!(told == format!("ephemeral volume data: {why}"), "{told}");
    cluster.eventually::<Pod>("late").has_condition_because("PodScheduled", "Unschedulable").await?;
    cluster.delete::<PersistentVolumeClaim>("late-data").await?;
    let own = |claim: &PersistentVolumeClaim| claim.metadata.owner_references.is_some();
    cluster.eventually::<PersistentVolumeClaim>("late-data").is("made for the pod", own).await?;
    Ok(())
}
