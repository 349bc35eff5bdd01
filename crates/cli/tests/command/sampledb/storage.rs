//! Volumes of real servers grow, or cannot, and the database goes on.

use super::place::{Place, cannot_run_postgres, first_process};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, ListParams, PostParams};
use nix::sys::signal::{Signal, kill};
use serde_json::json;

const CONDITION: &str = "StorageReady";

impl Place {
    /// The capacities of all claims.
    async fn capacities(&self) -> Vec<String> {
        let claims = self.world.api::<PersistentVolumeClaim>().list(&ListParams::default()).await.unwrap();
        let capacity = |claim: PersistentVolumeClaim| claim.status?.capacity?.remove("storage");
        claims.into_iter().filter_map(capacity).map(|size| size.0).collect()
    }

    /// Writers go on while volumes grow, and no pod restarts.
    async fn grows(&self, name: &str) {
        self.prepare(name, json!({"instances": 3})).await;
        self.has_condition(name, CONDITION, "True", "AsDeclared").await;
        assert_eq!(self.capacities().await, ["1Gi"; 3]);
        let (pods, primary) = (self.pod_uids().await, self.primary(name).await);
        let began = self.world.clock.moment();
        self.change(name, json!({"storage": {"size": "2Gi"}})).await;
        self.until(name, "its volumes have grown", || async { self.capacities().await == ["2Gi"; 3] }).await;
        println!("grown after {:?}", self.world.clock.moment() - began);
        self.has_condition(name, CONDITION, "True", "AsDeclared").await;
        self.is_ready(name).await;
        self.until_more_are_acknowledged(name, 20).await;
        assert_eq!((self.pod_uids().await, self.primary(name).await), (pods, primary));
        self.has_lost_nothing(name).await;
    }
}

#[tokio::test]
async fn volumes_grow_while_rows_are_written() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    Place::start().await.grows("archive").await;
}

#[tokio::test]
async fn volumes_grow_on_the_reference() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let Some(place) = Place::on_the_reference().await else { return };
    place.grows("library").await;
}

#[tokio::test]
async fn a_database_fails_over_while_its_volumes_cannot_grow() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    let class: StorageClass = serde_json::from_value(json!({
        "metadata": {"name": "rigid"}, "provisioner": "windlass.dev/local", "volumeBindingMode": "WaitForFirstConsumer",
    }))
    .unwrap();
    Api::all(place.world.client.clone()).create(&PostParams::default(), &class).await.unwrap();
    place.prepare("shelf", json!({"instances": 3, "storage": {"size": "1Gi", "class": "rigid"}})).await;
    place.change("shelf", json!({"storage": {"size": "2Gi"}})).await;
    place.has_condition("shelf", CONDITION, "False", "RefusedByServer").await;
    assert_eq!(place.capacities().await, ["1Gi"; 3]);

    let primary = place.primary("shelf").await.unwrap();
    let process = first_process(&primary).unwrap();
    kill(process, Signal::SIGKILL).unwrap();
    place.until("shelf", "its server has ended", || async { kill(process, None).is_err() }).await;
    place.until_more_are_acknowledged("shelf", 20).await;
    place.is_ready("shelf").await;
    place.has_condition("shelf", CONDITION, "False", "RefusedByServer").await;

    place.change("shelf", json!({"storage": {"size": "1Gi"}})).await;
    place.has_condition("shelf", CONDITION, "True", "AsDeclared").await;
    place.is_ready("shelf").await;
    place.has_lost_nothing("shelf").await;
}
