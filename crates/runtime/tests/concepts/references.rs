//! References by name: a condition says what is missing, and its coming and going are reconciles.

use crate::ground::{Ground, Thing, Why, entry, map, of};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use windlass::{Controller, Observed, Plan, Refusal, Relation};

/// Copies what it refers to.
fn decide(thing: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    let source = observed.referenced::<ConfigMap>(thing.spec.about.as_deref().unwrap_or_default())?;
    let text = entry(&source, "text").unwrap_or_default();
    Ok(Plan::new().apply(map(of(thing, "copy"), "text", text), Why::Needed))
}

fn controller() -> Controller<Thing> {
    Controller::deciding(decide)
        .owns::<ConfigMap>()
        .references::<ConfigMap>(|thing| Relation::names(thing.spec.about.clone()))
}

async fn copied(ground: &Ground) -> Option<String> {
    let copy = ground.here::<ConfigMap>().get_opt("a-copy").await.unwrap()?;
    entry(&copy, "text")
}

#[tokio::test]
async fn what_is_missing_is_said_and_when_it_comes_there_is_a_reconcile() {
    let ground = Ground::new().await;
    ground.thing("a", 1).await;
    ground.merge::<Thing>("a", serde_json::json!({"spec": {"about": "source"}})).await;
    let _operator = ground.run(controller());
    ground.until_condition("a", "ReferencesResolved", "False", "ReferenceMissing").await;
    ground.until_condition("a", "Ready", "False", "ReferenceMissing").await;
    let said = ground.condition("a", "ReferencesResolved").await.unwrap().message;
    assert_eq!(said, "not there: ConfigMap source");
    let maps = ground.here::<ConfigMap>();
    maps.create(&PostParams::default(), &map("other", "text", "not asked for")).await.unwrap();
    maps.create(&PostParams::default(), &map("source", "text", "one")).await.unwrap();
    ground.until_condition("a", "ReferencesResolved", "True", "AllThere").await;
    ground.until("it is copied", || async { copied(&ground).await.as_deref() == Some("one") }).await;
    ground.merge::<ConfigMap>("source", serde_json::json!({"data": {"text": "two"}})).await;
    ground.until("the change is copied", || async { copied(&ground).await.as_deref() == Some("two") }).await;
    maps.delete("source", &DeleteParams::default()).await.unwrap();
    ground.until_condition("a", "ReferencesResolved", "False", "ReferenceMissing").await;
    assert_eq!(copied(&ground).await.as_deref(), Some("two"), "a refusal takes nothing away");
    ground.merge::<Thing>("a", serde_json::json!({"spec": {"about": "other"}})).await;
    ground.until_condition("a", "ReferencesResolved", "True", "AllThere").await;
    ground
        .until("the other is copied", || async { copied(&ground).await.as_deref() == Some("not asked for") })
        .await;
}

#[tokio::test]
async fn a_name_that_is_no_reference_cannot_be_read_as_one() {
    let ground = Ground::new().await;
    ground.thing("a", 1).await;
    let careless = Controller::deciding(|_: &Thing, observed: &Observed| {
        observed.referenced::<ConfigMap>("elsewhere")?;
        Ok(Plan::new())
    });
    let _operator = ground.run(careless.references::<ConfigMap>(|_| Relation::nothing()));
    ground.until_condition("a", "Degraded", "True", "ObserveError").await;
}
