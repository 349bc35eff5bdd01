//! Databases that are stopped for a while, and those that are left alone.

use super::backup::ROWS;
use super::place::{Place, cannot_run_postgres, first_process};
use kube::api::{Patch, PatchParams};
use nix::sys::signal::{Signal, kill};
use sampledb_operator::api::v1alpha1::SampleDB;
use serde_json::json;

#[tokio::test]
async fn a_database_hibernates_and_has_its_rows_when_it_is_back() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.create_archived("bear").await;
    let rows = place.psql("bear", ROWS).await;
    let claims = place.claims("bear").await;
    place.change("bear", json!({"hibernated": true})).await;
    place.has_condition("bear", "Hibernated", "True", "Hibernated").await;
    assert_eq!(place.pod_uids().await.len(), 0);
    assert_eq!(place.claims("bear").await, claims);
    let began = place.world.clock.moment();
    place.change("bear", json!({"hibernated": false})).await;
    place.is_ready("bear").await;
    println!("back after {:?}", place.world.clock.moment() - began);
    assert_eq!(place.psql("bear", ROWS).await, rows);

    // Paused, it is not changed, and fails over all the same.
    let pause = async |paused: &str| {
        let patch = json!({"metadata": {"annotations": {"windlass.dev/paused": paused}}});
        place
            .world
            .api::<SampleDB>()
            .patch("bear", &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    };
    pause("true").await;
    place
        .until("bear", "it is paused", || async {
            let status = place.world.api::<SampleDB>().get("bear").await.unwrap().status.unwrap_or_default();
            status.conditions.iter().any(|one| one.type_ == "Paused" && one.status == "True")
        })
        .await;
    place.change("bear", json!({"parameters": {"work_mem": "9MB"}})).await;
    let primary = place.lease_holder("bear").await.unwrap();
    place
        .until("bear", "another is primary", || async {
            let _ = first_process(&primary).map(|process| kill(process, Signal::SIGKILL));
            place.lease_holder("bear").await.is_some_and(|holder| holder != primary)
        })
        .await;
    assert_eq!(place.psql("bear", ROWS).await, rows);
    assert_ne!(place.psql("bear", "SHOW work_mem").await, "9MB");
    pause("false").await;
    place.until_setting("bear", "work_mem", "9MB").await;
    place.is_ready("bear").await;
}
