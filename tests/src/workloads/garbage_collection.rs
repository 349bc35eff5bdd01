//! Garbage collection: background, foreground and orphan deletion.

use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, PropagationPolicy};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use std::time::Duration;
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("background deletion deletes dependents after their owner, transitively", background)
        .test("foreground deletion deletes dependents before their owner", foreground)
        .test("orphan deletion removes the owner references of dependents", orphan)
        .test("an object is deleted with the last of its owners", several_owners)
        .test("an owner of the same name and another UID is absent", same_name)
        .test("an owner that never existed is absent", absent)
        .test("dependents of an owner of an unknown kind are kept", unknown_kind)
        .test("objects in an ownership cycle are deleted together, in the foreground too", circle)
        .test(
            "an owner reference to another namespace is invalid, with the event OwnerRefInvalidNamespace",
            wrong_namespace,
        )
        .test("a cluster-scoped dependent of a namespaced owner is kept, with an event", cluster_scoped)
        .test("foreground deletion does not wait for dependents without blockOwnerDeletion", not_blocking)
        .test("foreground deletion waits for a dependent with a finalizer", held)
        .test("garbage collection includes objects of a new CRD", new_kind)
        .test("hundreds of dependents are deleted with their owner", many)
        .test("an event is deleted an hour after its last occurrence", old_events)
}

fn owned_by(name: &str, owners: &[Value]) -> ConfigMap {
    object(name, json!({ "metadata": { "ownerReferences": owners } }))
}

fn reference(owner: &ConfigMap, blocks: bool) -> Value {
    let meta = &owner.metadata;
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": meta.name, "uid": meta.uid, "blockOwnerDeletion": blocks })
}

async fn map(cluster: &TestCluster, name: &str, owners: &[&ConfigMap]) -> anyhow::Result<ConfigMap> {
    let owners: Vec<Value> = owners.iter().map(|owner| reference(owner, true)).collect();
    cluster.create(owned_by(name, &owners)).await
}

async fn delete(cluster: &TestCluster, name: &str, how: PropagationPolicy) -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), cluster.namespace());
    let params = DeleteParams { propagation_policy: Some(how), ..DeleteParams::default() };
    maps.delete(name, &params).await?;
    Ok(())
}

/// Time in which something would have happened that must not.
async fn a_while(cluster: &TestCluster) {
    cluster.run_clock_while(windlass_clock::Clock::real().sleep(Duration::from_millis(1500))).await;
}

async fn gone(cluster: &TestCluster, names: &[&str]) -> anyhow::Result<()> {
    for name in names {
        cluster.eventually::<ConfigMap>(name).is_deleted().await?;
    }
    Ok(())
}

/// `a` owns `b` and `c`, `b` owns `d`.
async fn family(cluster: &TestCluster) -> anyhow::Result<[ConfigMap; 4]> {
    let a = map(cluster, "a", &[]).await?;
    let b = map(cluster, "b", &[&a]).await?;
    let c = map(cluster, "c", &[&a]).await?;
    let d = map(cluster, "d", &[&b]).await?;
    Ok([a, b, c, d])
}

async fn background(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    family(&cluster).await?;
    map(&cluster, "other", &[]).await?;
    delete(&cluster, "a", PropagationPolicy::Background).await?;
    gone(&cluster, &["a", "b", "c", "d"]).await?;
    cluster.get::<ConfigMap>("other").await?;
    Ok(())
}

async fn foreground(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let [a, ..] = family(&cluster).await?;
    // Of another kind, and held: so that it can be seen who waits for whom.
    let secret = json!({ "metadata": { "ownerReferences": [reference(&a, true)], "finalizers": ["example.com/held"] } });
    cluster.create(object::<Secret>("last", secret)).await?;
    delete(&cluster, "a", PropagationPolicy::Foreground).await?;
    gone(&cluster, &["d", "b", "c"]).await?;
    let waiting: ConfigMap = cluster.get("a").await?;
    ensure!(waiting.metadata.deletion_timestamp.is_some());
    ensure!(waiting.metadata.finalizers == Some(vec!["foregroundDeletion".into()]), "{waiting:?}");
    cluster.eventually::<Secret>("last").is("goes", |it| it.metadata.deletion_timestamp.is_some()).await?;
    cluster.patch::<Secret>("last", json!({ "metadata": { "finalizers": null } })).await?;
    gone(&cluster, &["a"]).await?;
    ensure!(cluster.find::<Secret>("last").await?.is_none());
    Ok(())
}

async fn orphan(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    family(&cluster).await?;
    delete(&cluster, "a", PropagationPolicy::Orphan).await?;
    gone(&cluster, &["a"]).await?;
    for (name, owners) in [("b", 0), ("c", 0), ("d", 1)] {
        let found: ConfigMap = cluster.get(name).await?;
        let named = found.metadata.owner_references.unwrap_or_default();
        ensure!(named.len() == owners, "{name} names {named:?}");
        ensure!(found.metadata.deletion_timestamp.is_none());
    }
    a_while(&cluster).await;
    cluster.get::<ConfigMap>("b").await?;
    Ok(())
}

