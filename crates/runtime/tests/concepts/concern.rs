//! Two controllers of one kind, each with a concern of its own: neither contradicts the other.

use crate::support::{Fixture, Thing, Why, map};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::json;
use windlass::{Controller, Observed, Plan, Refusal, Until};

fn runs(thing: &Thing, _: &Observed) -> Result<Plan, Refusal> {
    Ok(Plan::new().apply(map(thing.name_any(), "is", 1), Why::Needed))
}

/// Never content.
fn backs_up(_: &Thing, _: &Observed) -> Result<Plan, Refusal> {
    Ok(Plan::new().wait(Why::Awaited, Until::Change))
}

#[tokio::test]
async fn a_second_controller_tells_its_own_condition_and_leaves_ready_alone() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let _first = fixture.run(Controller::deciding(runs).owns::<ConfigMap>());
    let second = Controller::deciding(backs_up).named("thing-backups").concerned_with("BackedUp");
    let _second = fixture.run(second);
    let stands = async || {
        let status = fixture.here::<Thing>().get_status("a").await.unwrap().status.unwrap_or_default();
        let mut told: Vec<_> = status.conditions.into_iter().map(|one| (one.type_, one.status)).collect();
        told.sort();
        json!(told)
    };
    let wanted =
        json!([["BackedUp", "False"], ["Degraded", "False"], ["Progressing", "False"], ["Ready", "True"]]);
    fixture.until("both have told", async || stands().await == wanted).await;
    fixture.until_silent().await;
    assert_eq!(stands().await, wanted);
}
