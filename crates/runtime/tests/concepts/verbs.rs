//! What plans do to children besides applying them is said beforehand.

use crate::support::{Fixture, Thing, Why, entry, map, of};
use k8s_openapi::api::core::v1::ConfigMap;
use windlass::{Controller, Observed, Plan, Refusal, Until};

/// A size of zero is a map that is deleted.
fn decide(thing: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    let name = of(thing, "size");
    Ok(match (thing.spec.size, observed.get::<ConfigMap>(&name)?) {
        (0, Some(_)) => Plan::new().delete::<ConfigMap>(name, Why::Needed).wait(Why::Awaited, Until::Change),
        (0, None) => Plan::new(),
        (size, _) => Plan::new().apply(map(name, "is", size), Why::Needed),
    })
}

#[tokio::test]
async fn a_deletion_that_was_not_said_is_a_mistake_and_not_made() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let operator = fixture.run(Controller::deciding(decide).owns::<ConfigMap>());
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    fixture.resize("a", 0).await;
    fixture.until_condition("a", "Ready", "False", "UndeclaredWrite").await;
    let there = fixture.here::<ConfigMap>().get("a-size").await.unwrap();
    assert_eq!(entry(&there, "is").unwrap(), "1");
    drop(operator);
    let _operator = fixture.run(Controller::deciding(decide).owns::<ConfigMap>().deletes::<ConfigMap>());
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    assert!(fixture.here::<ConfigMap>().get_opt("a-size").await.unwrap().is_none());
}
