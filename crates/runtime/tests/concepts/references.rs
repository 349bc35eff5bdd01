//! References by name: a condition says what is missing, and its coming and going are reconciles.

use crate::support::{Fixture, Thing, Why, entry, map, of};
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

async fn copied(fixture: &Fixture) -> Option<String> {
    let copy = fixture.here::<ConfigMap>().get_opt("a-copy").await.unwrap()?;
    entry(&copy, "text")
}

#[tokio::test]
async fn what_is_missing_is_said_and_when_it_comes_there_is_a_reconcile() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    fixture.merge::<Thing>("a", serde_json::json!({"spec": {"about": "source"}})).await;
    let _operator = fixture.run(controller());
    fixture.until_condition("a", "ReferencesResolved", "False", "ReferenceMissing").await;
    fixture.until_condition("a", "Ready", "False", "ReferenceMissing").await;
    let said = fixture.condition("a", "ReferencesResolved").await.unwrap().message;
    assert_eq!(said, "not there: ConfigMap source");
    let maps = fixture.here::<ConfigMap>();
    maps.create(&PostParams::default(), &map("other", "text", "not asked for")).await.unwrap();
    maps.create(&PostParams::default(), &map("source", "text", "one")).await.unwrap();
    fixture.until_condition("a", "ReferencesResolved", "True", "AllThere").await;
    fixture.until("it is copied", || async { copied(&fixture).await.as_deref() == Some("one") }).await;
    fixture.merge::<ConfigMap>("source", serde_json::json!({"data": {"text": "two"}})).await;
    fixture
        .until("the change is copied", || async { copied(&fixture).await.as_deref() == Some("two") })
        .await;
    maps.delete("source", &DeleteParams::default()).await.unwrap();
    fixture.until_condition("a", "ReferencesResolved", "False", "ReferenceMissing").await;
    assert_eq!(copied(&fixture).await.as_deref(), Some("two"), "a refusal takes nothing away");
    fixture.merge::<Thing>("a", serde_json::json!({"spec": {"about": "other"}})).await;
    fixture.until_condition("a", "ReferencesResolved", "True", "AllThere").await;
    fixture
        .until("the other is copied", || async { copied(&fixture).await.as_deref() == Some("not asked for") })
        .await;
}

#[tokio::test]
async fn a_name_that_is_no_reference_cannot_be_read_as_one() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let careless = Controller::deciding(|_: &Thing, observed: &Observed| {
        observed.referenced::<ConfigMap>("elsewhere")?;
        Ok(Plan::new())
    });
    let _operator = fixture.run(careless.references::<ConfigMap>(|_| Relation::nothing()));
    fixture.until_condition("a", "Degraded", "True", "ObserveError").await;
}