async fn several_owners(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let (a, b) = (map(&cluster, "a", &[]).await?, map(&cluster, "b", &[]).await?);
    map(&cluster, "child", &[&a, &b]).await?;
    delete(&cluster, "a", PropagationPolicy::Background).await?;
    let names = |child: &ConfigMap| -> Vec<String> {
        child.metadata.owner_references.iter().flatten().map(|owner| owner.name.clone()).collect()
    };
    cluster.eventually::<ConfigMap>("child").is("names only b", |child| names(child) == ["b"]).await?;
    delete(&cluster, "b", PropagationPolicy::Foreground).await?;
    gone(&cluster, &["b", "child"]).await
}

async fn same_name(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let a = map(&cluster, "a", &[]).await?;
    let mut wrong = reference(&a, true);
    wrong["uid"] = json!("8f7f6dd0-3d0c-4f9f-8d0a-2f1d0c4a5b6e");
    cluster.create(owned_by("of-another", &[wrong])).await?;
    map(&cluster, "of-this", &[&a]).await?;
    gone(&cluster, &["of-another"]).await?;
    cluster.get::<ConfigMap>("of-this").await?;
    Ok(())
}

async fn absent(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let never = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "never", "uid": "3b1f6f8e-0000-4000-8000-000000000000" });
    cluster.create(owned_by("child", &[never])).await?;
    gone(&cluster, &["child"]).await
}

async fn unknown_kind(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let never = json!({ "apiVersion": "nobody.example.com/v1", "kind": "Knows", "name": "it", "uid": "3b1f6f8e-0000-4000-8000-000000000001" });
    let a = map(&cluster, "a", &[]).await?;
    cluster.create(owned_by("child", std::slice::from_ref(&never))).await?;
    cluster.create(owned_by("of-two", &[never, reference(&a, true)])).await?;
    delete(&cluster, "a", PropagationPolicy::Background).await?;
    a_while(&cluster).await;
    cluster.get::<ConfigMap>("child").await?;
    cluster.get::<ConfigMap>("of-two").await?;
    Ok(())
}

async fn circle(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    for how in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        let a = map(&cluster, "a", &[]).await?;
        let b = map(&cluster, "b", &[&a]).await?;
        let c = map(&cluster, "c", &[&b]).await?;
        let owners = json!({ "metadata": { "ownerReferences": [reference(&c, true)] } });
        cluster.patch::<ConfigMap>("a", owners).await?;
        delete(&cluster, "b", how.clone()).await?;
        gone(&cluster, &["a", "b", "c"]).await.with_context(|| format!("{how:?}"))?;
    }
    Ok(())
}

async fn wrong_namespace(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let name = format!("{}-other", cluster.namespace());
    cluster.create(object::<Namespace>(&name, json!({}))).await?;
    let other = cluster.in_namespace(&name);
    let owner = map(&other, "owner", &[]).await?;
    map(&cluster, "child", &[&owner]).await?;
    gone(&cluster, &["child"]).await?;
    cluster.eventually::<ConfigMap>("child").has_event("OwnerRefInvalidNamespace").await?;
    other.get::<ConfigMap>("owner").await?;
    cluster.in_namespace("").delete::<Namespace>(&name).await
}

async fn cluster_scoped(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let owner = map(&cluster, "owner", &[]).await?;
    let name = format!("{}-outside", cluster.namespace());
    let fields = json!({ "metadata": { "ownerReferences": [reference(&owner, true)] } });
    let created = cluster.create(object::<Namespace>(&name, fields)).await?;
    let default = cluster.in_namespace("default");
    let told = |events: &Vec<Event>| {
        events.iter().any(|event| {
            event.reason.as_deref() == Some("OwnerRefInvalidNamespace")
                && event.involved_object.uid == created.metadata.uid
        })
    };
    cluster.until("people are told", || default.list::<Event>(), told).await?;
    delete(&cluster, "owner", PropagationPolicy::Background).await?;
    a_while(&cluster).await;
    ensure!(cluster.get::<Namespace>(&name).await?.metadata.deletion_timestamp.is_none());
    cluster.delete::<Namespace>(&name).await
}

async fn not_blocking(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let a = map(&cluster, "a", &[]).await?;
    let fields = json!({ "metadata": { "ownerReferences": [reference(&a, false)], "finalizers": ["example.com/held"] } });
    cluster.create(object::<ConfigMap>("child", fields)).await?;
    delete(&cluster, "a", PropagationPolicy::Foreground).await?;
    gone(&cluster, &["a"]).await?;
    cluster
        .eventually::<ConfigMap>("child")
        .is("goes", |it| it.metadata.deletion_timestamp.is_some())
        .await?;
    cluster.patch::<ConfigMap>("child", json!({ "metadata": { "finalizers": null } })).await?;
    gone(&cluster, &["child"]).await
}

