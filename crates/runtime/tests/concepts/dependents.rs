//! Objects of one's children, such as the pods of a StatefulSet: read, patched and deleted by a relation.

use crate::support::{Fixture, Thing, Why, map, of};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::json;
use windlass::{Controller, Observed, Plan, Refusal, Relation};

/// The first of those that are labelled with the thing's name leads; a large thing restarts the others.
fn decide(thing: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    let names = observed.names::<ConfigMap>()?;
    let leads = json!({"metadata": {"labels": {"role": "leader"}}});
    let mut plan = Plan::new();
    for (place, name) in names.iter().enumerate() {
        plan = match place {
            0 => plan.patch::<ConfigMap>(name, &leads, Why::Needed),
            _ if thing.spec.size > 1 => plan.delete::<ConfigMap>(name, Why::Needed),
            _ => plan,
        };
    }
    Ok(plan)
}

fn controller() -> Controller<Thing> {
    Controller::deciding(decide)
        .watches::<ConfigMap>(|thing| Relation::labelled([("of", thing.name_any())]))
        .patches::<ConfigMap>()
        .deletes::<ConfigMap>()
}

async fn make(fixture: &Fixture, name: &str, of: &str) {
    let mut map = map(name, "x", "y");
    map.metadata.labels = Some([("of".to_owned(), of.to_owned())].into());
    fixture.here::<ConfigMap>().create(&PostParams::default(), &map).await.unwrap();
}

async fn role(fixture: &Fixture, name: &str) -> Option<String> {
    let map = fixture.here::<ConfigMap>().get_opt(name).await.unwrap()?;
    map.labels().get("role").cloned()
}

#[tokio::test]
async fn what_others_own_is_patched_once_and_deleted_by_the_relation() {
    let fixture = Fixture::new().await;
    for (name, of) in [("m-0", "a"), ("m-1", "a"), ("n-0", "b")] {
        make(&fixture, name, of).await;
    }
    fixture.thing("a", 1).await;
    let _operator = fixture.run(controller());
    fixture
        .until("the first leads", || async { role(&fixture, "m-0").await.as_deref() == Some("leader") })
        .await;
    fixture.until_silent().await;
    let patches = || fixture.writes().iter().filter(|write| *write == "patch configmaps/ m-0").count();
    assert_eq!(patches(), 1, "{:?}", fixture.writes());
    let first = fixture.here::<ConfigMap>().get("m-0").await.unwrap();
    assert!(first.owner_references().is_empty() && !first.labels().contains_key("windlass.dev/controller"));
    // What somebody undoes is done again.
    fixture.merge::<ConfigMap>("m-0", json!({"metadata": {"labels": {"role": null}}})).await;
    fixture.until("the first leads again", || async { role(&fixture, "m-0").await.is_some() }).await;
    fixture.resize("a", 2).await;
    let gone = || async { fixture.here::<ConfigMap>().get_opt("m-1").await.unwrap().is_none() };
    fixture.until("the second is deleted", gone).await;
    // Whoever makes it anew meets the same.
    make(&fixture, "m-1", "a").await;
    fixture.until("the second is deleted again", gone).await;
    assert!(fixture.here::<ConfigMap>().get_opt("n-0").await.unwrap().is_some());
    assert_eq!(role(&fixture, "n-0").await, None);
}

#[tokio::test]
async fn what_the_object_is_not_related_to_is_left_alone() {
    let fixture = Fixture::new().await;
    make(&fixture, "n-0", "b").await;
    fixture.thing("a", 1).await;
    let careless = Controller::deciding(|thing: &Thing, _: &Observed| {
        let plan = Plan::new().delete::<ConfigMap>(of(thing, "absent"), Why::Needed);
        Ok(plan.delete::<ConfigMap>("n-0", Why::Needed))
    });
    let _operator = fixture.run(
        careless
            .watches::<ConfigMap>(|thing| Relation::labelled([("of", thing.name_any())]))
            .deletes::<ConfigMap>(),
    );
    fixture.until_condition("a", "Degraded", "True", "NotRelated").await;
    assert!(fixture.here::<ConfigMap>().get_opt("n-0").await.unwrap().is_some());
}
