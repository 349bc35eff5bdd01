//! Real servers whose node is emptied. There is one node: pods of two process nodes do not reach each other. That a primary goes to
//! another node first is tested without servers (`operators/sampledb/tests/sampledb/drain.rs`).

use super::place::{Place, cannot_run_postgres, first_process};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{Api, EvictParams, ListParams, Patch, PatchParams};
use nix::sys::signal::kill;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

const CONDITION: &str = "PrimaryElected";
/// The pods whose servers are primary or replicas.
const INSTANCES: &str = "db.windlass.dev/database=orders,db.windlass.dev/role";

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
    drained_by_kubectl(&place).await;
    place.until_more_are_acknowledged("orders", 20).await;
    place.has_lost_nothing("orders").await;
}

/// The node is the only one, so its instances cannot go elsewhere: the budget lets one go, and kubectl gives up on the others.
async fn drained_by_kubectl(place: &Place) {
    let nodes: Api<Node> = Api::all(place.world.client.clone());
    let node = nodes.list(&ListParams::default()).await.unwrap().items.remove(0).name_any();
    let uids = || async {
        let pods = place.world.api::<Pod>().list(&ListParams::default().labels(INSTANCES)).await.unwrap();
        pods.into_iter().filter_map(|pod| pod.uid()).collect::<BTreeSet<_>>()
    };
    let before = uids().await;
    assert_eq!(before.len(), 3);
    let selector = format!("--pod-selector={INSTANCES}");
    let drain = ["drain", &node, "--ignore-daemonsets", "--delete-emptydir-data", &selector, "--timeout=20s"];
    let Some(drained) = place.kubectl(&drain).await else { return println!("kubectl is not installed") };
    let why = String::from_utf8_lossy(&drained.stderr);
    assert!(!drained.status.success() && why.contains("would violate the pod's disruption budget"), "{why}");
    let after = uids().await;
    assert_eq!(before.intersection(&after).count(), 2, "{before:?} {after:?}");
    place.until_more_are_acknowledged("orders", 20).await;
    assert!(place.kubectl(&["uncordon", &node]).await.unwrap().status.success());
    place.is_ready("orders").await;
}