async fn held(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let a = map(&cluster, "a", &[]).await?;
    let fields = json!({ "metadata": { "ownerReferences": [reference(&a, true)], "finalizers": ["example.com/held"] } });
    cluster.create(object::<ConfigMap>("child", fields)).await?;
    delete(&cluster, "a", PropagationPolicy::Foreground).await?;
    cluster
        .eventually::<ConfigMap>("child")
        .is("goes", |it| it.metadata.deletion_timestamp.is_some())
        .await?;
    a_while(&cluster).await;
    cluster.get::<ConfigMap>("a").await?;
    // It does not block any more, though it is still there.
    let owners = json!({ "metadata": { "ownerReferences": [reference(&a, false)] } });
    cluster.patch::<ConfigMap>("child", owners).await?;
    gone(&cluster, &["a"]).await?;
    cluster.patch::<ConfigMap>("child", json!({ "metadata": { "finalizers": null } })).await?;
    gone(&cluster, &["child"]).await
}

async fn new_kind(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let group = format!("{}.example.com", cluster.namespace());
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let definition = json!({ "spec": {
        "group": group, "scope": "Namespaced",
        "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
        "versions": [
            { "name": "v1", "served": true, "storage": true, "schema": schema },
            { "name": "v1beta1", "served": true, "storage": false, "schema": schema },
        ],
    } });
    let name = format!("widgets.{group}");
    cluster.create(object::<CustomResourceDefinition>(&name, definition)).await?;
    cluster.eventually::<CustomResourceDefinition>(&name).has_condition("Established", true).await?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Widget"));
    let widgets: Api<DynamicObject> = Api::namespaced_with(cluster.client(), cluster.namespace(), &resource);
    let make = |name: &str| DynamicObject::new(name, &resource);
    let owner = cluster
        .until(
            "widgets are served",
            || async { Ok(widgets.create(&Default::default(), &make("owner")).await?) },
            |_| true,
        )
        .await?;
    let uid = owner.metadata.uid.context("it has one")?;
    // Named in another version than the one that is preferred.
    let reference =
        json!({ "apiVersion": format!("{group}/v1beta1"), "kind": "Widget", "name": "owner", "uid": uid });
    cluster.create(owned_by("child", std::slice::from_ref(&reference))).await?;
    let mut widget = make("small");
    widget.metadata.owner_references = Some(vec![serde_json::from_value(reference)?]);
    widgets.create(&Default::default(), &widget).await?;
    widgets.delete("owner", &DeleteParams::background()).await?;
    // The reference asks for new kinds every half minute.
    cluster.eventually::<ConfigMap>("child").within(Duration::from_secs(60)).is_deleted().await?;
    cluster
        .until(
            "the widgets are gone",
            || async { Ok(widgets.list(&Default::default()).await?.items.len()) },
            |left| *left == 0,
        )
        .await?;
    cluster.delete::<CustomResourceDefinition>(&name).await
}

async fn many(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let owner = map(&cluster, "owner", &[]).await?;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), cluster.namespace());
    for some in (0..300).collect::<Vec<_>>().chunks(25) {
        let create = |number: &i32| {
            let (maps, new) =
                (maps.clone(), owned_by(&format!("child-{number}"), &[reference(&owner, true)]));
            async move { maps.create(&Default::default(), &new).await }
        };
        futures::future::try_join_all(some.iter().map(create)).await?;
    }
    delete(&cluster, "owner", PropagationPolicy::Foreground).await?;
    let left = || async {
        let all = cluster.list::<ConfigMap>().await?;
        Ok(all.iter().filter(|map| map.metadata.owner_references.is_some()).count())
    };
    cluster.until("all dependents are gone", left, |left| *left == 0).await?;
    gone(&cluster, &["owner"]).await
}

async fn old_events(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let about = json!({ "kind": "ConfigMap", "namespace": cluster.namespace(), "name": "it" });
    let event = |name: &str| {
        object::<Event>(name, json!({ "involvedObject": about, "reason": "Told", "type": "Normal" }))
    };
    cluster.create(event("first")).await?;
    if cluster.embedded().is_none() {
        // An hour is too long for a test: there it is only seen that it stays.
        a_while(&cluster).await;
        cluster.get::<Event>("first").await?;
        return Ok(());
    }
    cluster.advance(Duration::from_secs(50 * 60)).await;
    cluster.create(event("second")).await?;
    cluster.get::<Event>("first").await?;
    cluster.advance(Duration::from_secs(12 * 60)).await;
    cluster.eventually::<Event>("first").is_deleted().await?;
    cluster.get::<Event>("second").await?;
    Ok(())
}
