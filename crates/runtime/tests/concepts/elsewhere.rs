//! Children in other namespaces than their object, or outside of namespaces; and objects that are in none themselves.

use crate::ground::{Ground, HERE, Thing, Why, entry, map, named};
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

async fn namespaces(ground: &Ground, names: &[&str]) {
    let all: Api<Namespace> = Api::all(ground.client.clone());
    for name in names {
        let namespace = Namespace { metadata: named(*name), ..Default::default() };
        all.create(&PostParams::default(), &namespace).await.unwrap();
    }
}

fn maps(ground: &Ground, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(ground.client.clone(), namespace)
}

async fn is_there(ground: &Ground, namespace: &str, name: &str) -> bool {
    maps(ground, namespace).get_opt(name).await.unwrap().is_some()
}

#[tokio::test]
async fn an_object_outside_of_namespaces_has_children_in_several() {
    let ground = Ground::new().await;
    ground.define(Realm::crd()).await;
    namespaces(&ground, &["one", "two"]).await;
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
    let realms: Api<Realm> = Api::all(ground.client.clone());
    let realm = Realm::new("r", RealmSpec { namespaces: vec!["one".into(), "two".into()] });
    realms.create(&PostParams::default(), &realm).await.unwrap();
    let _operator = ground.run(Controller::deciding(decide).owns::<ConfigMap>().prunes::<ConfigMap>());
    ground.until("one has its map", || is_there(&ground, "one", "realm")).await;
    ground.until("two has its map", || is_there(&ground, "two", "realm")).await;
    let child = maps(&ground, "one").get("realm").await.unwrap();
    assert_eq!(child.owner_references()[0].kind, "Realm");
    let theirs = Patch::Merge(json!({"data": {"of": "nobody"}}));
    maps(&ground, "one").patch("realm", &PatchParams::default(), &theirs).await.unwrap();
    let mended = || async {
        let child = maps(&ground, "one").get("realm").await.unwrap();
        entry(&child, "of").as_deref() == Some("r")
    };
    ground.until("what was changed is mended", mended).await;
    let fewer = Patch::Merge(json!({"spec": {"namespaces": ["two"]}}));
    realms.patch("r", &PatchParams::default(), &fewer).await.unwrap();
    ground.until("one is pruned", || async { !is_there(&ground, "one", "realm").await }).await;
    assert!(is_there(&ground, "two", "realm").await);
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
    let ground = Ground::new().await;
    namespaces(&ground, &["one"]).await;
    ground.thing("a", 2).await;
    let controller = Controller::deciding(decide)
        .owns_anywhere::<ConfigMap>()
        .owns_anywhere::<ClusterRole>()
        .prunes::<ClusterRole>();
    let _operator = ground.run(controller);
    ground.until_condition("a", "Ready", "True", "AsDeclared").await;
    let roles: Api<ClusterRole> = Api::all(ground.client.clone());
    let role = || async { roles.get_opt("far-role").await.unwrap() };
    let far = maps(&ground, "one").get("far").await.unwrap();
    assert!(far.owner_references().is_empty(), "the API server would take it for an orphan");
    assert_eq!(far.annotations()["windlass.dev/owner"], format!("Thing.test.windlass.dev/{HERE}/a"));
    assert!(role().await.is_some());
    // What is done to them is noticed.
    maps(&ground, "one").delete("far", &DeleteParams::default()).await.unwrap();
    ground.until("it is made again", || is_there(&ground, "one", "far")).await;
    ground.resize("a", 1).await;
    ground.until("the role is pruned", || async { role().await.is_none() }).await;
    ground.until_silent().await;
    let writes = ground.writes().len();
    ground.until_silent().await;
    assert_eq!(ground.writes().len(), writes);
    // A finalizer on a child is waited for.
    let held = Patch::Merge(json!({"metadata": {"finalizers": ["test.windlass.dev/held"]}}));
    maps(&ground, "one").patch("far", &PatchParams::default(), &held).await.unwrap();
    ground.here::<Thing>().delete("a", &DeleteParams::default()).await.unwrap();
    let going =
        || async { maps(&ground, "one").get("far").await.unwrap().metadata.deletion_timestamp.is_some() };
    ground.until("the child is deleted", going).await;
    ground.until_silent().await;
    ground.until_condition("a", "Ready", "False", "ChildrenLeft").await;
    let waits = ground.here::<Thing>().get("a").await.expect("it waits for its child");
    let told = waits.status.unwrap().conditions.into_iter().find(|one| one.type_ == "Progressing").unwrap();
    assert_eq!(
        told.message,
        "waits until ConfigMap one/far is gone, which is held by test.windlass.dev/held"
    );
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps(&ground, "one").patch("far", &PatchParams::default(), &free).await.unwrap();
    ground.until("it goes", || async { ground.here::<Thing>().get_opt("a").await.unwrap().is_none() }).await;
    assert!(!is_there(&ground, "one", "far").await);
}

#[tokio::test]
async fn a_child_elsewhere_must_be_meant() {
    let ground = Ground::new().await;
    namespaces(&ground, &["one"]).await;
    ground.thing("a", 1).await;
    let controller = Controller::deciding(decide).owns::<ConfigMap>();
    let counts = controller.counts();
    let _operator = ground.run(controller);
    ground.until_condition("a", "Degraded", "True", "OtherNamespace").await;
    ground.until("it is not tried again", || async { counts.terminal_errors() >= 1 }).await;
    assert!(!is_there(&ground, "one", "far").await);
}
