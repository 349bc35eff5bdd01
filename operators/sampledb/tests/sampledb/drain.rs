//! A primary leaves a node that is cordoned: the operator as it runs, which may do what its generated role says, and agents
//! that report what the test says.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use sampledb_operator::api::v1alpha1::{Role, SampleDB, SampleDBInstance, SampleDBInstanceStatus};
use sampledb_operator::controller::failover::CONDITION;
use sampledb_operator::leadership::{Holder, Leadership};
use serde_json::{Value, json};
use windlass_testing::{TestCluster, object};

fn labelled(mut fields: Value) -> Value {
    fields["metadata"] = json!({"labels": {"db.windlass.dev/database": "db"}});
    fields
}

/// Three instances on nodes of these names, of which the first is primary.
async fn start(nodes: [&str; 3]) -> anyhow::Result<TestCluster> {
    let cluster = TestCluster::api_only();
    cluster.install(sampledb_operator::crds()).await?;
    // Without controllers nobody makes it, and pods need one.
    cluster.create::<ServiceAccount>(object("default", json!({}))).await?;
    for name in ["a", "b", "c"] {
        cluster.create::<Node>(object(name, json!({}))).await?;
    }
    let spec = json!({"version": "15", "instances": 3, "storage": {"size": "1Gi"}});
    let database = cluster.create(SampleDB::new("db", serde_json::from_value(spec)?)).await?;
    for (number, node) in nodes.iter().enumerate() {
        let name = format!("db-{number}");
        let containers = json!([{"name": "postgres", "image": "postgres:15"}]);
        let pod = labelled(json!({"spec": {"nodeName": node, "containers": containers}}));
        let pod = cluster.create::<Pod>(object(&name, pod)).await?;
        let instance = labelled(json!({"spec": {"database": "db", "instances": 3}}));
        cluster.create::<SampleDBInstance>(object(&name, instance)).await?;
        let status = SampleDBInstanceStatus {
            role: if number == 0 { Role::Primary } else { Role::Replica },
            ready: true,
            pod_uid: pod.metadata.uid,
            clone: Some(format!("clone-{number}")),
            ..Default::default()
        };
        cluster.patch_status::<SampleDBInstance>(&name, status).await?;
    }
    let mut leadership = Leadership::first("db-0", 1);
    leadership.holder = Some(Holder {
        instance: "db-0".to_owned(),
        clone: Some("clone-0".to_owned()),
        run: Some("run".to_owned()),
        pod_uid: None,
    });
    leadership.system_identifier = Some("7".to_owned());
    leadership.synchronous.clones = ["clone-1".to_owned(), "clone-2".to_owned()].into();
    let owner = json!({
        "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDB", "name": "db", "uid": database.metadata.uid,
        "controller": true,
    });
    let mut lease: Lease = object(
        "db",
        json!({
            "metadata": {"ownerReferences": [owner], "labels": {"windlass.dev/controller": "sampledb-failover"}},
            "spec": {"leaseDurationSeconds": 10},
        }),
    );
    leadership.write(&mut lease);
    cluster.create(lease).await?;
    Ok(cluster)
}

async fn cordon(cluster: &TestCluster, node: &str) -> anyhow::Result<()> {
    cluster.patch::<Node>(node, json!({"spec": {"unschedulable": true}})).await.map(drop)
}

#[tokio::test]
async fn a_primary_on_a_cordoned_node_hands_over_to_a_replica_elsewhere() -> anyhow::Result<()> {
    // The first replica is on the same node.
    let cluster = start(["a", "a", "b"]).await?;
    let _operator = cluster.run(sampledb_operator::failovers());
    cluster.eventually::<SampleDB>("db").has_condition(CONDITION, true).await?;
    cordon(&cluster, "a").await?;
    let lease = cluster.eventually::<Lease>("db");
    let lease = lease
        .is("tells the primary to hand over", |lease| Leadership::of(lease).unwrap().switchover_to.is_some())
        .await?;
    assert_eq!(Leadership::of(&lease)?.switchover_to.as_deref(), Some("db-2"));
    cluster.eventually::<SampleDB>("db").has_event("LeavesCordonedNode").await?;
    Ok(())
}

#[tokio::test]
async fn a_primary_stays_where_no_other_node_has_a_replica() -> anyhow::Result<()> {
    let cluster = start(["a", "a", "b"]).await?;
    let _operator = cluster.run(sampledb_operator::failovers());
    cordon(&cluster, "b").await?;
    cordon(&cluster, "a").await?;
    cluster.eventually::<SampleDB>("db").has_condition_because(CONDITION, "StaysOnCordonedNode").await?;
    assert_eq!(Leadership::of(&cluster.get::<Lease>("db").await?)?.switchover_to, None);
    // As soon as one could take over, it does.
    cluster.patch::<Node>("b", json!({"spec": {"unschedulable": null}})).await?;
    let lease = cluster.eventually::<Lease>("db");
    lease
        .is("tells the primary to hand over", |lease| {
            Leadership::of(lease).unwrap().switchover_to.as_deref() == Some("db-2")
        })
        .await?;
    Ok(())
}
