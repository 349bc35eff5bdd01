//! What goes wrong with an object of a kind without conditions is told by an event, and once.

use crate::ground::{Ground, Why, map, named};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::json;
use windlass::{Controller, Observed, Plan, Reason, Refusal};

fn decide(secret: &Secret, _: &Observed) -> Result<Plan, Refusal> {
    match secret.labels().get("wants").map(String::as_str) {
        None => Ok(Plan::new()),
        Some("nonsense") => Err(Refusal::new(Reason::new("Unclear", "nobody knows what that is"))),
        Some(name) => Ok(Plan::new().apply(map(name, "is", 1), Why::Needed)),
    }
}

async fn wants(ground: &Ground, what: serde_json::Value) {
    ground.merge::<Secret>("a", json!({"metadata": {"labels": {"wants": what}}})).await;
}

#[tokio::test]
async fn a_refusal_and_a_name_that_is_taken_are_told_where_there_is_no_room_for_conditions() {
    let ground = Ground::new().await;
    let secret = Secret { metadata: named("a"), ..Secret::default() };
    ground.here::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    ground.here::<ConfigMap>().create(&PostParams::default(), &map("taken", "is", 0)).await.unwrap();
    let _operator = ground.run(Controller::deciding(decide).owns::<ConfigMap>());
    let told =
        async |reason: &str| ground.events("a").await.iter().filter(|(name, _)| name == reason).count();
    wants(&ground, "nonsense".into()).await;
    ground.until("the refusal is told", async || told("Unclear").await == 1).await;
    // Decided about again, it is no news.
    ground.merge::<Secret>("a", json!({"metadata": {"annotations": {"touched": "1"}}})).await;
    ground.until_silent().await;
    assert_eq!(told("Unclear").await, 1);
    wants(&ground, "taken".into()).await;
    ground.until("whose it is not is told", async || told("NotOurs").await == 1).await;
    ground.merge::<Secret>("a", json!({"metadata": {"annotations": {"touched": "2"}}})).await;
    ground.until_silent().await;
    assert_eq!(told("NotOurs").await, 1);
}
