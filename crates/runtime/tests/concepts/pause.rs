//! An object that is paused is left alone, its deletion too.

use crate::support::{Fixture, Thing, Why, entry, map, of};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use serde_json::json;
use windlass::{Controller, Observed, Plan, Refusal, Until};

fn decide(thing: &Thing, _: &Observed) -> Result<Plan, Refusal> {
    Ok(Plan::new().apply(map(of(thing, "size"), "is", thing.spec.size), Why::Needed))
}

fn undo(thing: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    let name = of(thing, "size");
    Ok(match observed.get::<ConfigMap>(&name)? {
        Some(_) => Plan::new().delete::<ConfigMap>(name, Why::Needed).wait(Why::Awaited, Until::Change),
        None => Plan::new(),
    })
}

async fn says(fixture: &Fixture) -> Option<String> {
    let map = fixture.here::<ConfigMap>().get_opt("a-size").await.unwrap()?;
    entry(&map, "is")
}

async fn pause(fixture: &Fixture, annotation: &str, value: serde_json::Value) {
    fixture.merge::<Thing>("a", json!({"metadata": {"annotations": {annotation: value}}})).await;
}

#[tokio::test]
async fn a_paused_object_is_left_alone_and_goes_on_where_it_was() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let _operator =
        fixture.run(Controller::deciding(decide).owns::<ConfigMap>().deletes::<ConfigMap>().finalizer(undo));
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    pause(&fixture, "windlass.dev/paused", "true".into()).await;
    fixture.until_condition("a", "Paused", "True", "PausedByAnnotation").await;
    fixture.resize("a", 2).await;
    fixture.merge::<ConfigMap>("a-size", json!({"data": {"is": "by hand"}})).await;
    fixture.until_silent().await;
    assert_eq!(says(&fixture).await.unwrap(), "by hand");
    assert_eq!(fixture.condition("a", "Ready").await.unwrap().status, "True", "as it was last known");
    pause(&fixture, "windlass.dev/paused", serde_json::Value::Null).await;
    fixture.until("it goes on", || async { says(&fixture).await.as_deref() == Some("2") }).await;
    fixture
        .until("the condition is gone", || async { fixture.condition("a", "Paused").await.is_none() })
        .await;
}

#[tokio::test]
async fn a_paused_object_that_is_deleted_waits() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let controller = Controller::deciding(decide)
        .owns::<ConfigMap>()
        .deletes::<ConfigMap>()
        .finalizer(undo)
        .paused_by("mine/hold");
    let _operator = fixture.run(controller);
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    pause(&fixture, "mine/hold", "true".into()).await;
    fixture.until_condition("a", "Paused", "True", "PausedByAnnotation").await;
    fixture.here::<Thing>().delete("a", &DeleteParams::default()).await.unwrap();
    let says_so = || async {
        let paused = fixture.condition("a", "Paused").await;
        paused.is_some_and(|paused| paused.message == "annotation mine/hold pauses it, and its deletion")
    };
    fixture.until("the condition tells of the deletion", says_so).await;
    fixture.until_silent().await;
    assert_eq!(says(&fixture).await.unwrap(), "1", "nothing is undone");
    pause(&fixture, "mine/hold", "false".into()).await;
    fixture
        .until("it goes", || async { fixture.here::<Thing>().get_opt("a").await.unwrap().is_none() })
        .await;
    assert_eq!(says(&fixture).await, None);
}
