//! The crash test of the cluster's own controllers: crashed before and after each of their writes, with requests and responses
//! lost and stale reads, they end in the state of an undisturbed cluster. The scheduler and the node keep running.

use anyhow::ensure;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttributesClass};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use windlass::Manager;
use windlass_cluster::Settings;
use windlass_harness::{Suite, Target};
use windlass_testing::campaign::{Campaign, Fault};
use windlass_testing::faulty_client::ClientFault;
use windlass_testing::{TestCluster, config_map, named, object};
use windlass_tests::targets::embedded_in_process;

fn main() -> ExitCode {
    Suite::on([embedded_in_process()])
        .limit(if asked().is_some() { HOURS } else { Duration::from_secs(900) })
        .test("every fault in the life of a deployment", |_: Target| each(faults(), deployment))
        .test("every fault in the life of a stateful set with claims", |_: Target| {
            each(faults(), stateful_set)
        })
        .test("every fault in the life of a job", |_: Target| each(but_the_past(), job))
        .test("every fault in the life of a daemon set behind a service", |_: Target| {
            each(faults(), daemon_set)
        })
        .test("every fault in the life of a namespace", |_: Target| each(faults(), namespace))
        .test("every fault in the life of classes, claims and volumes in use", |_: Target| {
            each(faults(), in_use)
        })
        .run()
}

/// Only a campaign that hangs takes so long.
const HOURS: Duration = Duration::from_secs(4 * 3600);

/// How long a life may take to come to its end, on a machine that has other things to do as well.
const PATIENCE: Duration = Duration::from_secs(120);

fn controllers(manager: Manager) -> Manager {
    windlass_cluster::controllers(manager, &Settings::default())
}

/// A job's pods have generated names: shown the past, it makes one that it made already, as the real one would.
fn but_the_past() -> Vec<Fault> {
    faults().into_iter().filter(|fault| *fault != Fault::PastAfterCrash).collect()
}

async fn each<L, F>(faults: Vec<Fault>, life: L) -> anyhow::Result<()>
where
    L: Fn(TestCluster) -> F + Send + Sync + 'static,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let report = Campaign::new(controllers, life)
        .faults(faults)
        .on(|| async { Ok(TestCluster::without_controllers()) })
        .cluster_admin()
        .within(PATIENCE)
        .run()
        .await?;
    ensure!(report.writes > 5, "they write more than that");
    println!("{report}");
    Ok(())
}

fn template(app: &str, image: &str) -> serde_json::Value {
    json!({
        "metadata": { "labels": { "app": app } },
        "spec": { "terminationGracePeriodSeconds": 0, "containers": [{ "name": "main", "image": image }] },
    })
}

async fn no_pods(cluster: &TestCluster) -> anyhow::Result<()> {
    cluster.until("there are no pods", || cluster.list::<Pod>(), Vec::is_empty).await.map(drop)
}

async fn deployment(cluster: TestCluster) -> anyhow::Result<()> {
    let spec = json!({ "spec": {
        "replicas": 2,
        "selector": { "matchLabels": { "app": "web" } },
        "template": template("web", "web:1"),
    } });
    let settled = |replicas: i32| {
        json!({ "status": {
            "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
        } })
    };
    cluster.create(object::<Deployment>("web", spec)).await?;
    cluster.eventually::<Deployment>("web").has(settled(2)).await?;
    let changed = json!({ "spec": { "replicas": 3, "template": template("web", "web:2") } });
    cluster.patch::<Deployment>("web", changed).await?;
    cluster.eventually::<Deployment>("web").has(settled(3)).await?;
    cluster.delete::<Deployment>("web").await?;
    no_pods(&cluster).await
}

