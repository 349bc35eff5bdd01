//! Volumes grow, on the embedded cluster, by an operator that may do what its generated role says.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use sampledb_operator::api::v1alpha1::{SampleDB, SampleDBInstance};
use sampledb_operator::controller::storage::CONDITION;
use serde_json::json;
use std::time::Duration;
use windlass::Manager;
use windlass_testing::{TestCluster, object};

/// A cluster with the operator and a database of two instances.
async fn start(class: &str) -> anyhow::Result<(TestCluster, windlass_testing::Running)> {
    // Everything of the operator runs, and a busy machine takes its time.
    let cluster = TestCluster::start().timeout(Duration::from_secs(120));
    cluster.install(sampledb_operator::crds()).await?;
    let rigid: StorageClass = object(
        "rigid",
        json!({
            "provisioner": "windlass.dev/local", "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": false,
        }),
    );
    cluster.create(rigid).await?;
    let operator =
        cluster.run(|manager: Manager| sampledb_operator::operator(manager, "sampledb-operator:test"));
    let spec = json!({"version": "15", "instances": 2, "storage": {"size": "1Gi", "class": class}});
    cluster.create(SampleDB::new("db", serde_json::from_value(spec)?)).await?;
    for claim in ["data-db-0", "data-db-1"] {
        cluster.eventually::<PersistentVolumeClaim>(claim).has(json!({"status": {"phase": "Bound"}})).await?;
    }
    cluster.eventually::<SampleDB>("db").has(sizes("1Gi", "1Gi")).await?;
    Ok((cluster, operator))
}

fn sizes(requested: &str, capacity: &str) -> serde_json::Value {
    json!({"status": {"storage": {"requested": requested, "capacity": capacity}}})
}

fn size(size: &str) -> serde_json::Value {
    json!({"spec": {"storage": {"size": size}}})
}

async fn pods(cluster: &TestCluster) -> anyhow::Result<Vec<Option<String>>> {
    Ok(cluster.list::<Pod>().await?.into_iter().map(|pod| pod.metadata.uid).collect())
}

/// Waits until the StatefulSet's claim template has a size.
async fn template_has(cluster: &TestCluster, size: &str) -> anyhow::Result<StatefulSet> {
    let sets = cluster.eventually::<StatefulSet>("db");
    sets.is("has its claim template", |set| {
        set.metadata.deletion_timestamp.is_none()
            && json!(set)["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"]
                == size
    })
    .await
}

#[tokio::test]
async fn volumes_grow_and_pods_stay() -> anyhow::Result<()> {
    let (cluster, _operator) = start("standard").await?;
    let before = pods(&cluster).await?;
    assert_eq!(before.len(), 2);
    cluster.patch::<SampleDB>("db", size("2Gi")).await?;
    cluster.eventually::<SampleDB>("db").has(sizes("2Gi", "2Gi")).await?;
    cluster.eventually::<SampleDB>("db").has_condition(CONDITION, true).await?;
    for claim in ["data-db-0", "data-db-1"] {
        let grown = json!({"status": {"capacity": {"storage": "2Gi"}}});
        cluster.eventually::<PersistentVolumeClaim>(claim).has(grown).await?;
    }
    let set = template_has(&cluster, "2Gi").await?;
    let adopted =
        |pod: &Pod| pod.owner_references().iter().any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref());
    cluster
        .until("the new StatefulSet has the pods", || cluster.list::<Pod>(), |pods| pods.iter().all(adopted))
        .await?;
    assert_eq!(pods(&cluster).await?, before);
    // An instance that comes later gets a volume of the new size.
    cluster.patch::<SampleDB>("db", json!({"spec": {"instances": 3}})).await?;
    let whole =
        json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}, "status": {"phase": "Bound"}});
    cluster.eventually::<PersistentVolumeClaim>("data-db-2").has(whole).await?;
    let refused = cluster.patch::<SampleDB>("db", size("1Gi")).await.unwrap_err();
    let refused = format!("{refused:#}");
    assert!(refused.contains("spec.storage.size") && refused.contains("cannot be decreased"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_class_without_expansion_is_told_and_the_size_can_be_set_back() -> anyhow::Result<()> {
    let (cluster, _operator) = start("rigid").await?;
    cluster.patch::<SampleDB>("db", size("2Gi")).await?;
    let refused =
        cluster.eventually::<SampleDB>("db").has_condition_because(CONDITION, "RefusedByServer").await?;
    let conditions = refused.status.unwrap().conditions;
    let condition = conditions.iter().find(|one| one.type_ == CONDITION).unwrap();
    assert!(condition.message.contains("must support resize"), "{}", condition.message);
    // What else there is to do is done meanwhile.
    cluster.patch::<SampleDB>("db", json!({"spec": {"parameters": {"work_mem": "8MB"}}})).await?;
    let told = json!({"spec": {"parameters": {"work_mem": "8MB"}}});
    cluster.eventually::<SampleDBInstance>("db-1").has(told).await?;

    assert!(cluster.patch::<SampleDB>("db", size("512Mi")).await.is_err());
    cluster.patch::<SampleDB>("db", size("1Gi")).await?;
    cluster.eventually::<SampleDB>("db").has_condition(CONDITION, true).await?;
    template_has(&cluster, "1Gi").await?;
    Ok(())
}
