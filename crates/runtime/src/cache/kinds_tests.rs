//! The cache and kinds that come and go, and objects that do not fit their types.

use super::Namespaces;
use super::world::{World, eventually, key};
use crate::kind::Kind;
use anyhow::{Context, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::{Client, CustomResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::faults::{Act, Pattern, Which};
use windlass_apiserver::status::Status;

/// Stricter than its definition, which takes any size.
#[derive(CustomResource, Serialize, Deserialize, Debug, Clone, JsonSchema)]
#[kube(group = "cache.windlass.dev", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: i64,
}

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.cache.windlass.dev"},
        "spec": {
            "group": "cache.windlass.dev", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn dynamic<'a>(client: &Client, kind: &Kind, namespace: impl Into<Option<&'a str>>) -> Api<DynamicObject> {
    match namespace.into() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind.api_resource()),
        None => Api::all_with(client.clone(), &kind.api_resource()),
    }
}

async fn define(world: &World) -> anyhow::Result<()> {
    let kind = Kind::of::<CustomResourceDefinition>();
    let definition = serde_json::from_value(definition())?;
    dynamic(&world.client, &kind, None).create(&PostParams::default(), &definition).await?;
    Ok(())
}

async fn widget(world: &World, name: &str, size: Value) -> anyhow::Result<()> {
    let widgets = dynamic(&world.client, &Kind::of::<Widget>(), "default");
    let widget = json!({
        "apiVersion": "cache.windlass.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size},
    });
    widgets.create(&PostParams::default(), &serde_json::from_value(widget)?).await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_that_appears_vanishes_and_is_made_again_is_followed() -> anyhow::Result<()> {
    let mut world = World::new(Namespaces::All);
    let typed = world.cache.store::<Widget>();
    let untyped = world.cache.store_of::<DynamicObject>(Kind::of::<Widget>());
    world.start();
    eventually("it says what is missing", || {
        world
            .cache
            .stats()
            .iter()
            .all(|stats| stats.trouble.as_deref() == Some("the server has no such kind"))
    })
    .await?;
    ensure!(world.cache.unsynced().len() == 2);
    define(&world).await?;
    widget(&world, "a", 1.into()).await?;
    world.cache.synced().await;
    eventually("seen", || typed.len() == 1 && untyped.len() == 1).await?;
    let held = untyped.get(&key("default", "a")).context("held")?;
    ensure!(held.types.as_ref().is_some_and(|types| types.kind == "Widget"));
    ensure!(held.data["spec"]["size"] == 1);

    let crd = Kind::of::<CustomResourceDefinition>();
    let definitions = dynamic(&world.client, &crd, None);
    definitions.delete("widgets.cache.windlass.dev", &DeleteParams::default()).await?;
    eventually("gone with its kind", || typed.is_empty() && untyped.is_empty()).await?;
    eventually("really gone", || world.stats("Widget").trouble.is_some()).await?;
    define(&world).await?;
    widget(&world, "b", 2.into()).await?;
    eventually("made again", || typed.get(&key("default", "b")).is_some() && untyped.len() == 1).await?;
    ensure!(world.tasks.try_join_next().is_none());
    Ok(())
}

#[tokio::test]
async fn a_kind_that_vanishes_unseen_takes_its_objects_along() -> anyhow::Result<()> {
    let mut world = World::new(Namespaces::All);
    define(&world).await?;
    widget(&world, "a", 1.into()).await?;
    let store = world.cache.store::<Widget>();
    world.start();
    store.synced().await;
    ensure!(store.len() == 1);
    // As from a server that lost the kind and does not tell of its objects' ends.
    let missing = Act::Refuse(Box::new(Status::no_such_resource()));
    let missing = world.api.faults().add(Pattern::watches().user("cache").then(Which::Every, missing));
    world.drop_watches();
    eventually("believed after a while", || store.is_empty()).await?;
    ensure!(world.stats("Widget").bytes == 0);
    world.api.faults().remove(missing);
    eventually("back", || store.len() == 1).await
}

#[tokio::test]
async fn an_object_that_does_not_fit_its_type_is_passed_over_and_counted() -> anyhow::Result<()> {
    let mut world = World::new("default");
    define(&world).await?;
    widget(&world, "bad", "huge".into()).await?;
    widget(&world, "good", 1.into()).await?;
    let store = world.cache.store::<Widget>();
    world.start();
    store.synced().await;
    ensure!(store.len() == 1);
    widget(&world, "worse", json!({})).await?;
    widget(&world, "better", 2.into()).await?;
    eventually("the watch goes on", || store.get(&key("default", "better")).is_some()).await?;
    let stats = world.stats("Widget");
    ensure!(stats.undecodable == 2 && stats.objects == 2, "{stats:?}");
    ensure!(stats.unreadable.keys().eq(["default/bad", "default/worse"]), "{stats:?}");
    world.drop_watches();
    let widgets = dynamic(&world.client, &Kind::of::<Widget>(), "default");
    let patch = Patch::Merge(json!({"spec": {"size": 7}}));
    widgets.patch("bad", &PatchParams::default(), &patch).await?;
    eventually("mended", || store.get(&key("default", "bad")).is_some()).await?;
    let stats = world.stats("Widget");
    ensure!(stats.undecodable == 2, "no event comes twice: {stats:?}");
    ensure!(stats.unreadable.keys().eq(["default/worse"]));
    Ok(())
}