async fn stateful_set(cluster: TestCluster) -> anyhow::Result<()> {
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    let spec = json!({ "spec": {
        "replicas": 2,
        "serviceName": "db",
        "selector": { "matchLabels": { "app": "db" } },
        "template": template("db", "db:1"),
        "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Delete", "whenScaled": "Retain" },
    } });
    let settled = |replicas: i32| json!({ "status": { "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas } });
    // Claims that are made before it is there name no class.
    cluster.eventually::<StorageClass>("standard").exists().await?;
    cluster.create(object::<StatefulSet>("db", spec)).await?;
    cluster.eventually::<StatefulSet>("db").has(settled(2)).await?;
    let changed = json!({ "spec": { "replicas": 1, "template": template("db", "db:2") } });
    cluster.patch::<StatefulSet>("db", changed).await?;
    cluster.eventually::<StatefulSet>("db").has(settled(1)).await?;
    Ok(())
}

/// What is in use is being deleted, and stays: a class that a claim names, and a claim that a pod uses.
async fn in_use(cluster: TestCluster) -> anyhow::Result<()> {
    cluster.eventually::<StorageClass>("standard").exists().await?;
    let class = json!({ "driverName": "volumes.windlass.dev", "parameters": { "speed": "high" } });
    cluster.create(object::<VolumeAttributesClass>("fast", class)).await?;
    let held = json!({ "metadata": { "finalizers": ["kubernetes.io/vac-protection"] } });
    cluster.eventually::<VolumeAttributesClass>("fast").has(held.clone()).await?;
    let claim = json!({ "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } },
        "volumeAttributesClassName": "fast",
    } });
    cluster.create(object::<PersistentVolumeClaim>("data", claim)).await?;
    // Before what watches classes can have heard of the claim, if it is told of claims late.
    cluster.delete::<VolumeAttributesClass>("fast").await?;
    let pod = json!({ "spec": {
        "containers": [{ "name": "main", "image": "db:1" }],
        "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }],
    } });
    cluster.create(object::<Pod>("db", pod)).await?;
    cluster.eventually::<Pod>("db").has(json!({ "status": { "phase": "Running" } })).await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster
        .eventually::<PersistentVolumeClaim>("data")
        .has(json!({ "status": { "phase": "Bound" } }))
        .await?;
    Ok(())
}

async fn job(cluster: TestCluster) -> anyhow::Result<()> {
    let spec = json!({ "spec": {
        "completions": 3,
        "parallelism": 2,
        "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "main", "image": "work:1" }],
        } },
    } });
    cluster.create(object::<Job>("work", spec)).await?;
    cluster.eventually::<Job>("work").has(json!({ "status": { "succeeded": 3 } })).await?;
    cluster.eventually::<Job>("work").has_condition("Complete", true).await?;
    Ok(())
}

async fn daemon_set(cluster: TestCluster) -> anyhow::Result<()> {
    let spec = json!({ "spec": {
        "selector": { "matchLabels": { "app": "agent" } },
        "template": template("agent", "agent:1"),
    } });
    cluster.create(object::<DaemonSet>("agent", spec)).await?;
    let service = json!({ "spec": { "selector": { "app": "agent" }, "ports": [{ "port": 80 }] } });
    cluster.create(object::<Service>("agent", service)).await?;
    cluster.eventually::<DaemonSet>("agent").has(json!({ "status": { "numberReady": 1 } })).await?;
    cluster.delete::<DaemonSet>("agent").await?;
    no_pods(&cluster).await
}

async fn namespace(cluster: TestCluster) -> anyhow::Result<()> {
    cluster.create(named::<Namespace>("shop")).await?;
    let shop = cluster.in_namespace("shop");
    shop.create(config_map("settings")).await?;
    let owner = shop.get::<ConfigMap>("settings").await?;
    let child = json!({ "metadata": { "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "uid": owner.metadata.uid,
    }] } });
    shop.create(object::<ConfigMap>("child", child)).await?;
    shop.delete::<ConfigMap>("settings").await?;
    shop.eventually::<ConfigMap>("child").is_deleted().await?;
    cluster.delete::<Namespace>("shop").await?;
    cluster.eventually::<Namespace>("shop").is_deleted().await?;
    Ok(())
}

/// Two of them tell most; `WINDLASS_EVERY_FAULT` asks for all, which takes minutes, or, as anything but `1`, for those whose
/// names have it in them.
fn asked() -> Option<String> {
    std::env::var("WINDLASS_EVERY_FAULT").ok()
}

fn faults() -> Vec<Fault> {
    match asked() {
        Some(word) => {
            let named = |fault: &Fault| word == "1" || fault.to_string().contains(&word);
            Fault::ALL.into_iter().filter(named).collect()
        }
        None => {
            vec![Fault::Client(ClientFault::KillAfter), Fault::KindLags]
        }
    }
}
