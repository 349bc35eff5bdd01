//! What goes wrong with an object of a kind without conditions is told by an event, and once.

use crate::support::{Fixture, Why, map, named};
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

async fn wants(fixture: &Fixture, what: serde_json::Value) {
    fixture.merge::<Secret>("a", json!({"metadata": {"labels": {"wants": what}}})).await;
}

#[tokio::test]
async fn a_refusal_and_a_name_that_is_taken_are_told_where_there_is_no_room_for_conditions() {
    let fixture = Fixture::new().await;
    let secret = Secret { metadata: named("a"), ..Secret::default() };
    fixture.here::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    fixture.here::<ConfigMap>().create(&PostParams::default(), &map("taken", "is", 0)).await.unwrap();
    let _operator = fixture.run(Controller::deciding(decide).owns::<ConfigMap>());
    let told =
        async |reason: &str| fixture.events("a").await.iter().filter(|(name, _)| name == reason).count();
    wants(&fixture, "nonsense".into()).await;
    fixture.until("the refusal is told", async || told("Unclear").await == 1).await;
    // Decided about again, it is no news.
    fixture.merge::<Secret>("a", json!({"metadata": {"annotations": {"touched": "1"}}})).await;
    fixture.until_silent().await;
    assert_eq!(told("Unclear").await, 1);
    wants(&fixture, "taken".into()).await;
    fixture.until("whose it is not is told", async || told("NotOurs").await == 1).await;
    fixture.merge::<Secret>("a", json!({"metadata": {"annotations": {"touched": "2"}}})).await;
    fixture.until_silent().await;
    assert_eq!(told("NotOurs").await, 1);
}
