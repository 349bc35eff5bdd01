//! Children and others that are watched by their metadata alone.

use crate::support::{Fixture, OPERATOR, Thing, Why, entry, map, of};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use serde_json::json;
use windlass::{Controller, Observed, Plan, Refusal, Relation};
use windlass_apiserver::faults::{Act, Pattern, Which};

type Partial = PartialObjectMeta<ConfigMap>;

fn decide(thing: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    let others = observed.names::<Partial>()?;
    if thing.spec.about.is_some() {
        observed.list::<ConfigMap>()?;
    }
    let child = map(of(thing, "size"), "is", thing.spec.size);
    Ok(Plan::new().apply(child, Why::Needed).status(json!({"phase": format!("{} observed", others.len())})))
}

fn controller() -> Controller<Thing> {
    Controller::deciding(decide)
        .owns::<Partial>()
        .prunes::<ConfigMap>()
        .watches::<Partial>(|_| Relation::labelled([("app", "observed")]))
}

#[tokio::test]
async fn children_are_kept_as_declared_by_their_metadata_alone() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let operator = fixture.run(controller());
    let is = || async {
        let child = fixture.here::<ConfigMap>().get_opt("a-size").await.unwrap()?;
        entry(&child, "is")
    };
    fixture.until("it is made", || async { is().await.as_deref() == Some("1") }).await;
    fixture.resize("a", 2).await;
    fixture.until("it follows", || async { is().await.as_deref() == Some("2") }).await;
    // Contents that another changes are not cached, and put right all the same.
    fixture.merge::<ConfigMap>("a-size", json!({"data": {"is": "9"}})).await;
    fixture.until("it is put right", || async { is().await.as_deref() == Some("2") }).await;
    fixture.until_silent().await;
    operator.stop().await;

    // Another operator reads what is there, and writes nothing.
    let before = fixture.writes().len();
    let reads = Pattern::any().verbs(&["get"]).resource("configmaps").user(OPERATOR);
    let reads = fixture.api.faults().add(reads.then(Which::UpTo(0), Act::LoseRequest));
    let operator = fixture.run(controller());
    fixture.until("it looked", || async { fixture.api.faults().matched(reads) == Some(1) }).await;
    fixture.until_silent().await;
    assert_eq!(fixture.writes()[before..], [] as [String; 0]);
    assert_eq!(fixture.api.faults().matched(reads), Some(1), "once for its version");
    operator.stop().await;
}

#[tokio::test]
async fn others_are_seen_by_their_metadata_and_not_as_if_they_were_empty() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let _operator = fixture.run(controller());
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    let mut other = map("other", "is", "any");
    other.metadata.labels = Some([("app".to_owned(), "observed".to_owned())].into());
    fixture.here::<ConfigMap>().create(&Default::default(), &other).await.unwrap();
    fixture
        .until("it is observed", || async {
            let thing = fixture.here::<Thing>().get("a").await.unwrap();
            thing.status.and_then(|status| status.phase).as_deref() == Some("2 observed")
        })
        .await;
    fixture.merge::<Thing>("a", json!({"spec": {"about": "contents"}})).await;
    fixture.until_condition("a", "Ready", "False", "ObserveError").await;
    let message = fixture.condition("a", "Ready").await.unwrap().message;
    assert!(message.contains("only metadata is watched"), "{message}");
}
