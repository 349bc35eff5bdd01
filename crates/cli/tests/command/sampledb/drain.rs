//! Real servers whose node is emptied. There is one node: pods of two process nodes do not reach each other. That a primary goes to
//! another node first is tested without servers (`operators/sampledb/tests/sampledb/drain.rs`).

use super::place::{Place, cannot_run_postgres, first_process};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{Api, EvictParams, ListParams, Patch, PatchParams};
use nix::sys::signal::kill;
use serde_json::json;
use std::time::Duration;

const CONDITION: &str = "PrimaryElected";

impl Place {
    /// Cordons the node, or takes that back.
    async fn cordon(&self, unschedulable: bool) {
        let nodes: Api<Node> = Api::all(self.world.client.clone());
        for node in nodes.list(&ListParams::default()).await.unwrap() {
            let patch = Patch::Merge(json!({"spec": {"unschedulable": unschedulable}}));
            nodes.patch(&node.name_any(), &PatchParams::default(), &patch).await.unwrap();
        }
    }

    /// Whether an instance is evicted. A client tries again for as long as it is refused: it is given a moment.
    async fn evicts(&self, instance: &str) -> bool {
        let pods = self.world.api::<Pod>();
        let params = EvictParams::default();
        match self.world.clock.timeout(Duration::from_secs(2), pods.evict(instance, &params)).await {
            Ok(evicted) => evicted.is_ok(),
            Err(_) => false,
        }
    }

    /// How many instances may be evicted now.
    async fn disruptions_allowed(&self, name: &str) -> i32 {
        let budget = self.world.api::<PodDisruptionBudget>().get(name).await.unwrap();
        budget.status.and_then(|status| status.disruptions_allowed).unwrap_or(0)
    }
}

#[tokio::test]
async fn an_evicted_primary_hands_over_and_one_instance_at_a_time_is_evicted() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    let clock = place.world.clock.clone();
    place.prepare("orders", json!({"instances": 3})).await;
    let primary = place.primary("orders").await.unwrap();
    place.cordon(true).await;
    place.has_condition("orders", CONDITION, "True", "StaysOnCordonedNode").await;
    assert_eq!(place.primary("orders").await.as_ref(), Some(&primary), "nobody elsewhere could take over");

    let process = first_process(&primary).unwrap();
    place
        .until("orders", "one may be evicted", || async { place.disruptions_allowed("orders").await == 1 })
        .await;
    let began = clock.moment();
    assert!(place.evicts(&primary).await);
    place.until("orders", "its server has ended", || async { kill(process, None).is_err() }).await;
    let before = place.acknowledged().await;
    place.until("orders", "it is written again", || async { place.acknowledged().await > before + 3 }).await;
    println!("written again after {:?}", clock.moment() - began);
    place
        .until("orders", "another is primary", || async {
            place.primary("orders").await.is_some_and(|now| now != primary)
        })
        .await;
    // It cannot come back to a cordoned node: no other may go meanwhile.
    assert_eq!(place.disruptions_allowed("orders").await, 0);
    assert!(!place.evicts(&place.primary("orders").await.unwrap()).await);
    place.cordon(false).await;
    place.is_ready("orders").await;
    place.has_condition("orders", CONDITION, "True", "AsDeclared").await;
    assert_ne!(place.primary("orders").await.as_ref(), Some(&primary), "it stays where it is");
    place.until_more_are_acknowledged("orders", 20).await;
    place.has_lost_nothing("orders").await;
}
