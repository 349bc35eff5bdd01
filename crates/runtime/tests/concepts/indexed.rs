//! Relations by what is in other objects: an index of the operator's own leads there and back.

use crate::support::{Fixture, Thing, map};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::json;
use windlass::cache::Index;
use windlass::{Controller, Observed, Plan, Refusal, Relation};

/// By the thing that a config map says it is for.
const FOR: Index<ConfigMap> =
    Index::new("for", |map| map.data.iter().filter_map(|data| data.get("for").cloned()).collect());

fn decide(_: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    let names = observed.names::<ConfigMap>()?.join(" ");
    Ok(Plan::new().status(json!({"phase": names})))
}

#[tokio::test]
async fn who_is_related_by_an_index_is_seen_and_told() {
    let fixture = Fixture::new().await;
    for name in ["a", "b"] {
        fixture.thing(name, 1).await;
    }
    fixture.here::<ConfigMap>().create(&Default::default(), &map("first", "for", "a")).await.unwrap();
    let controller =
        Controller::deciding(decide).watches::<ConfigMap>(|thing| Relation::indexed(FOR, thing.name_any()));
    let _operator = fixture.run(controller);
    let sees = |thing: &'static str, names: &'static str| {
        let fixture = &fixture;
        async move {
            fixture
                .until(&format!("{thing} sees {names:?}"), || async {
                    let thing = fixture.here::<Thing>().get(thing).await.unwrap();
                    thing.status.and_then(|status| status.phase).as_deref() == Some(names)
                })
                .await;
        }
    };
    sees("a", "first").await;
    sees("b", "").await;
    fixture.here::<ConfigMap>().create(&Default::default(), &map("second", "for", "b")).await.unwrap();
    sees("b", "second").await;
    // From one to the other: both are told.
    fixture.merge::<ConfigMap>("first", json!({"data": {"for": "b"}})).await;
    sees("a", "").await;
    sees("b", "first second").await;
}
