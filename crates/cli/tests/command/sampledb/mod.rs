//! The SampleDB operator with real PostgreSQL servers.

mod failover;
mod place;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use nix::sys::signal::{Signal, kill};
use place::{Place, cannot_run_postgres, first_process};
use serde_json::json;

#[tokio::test]
async fn a_database_from_its_creation_through_a_failover() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    let schema: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "schema"}, "data": {"schema.sql": "CREATE TABLE fruits (name text PRIMARY KEY);"},
    }))
    .unwrap();
    place.world.api().create(&PostParams::default(), &schema).await.unwrap();
    place
        .create("example", json!({"instances": 3, "initialSchema": {"name": "schema", "key": "schema.sql"}}))
        .await;
    place.is_ready("example").await;
    assert_eq!(place.primary("example").await.as_deref(), Some("example-0"));
    assert_eq!(place.psql("example", "INSERT INTO fruits VALUES ('apple') RETURNING name").await, "apple");

    let began = place.world.clock.moment();
    kill(first_process("example-0").unwrap(), Signal::SIGKILL).unwrap();
    place
        .world
        .until("another is primary", || async {
            place.primary("example").await.is_some_and(|primary| primary != "example-0")
        })
        .await;
    println!("failover: {:?}", place.world.clock.moment() - began);
    place.is_ready("example").await;
    println!("all ready again: {:?}", place.world.clock.moment() - began);
    assert_eq!(place.psql("example", "SELECT name FROM fruits").await, "apple");
}
