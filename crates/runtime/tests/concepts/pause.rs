//! An object that is paused is left alone, its deletion too.

use crate::ground::{Ground, Thing, Why, entry, map, of};
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

async fn says(ground: &Ground) -> Option<String> {
    let map = ground.here::<ConfigMap>().get_opt("a-size").await.unwrap()?;
    entry(&map, "is")
}

async fn pause(ground: &Ground, annotation: &str, value: serde_json::Value) {
    ground.merge::<Thing>("a", json!({"metadata": {"annotations": {annotation: value}}})).await;
}

#[tokio::test]
async fn a_paused_object_is_left_alone_and_goes_on_where_it_was() {
    let ground = Ground::new().await;
    ground.thing("a", 1).await;
    let _operator =
        ground.run(Controller::deciding(decide).owns::<ConfigMap>().deletes::<ConfigMap>().finalizer(undo));
    ground.until_condition("a", "Ready", "True", "AsDeclared").await;
    pause(&ground, "windlass.dev/paused", "true".into()).await;
    ground.until_condition("a", "Paused", "True", "PausedByAnnotation").await;
    ground.resize("a", 2).await;
    ground.merge::<ConfigMap>("a-size", json!({"data": {"is": "by hand"}})).await;
    ground.until_silent().await;
    assert_eq!(says(&ground).await.unwrap(), "by hand");
    assert_eq!(ground.condition("a", "Ready").await.unwrap().status, "True", "as it was last known");
    pause(&ground, "windlass.dev/paused", serde_json::Value::Null).await;
    ground.until("it goes on", || async { says(&ground).await.as_deref() == Some("2") }).await;
    ground.until("the condition is gone", || async { ground.condition("a", "Paused").await.is_none() }).await;
}

#[tokio::test]
async fn a_paused_object_that_is_deleted_waits() {
    let ground = Ground::new().await;
    ground.thing("a", 1).await;
    let controller = Controller::deciding(decide)
        .owns::<ConfigMap>()
        .deletes::<ConfigMap>()
        .finalizer(undo)
        .paused_by("mine/hold");
    let _operator = ground.run(controller);
    ground.until_condition("a", "Ready", "True", "AsDeclared").await;
    pause(&ground, "mine/hold", "true".into()).await;
    ground.until_condition("a", "Paused", "True", "PausedByAnnotation").await;
    ground.here::<Thing>().delete("a", &DeleteParams::default()).await.unwrap();
    let says_so = || async {
        let paused = ground.condition("a", "Paused").await;
        paused.is_some_and(|paused| paused.message == "annotation mine/hold pauses it, and its deletion")
    };
    ground.until("the condition tells of the deletion", says_so).await;
    ground.until_silent().await;
    assert_eq!(says(&ground).await.unwrap(), "1", "nothing is undone");
    pause(&ground, "mine/hold", "false".into()).await;
    ground.until("it goes", || async { ground.here::<Thing>().get_opt("a").await.unwrap().is_none() }).await;
    assert_eq!(says(&ground).await, None);
}
