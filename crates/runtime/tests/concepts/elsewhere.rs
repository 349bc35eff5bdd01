//! Children in other namespaces than their object, or outside of namespaces; and objects that are in none themselves.

use crate::support::{Fixture, HERE, Thing, Why, entry, map, named};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Controller, Observed, Plan, Refusal};

/// A kind outside of namespaces.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "test.windlass.dev", version = "v1", kind = "Realm")]
pub struct RealmSpec {
    pub namespaces: Vec<String>,
}

fn in_namespace(mut map: ConfigMap, namespace: &str) -> ConfigMap {
    map.metadata.namespace = Some(namespace.to_owned());
    map
}

async fn namespaces(fixture: &Fixture, names: &[&str]) {
    let all: Api<Namespace> = Api::all(fixture.client.clone());
    for name in names {
        let namespace = Namespace { metadata: named(*name), ..Default::default() };
        all.create(&PostParams::default(), &namespace).await.unwrap();
    }
}

fn maps(fixture: &Fixture, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(fixture.client.clone(), namespace)
}

async fn is_there(fixture: &Fixture, namespace: &str, name: &str) -> bool {
    maps(fixture, namespace).get_opt(name).await.unwrap().is_some()
}

#[tokio::test]
async fn an_object_outside_of_namespaces_has_children_in_several() {
    let fixture = Fixture::new().await;
    fixture.define(Realm::crd()).await;
    namespaces(&fixture, &["one", "two"]).await;
    let decide = |realm: &Realm, observed: &Observed| -> Result<Plan, Refusal> {
        let plan = Plan::new();
        let all = realm.spec.namespaces.iter();
        for namespace in all.clone() {
            // Observed by namespace, since all have one name.
            observed.get_in::<ConfigMap>(namespace, "realm")?;
        }
        Ok(all.fold(plan, |plan, namespace| {
            plan.apply(in_namespace(map("realm", "of", realm.name_any()), namespace), Why::Needed)
        }))
    };
    let realms: Api<Realm> = Api::all(fixture.client.clone());
    let realm = Realm::new("r", RealmSpec { namespaces: vec!["one".into(), "two".into()] });
    realms.create(&PostParams::default(), &realm).await.unwrap();
    let _operator = fixture.run(Controller::deciding(decide).owns::<ConfigMap>().prunes::<ConfigMap>());
    fixture.until("one has its map", || is_there(&fixture, "one", "realm")).await;
    fixture.until("two has its map", || is_there(&fixture, "two", "realm")).await;
    let child = maps(&fixture, "one").get("realm").await.unwrap();
    assert_eq!(child.owner_references()[0].kind, "Realm");
    let theirs = Patch::Merge(json!({"data": {"of": "nobody"}}));
    maps(&fixture, "one").patch("realm", &PatchParams::default(), &theirs).await.unwrap();
    let mended = || async {
        let child = maps(&fixture, "one").get("realm").await.unwrap();
        entry(&child, "of").as_deref() == Some("r")
    };
    fixture.until("what was changed is mended", mended).await;
    let fewer = Patch::Merge(json!({"spec": {"namespaces": ["two"]}}));
    realms.patch("r", &PatchParams::default(), &fewer).await.unwrap();
    fixture.until("one is pruned", || async { !is_there(&fixture, "one", "realm").await }).await;
    assert!(is_there(&fixture, "two", "realm").await);
}

/// A map in another namespace, and a role in none.
fn decide(thing: &Thing, _: &Observed) -> Result<Plan, Refusal> {
    let far = in_namespace(map("far", "size", thing.spec.size), "one");
    let role = ClusterRole { metadata: named("far-role"), ..Default::default() };
    let plan = Plan::new().apply(far, Why::Needed);
    Ok(if thing.spec.size > 1 { plan.apply(role, Why::Needed) } else { plan })
}

#[tokio::test]
async fn children_elsewhere_are_kept_pruned_and_go_with_their_object() {
    let fixture = Fixture::new().await;
    namespaces(&fixture, &["one"]).await;
    fixture.thing("a", 2).await;
    let controller = Controller::deciding(decide)
        .owns_anywhere::<ConfigMap>()
        .owns_anywhere::<ClusterRole>()
        .prunes::<ClusterRole>();
    let _operator = fixture.run(controller);
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    let roles: Api<ClusterRole> = Api::all(fixture.client.clone());
    let role = || async { roles.get_opt("far-role").await.unwrap() };
    let far = maps(&fixture, "one").get("far").await.unwrap();
    assert!(far.owner_references().is_empty(), "the API server would take it for an orphan");
    assert_eq!(far.annotations()["windlass.dev/owner"], format!("Thing.test.windlass.dev/{HERE}/a"));
    assert!(role().await.is_some());
    // What is done to them is noticed.
    maps(&fixture, "one").delete("far", &DeleteParams::default()).await.unwrap();
    fixture.until("it is made again", || is_there(&fixture, "one", "far")).await;
    fixture.resize("a", 1).await;
    fixture.until("the role is pruned", || async { role().await.is_none() }).await;
    fixture.until_silent().await;
    let writes = fixture.writes().len();
    fixture.until_silent().await;
    assert_eq!(fixture.writes().len(), writes);
    // A finalizer on a child is waited for.
    let held = Patch::Merge(json!({"metadata": {"finalizers": ["test.windlass.dev/held"]}}));
    maps(&fixture, "one").patch("far", &PatchParams::default(), &held).await.unwrap();
    fixture.here::<Thing>().delete("a", &DeleteParams::default()).await.unwrap();
    let going =
        || async { maps(&fixture, "one").get("far").await.unwrap().metadata.deletion_timestamp.is_some() };
    fixture.until("the child is deleted", going).await;
    fixture.until_silent().await;
    fixture.until_condition("a", "Ready", "False", "ChildrenLeft").await;
    let waits = fixture.here::<Thing>().get("a").await.expect("it waits for its child");
    let told = waits.status.unwrap().conditions.into_iter().find(|one| one.type_ == "Progressing").unwrap();
    assert_eq!(
        told.message,
        "waits until ConfigMap one/far is gone, which is held by test.windlass.dev/held"
    );
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps(&fixture, "one").patch("far", &PatchParams::default(), &free).await.unwrap();
    fixture
        .until("it goes", || async { fixture.here::<Thing>().get_opt("a").await.unwrap().is_none() })
        .await;
    assert!(!is_there(&fixture, "one", "far").await);
}

#[tokio::test]
async fn a_child_elsewhere_must_be_meant() {
    let fixture = Fixture::new().await;
    namespaces(&fixture, &["one"]).await;
    fixture.thing("a", 1).await;
    let controller = Controller::deciding(decide).owns::<ConfigMap>();
    let counts = controller.counts();
    let _operator = fixture.run(controller);
    fixture.until_condition("a", "Degraded", "True", "OtherNamespace").await;
    fixture.until("it is not tried again", || async { counts.terminal_errors() >= 1 }).await;
    assert!(!is_there(&fixture, "one", "far").await);
}
