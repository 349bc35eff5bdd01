//! Children that outlive their object, and what is adopted, by kind.

use crate::support::{Fixture, Thing, Why, entry, map, named, of};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;
use windlass::{Adoption, Controller, Observed, Plan, Refusal};

/// A map that stays, and a second one for large things.
fn decide(thing: &Thing, _: &Observed) -> Result<Plan, Refusal> {
    let plan = Plan::new().apply(map(of(thing, "kept"), "size", thing.spec.size), Why::Needed);
    match thing.spec.size > 1 {
        true => Ok(plan.apply(map(of(thing, "more"), "size", thing.spec.size), Why::Needed)),
        false => Ok(plan),
    }
}

async fn found(fixture: &Fixture, name: &str) -> Option<ConfigMap> {
    fixture.here::<ConfigMap>().get_opt(name).await.unwrap()
}

#[tokio::test]
async fn a_retained_child_is_kept_as_wanted_and_stays_when_its_object_goes() {
    let fixture = Fixture::new().await;
    let thing = fixture.thing("a", 2).await;
    let _operator = fixture.run(Controller::deciding(decide).retains::<ConfigMap>());
    fixture.until("both are made", || async { found(&fixture, "a-more").await.is_some() }).await;
    let kept = found(&fixture, "a-kept").await.unwrap();
    assert_eq!(kept.metadata.owner_references, None, "nothing collects it");
    assert_eq!(kept.labels()["windlass.dev/owner-uid"], thing.uid().unwrap());
    // Like any other child, it is mended, and an object at rest writes nothing.
    fixture.merge::<ConfigMap>("a-kept", json!({"data": {"size": "0"}})).await;
    let mended =
        || async { entry(&found(&fixture, "a-kept").await.unwrap(), "size").as_deref() == Some("2") };
    fixture.until("it is mended", mended).await;
    fixture.resize("a", 1).await;
    let smaller =
        || async { entry(&found(&fixture, "a-kept").await.unwrap(), "size").as_deref() == Some("1") };
    fixture.until("it follows", smaller).await;
    fixture.until_silent().await;
    assert!(found(&fixture, "a-more").await.is_some(), "it is not pruned unless that is said");
    // No finalizer holds the object, and nobody takes its children.
    fixture.here::<Thing>().delete("a", &DeleteParams::default()).await.unwrap();
    let gone = || async { fixture.here::<Thing>().get_opt("a").await.unwrap().is_none() };
    fixture.until("the object is gone", gone).await;
    fixture.until_silent().await;
    let left = fixture.here::<ConfigMap>().list(&ListParams::default()).await.unwrap();
    let left: Vec<String> =
        left.iter().map(ResourceExt::name_any).filter(|name| name.starts_with("a-")).collect();
    assert_eq!(left, ["a-kept", "a-more"]);
}

#[tokio::test]
async fn a_retained_child_is_pruned_if_that_is_said() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 2).await;
    let _operator = fixture.run(Controller::deciding(decide).retains::<ConfigMap>().prunes::<ConfigMap>());
    fixture.until("both are made", || async { found(&fixture, "a-more").await.is_some() }).await;
    fixture.resize("a", 1).await;
    fixture.until("the second is pruned", || async { found(&fixture, "a-more").await.is_none() }).await;
    assert!(found(&fixture, "a-kept").await.is_some());
}

#[tokio::test]
async fn what_a_former_object_of_the_name_left_is_not_taken_over() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let _operator = fixture.run(Controller::deciding(decide).retains::<ConfigMap>());
    fixture.until("it is made", || async { found(&fixture, "a-kept").await.is_some() }).await;
    let uid = found(&fixture, "a-kept").await.unwrap().uid();
    fixture.here::<Thing>().delete("a", &DeleteParams::default()).await.unwrap();
    fixture.thing("a", 5).await;
    fixture.until_condition("a", "Degraded", "True", "NotOurs").await;
    let kept = found(&fixture, "a-kept").await.unwrap();
    assert_eq!((kept.uid(), entry(&kept, "size").as_deref()), (uid, Some("1")));
}

/// A foreground deletion has the garbage collector delete what names the object as its owner, whatever its finalizers say.
#[tokio::test]
async fn a_collected_child_stays_until_the_cleanup_is_complete_and_its_name_is_free_then() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let decide = |thing: &Thing, _: &Observed| {
        let account = ServiceAccount { metadata: named(of(thing, "needed")), ..Default::default() };
        Ok(Plan::new().apply(account, Why::Needed))
    };
    let cleanup = |thing: &Thing, _: &Observed| match thing.annotations().contains_key("done") {
        true => Ok(Plan::new()),
        false => Ok(Plan::waiting(Why::Needed)),
    };
    let controller = Controller::deciding(decide).finalizer(cleanup).collects::<ServiceAccount>();
    let _operator = fixture.run(controller);
    let account = || async { fixture.here::<ServiceAccount>().get_opt("a-needed").await.unwrap() };
    fixture.until("it is made", || async { account().await.is_some() }).await;
    let first = account().await.unwrap();
    assert_eq!(first.metadata.owner_references, None);
    fixture.here::<Thing>().delete("a", &DeleteParams::foreground()).await.unwrap();
    fixture.until_silent().await;
    assert_eq!(account().await.unwrap().uid(), first.uid());
    fixture
        .merge::<Thing>(
            "a",
            json!({"metadata": {"annotations": {"done": "yes"}, "finalizers": ["windlass.dev/thing"]}}),
        )
        .await;
    let gone = || async { fixture.here::<Thing>().get_opt("a").await.unwrap().is_none() };
    fixture.until("the object is gone", gone).await;
    assert!(account().await.is_none());
    // Of a ServiceAccount the server answers a deletion with what it was: that is no sign that it is still there.
    fixture.thing("a", 1).await;
    fixture.until("it is made anew", || async { account().await.is_some() }).await;
}

#[tokio::test]
async fn adoption_is_a_matter_of_the_kind() {
    let fixture = Fixture::new().await;
    let maps = fixture.here::<ConfigMap>();
    maps.create(&PostParams::default(), &map("a-old", "size", "0")).await.unwrap();
    let secret = Secret { metadata: named("a-login"), ..Default::default() };
    fixture.here::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    fixture.thing("a", 1).await;
    let decide = |thing: &Thing, _: &Observed| -> Result<Plan, Refusal> {
        let login = Secret { metadata: named(of(thing, "login")), ..Default::default() };
        let old = map(of(thing, "old"), "size", thing.spec.size);
        Ok(Plan::new().apply(old, Why::Needed).apply(login, Why::Needed))
    };
    let controller = Controller::deciding(decide).owns::<ConfigMap>().owns::<Secret>();
    let _operator = fixture.run(controller.adopts::<ConfigMap>(Adoption::IfUnowned));
    let adopted = || async { found(&fixture, "a-old").await.unwrap().owner_references().len() == 1 };
    fixture.until("the map is adopted", adopted).await;
    fixture.until_condition("a", "Degraded", "True", "NotOurs").await;
    let login = fixture.here::<Secret>().get("a-login").await.unwrap();
    assert!(login.owner_references().is_empty(), "the Secret is not");
}
