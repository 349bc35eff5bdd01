//! The SampleDB operator with real PostgreSQL servers.

mod backup;
mod bench;
mod commands;
mod deletion;
mod drain;
mod failover;
mod faults;
mod hibernation;
mod place;
mod storage;
mod story;
mod tls;
mod upgrade;
mod versions;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, PostParams};
use nix::sys::signal::{Signal, kill};
use place::{Place, cannot_run_postgres, first_process};
use sampledb_operator::api::v1alpha1::Role;
use serde_json::json;

/// A database with a schema is created, its primary is killed, and its data is there. Tests that run side by side give it other names:
/// its processes are found by them.
async fn is_created_and_fails_over(place: &Place, name: &str) {
    let first = format!("{name}-0");
    let schema: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "schema"}, "data": {"schema.sql": "CREATE TABLE fruits (name text PRIMARY KEY);"},
    }))
    .unwrap();
    place.world.api().create(&PostParams::default(), &schema).await.unwrap();
    place
        .create(name, json!({"instances": 3, "initialSchema": {"name": "schema", "key": "schema.sql"}}))
        .await;
    place.is_ready(name).await;
    assert_eq!(place.primary(name).await.as_deref(), Some(first.as_str()));
    assert_eq!(place.psql(name, "INSERT INTO fruits VALUES ('apple') RETURNING name").await, "apple");

    let began = place.world.clock.moment();
    kill(first_process(&first).unwrap(), Signal::SIGKILL).unwrap();
    place
        .until(name, "another is primary", || async {
            // Its container restarts at once for the first time: if its server is back before another is elected, it is killed
            // again, and the kubelet waits.
            if place.has_restarted(&first).await
                && place.primary(name).await.as_deref() == Some(first.as_str())
            {
                let _ = first_process(&first).map(|process| kill(process, Signal::SIGKILL));
            }
            place.primary(name).await.is_some_and(|primary| primary != first)
        })
        .await;
    println!("failover: {:?}", place.world.clock.moment() - began);
    place.is_ready(name).await;
    println!("all ready again: {:?}", place.world.clock.moment() - began);
    assert_eq!(place.psql(name, "SELECT name FROM fruits").await, "apple");
}

/// Its agents may do there exactly what their Role says.
#[tokio::test]
async fn a_database_fails_over_on_the_reference() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let Some(place) = Place::on_the_reference().await else { return };
    is_created_and_fails_over(&place, "abroad").await;
}

#[tokio::test]
async fn a_database_from_its_creation_through_a_failover() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    is_created_and_fails_over(&place, "example").await;

    // By command, as a plug-in of ours.
    let said = place.sampledb(&["switchover", "example", "--to", "example-0"]).await;
    assert!(said.contains("example-0 is primary"), "{said}");
    place.is_ready("example").await;
    let said = place.sampledb(&["status", "example"]).await;
    assert!(said.contains("Primary:     example-0") && said.contains("1 of 2 replicas"), "{said}");
    assert_eq!(place.psql("example", "SELECT name FROM fruits").await, "apple");

    // What Prometheus is told of a replica.
    let metrics = place.metrics("example-1").await;
    for line in
        ["pg_up 1\n", "pg_replication_is_replica 1\n", "pg_stat_database_xact_commit{datname=\"app\"} "]
    {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let metrics = place.metrics("example-0").await;
    assert!(
        metrics.contains("sync_state=\"quorum\"} ") && metrics.contains("pg_replication_is_replica 0\n"),
        "{metrics}"
    );

    // One parameter is reloaded, and for the other every server restarts; no pod does.
    let pods = place.pod_uids().await;
    let parameters = json!({"work_mem": "7MB", "max_connections": "120"});
    place.change("example", json!({"parameters": parameters})).await;
    place.until_setting("example", "max_connections", "120").await;
    place.until_setting("example", "work_mem", "7MB").await;
    place.is_ready("example").await;
    // And back, which a replica must not do before its primary.
    place.change("example", json!({"parameters": {"work_mem": "7MB", "max_connections": "90"}})).await;
    place.until_setting("example", "max_connections", "90").await;
    place.is_ready("example").await;
    assert_eq!(place.pod_uids().await, pods);
    assert_eq!(place.psql("example", "SELECT name FROM fruits").await, "apple");

    // A fenced server stops, and comes back.
    place.sampledb(&["fence", "example", "example-1"]).await;
    place.until_role("example", "example-1", Role::Stopped).await;
    place.sampledb(&["fence", "example", "example-1", "--off"]).await;
    place.is_ready("example").await;
    let kubectl = std::process::Command::new("kubectl").arg("version").arg("--client").output();
    if kubectl.is_ok_and(|output| output.status.success()) {
        let said = place.sampledb(&["psql", "example", "--", "-Atc", "SELECT name FROM fruits"]).await;
        assert_eq!(said, "apple\n");
        let said = place.sampledb(&["logs", "example"]).await;
        assert!(said.contains("database system is ready to accept connections"), "{said}");
    }

    // Another Secret, another password: whoever has it gets in.
    let secrets = place.world.api::<Secret>();
    let password = async || {
        let secret = secrets.get_opt("example-credentials").await.unwrap();
        secret.and_then(|secret| secret.data?.remove("password")).map(|bytes| bytes.0)
    };
    let before = password().await.unwrap();
    secrets.delete("example-credentials", &DeleteParams::default()).await.unwrap();
    place
        .until("example", "there is another password", || async {
            password().await.is_some_and(|now| now != before)
        })
        .await;
    place
        .until("example", "the new password is accepted", || async {
            place.psql("example", "SELECT name FROM fruits").await == "apple"
        })
        .await;
    place.is_ready("example").await;

    // With fewer instances the last one goes, once it has handed over.
    place.sampledb(&["switchover", "example", "--to", "example-2"]).await;
    place.change("example", json!({"instances": 2})).await;
    place.until("example", "two pods are left", || async { place.pod_uids().await.len() == 2 }).await;
    place.is_ready("example").await;
    assert_ne!(place.primary("example").await.as_deref(), Some("example-2"));
    place.change("example", json!({"instances": 3})).await;
    place.is_ready("example").await;
    assert_eq!(place.pod_uids().await.len(), 3);
    assert_eq!(place.psql("example", "SELECT name FROM fruits").await, "apple");
}
