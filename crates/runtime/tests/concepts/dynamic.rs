//! Kinds that are known only when the operator runs.

use crate::elsewhere::{Realm, RealmSpec};
use crate::support::{Fixture, Thing, Why, entry};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::core::DynamicObject;
use kube::{Api, CustomResourceExt, ResourceExt};
use serde_json::json;
use windlass::{Controller, Kind, Observed, Plan, Refusal};

/// A config map with the size, made and seen without its type.
fn decide(thing: &DynamicObject, observed: &Observed) -> Result<Plan, Refusal> {
    let kind = Kind::of::<ConfigMap>();
    let observed = observed.list_of(&kind)?.len();
    let size = thing.data["spec"]["size"].to_string();
    let name = format!("{}-size", thing.name_any());
    let plan =
        Plan::new().apply_of(kind, json!({"metadata": {"name": name}, "data": {"is": size}}), Why::Needed);
    Ok(plan.status(json!({"phase": format!("{observed} observed")})))
}

#[tokio::test]
async fn an_operator_of_a_kind_without_a_type_does_the_same() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 3).await;
    let controller = Controller::dynamic(Kind::of::<Thing>(), decide).owns_kind(Kind::of::<ConfigMap>());
    let _operator = fixture.run(controller);
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    let says = || async {
        let map = fixture.here::<ConfigMap>().get_opt("a-size").await.unwrap();
        map.and_then(|map| entry(&map, "is"))
    };
    assert_eq!(says().await.as_deref(), Some("3"));
    let phase = fixture.here::<Thing>().get("a").await.unwrap().status.unwrap().phase;
    assert_eq!(phase.as_deref(), Some("1 observed"));
    fixture.until_silent().await;
    assert_eq!(fixture.writes().len(), 2, "the child and the status: {:?}", fixture.writes());
    fixture.resize("a", 4).await;
    fixture.until("the change is applied", || async { says().await.as_deref() == Some("4") }).await;
    fixture.merge::<ConfigMap>("a-size", json!({"data": {"is": "5"}})).await;
    fixture.until("what another changed is mended", || async { says().await.as_deref() == Some("4") }).await;
}

#[tokio::test]
async fn a_kind_without_conditions_gets_none() {
    let fixture = Fixture::new().await;
    fixture.define(Realm::crd()).await;
    let realms: Api<Realm> = Api::all(fixture.client.clone());
    let realm = Realm::new("r", RealmSpec::default());
    realms.create(&PostParams::default(), &realm).await.unwrap();
    let controller = Controller::dynamic(Kind::of::<Realm>(), |_, _| Ok(Plan::new()));
    let counts = controller.counts();
    let _operator = fixture.run(controller);
    fixture.until("a reconcile went well", || async { counts.by_result()[0].1 >= 1 }).await;
    fixture.until_silent().await;
    assert_eq!((counts.errors(), fixture.writes()), (0, Vec::new()));
}
