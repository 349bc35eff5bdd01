//! The cache on the embedded API and on a real Kubernetes: what it asks for is understood there, and means the same.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::cache::{Cache, Opened, Scope};
use windlass::{Key, Kind};
use windlass_clock::Clock;
use windlass_harness::{Suite, Target};
use windlass_tests::targets;
use windlass_tests::waiting::until;

fn main() -> ExitCode {
    Suite::on(targets::all())
        .limit(Duration::from_secs(120))
        .test("objects enter and leave a selector, with streamed lists and metadata only", selectors)
        .test("each of two namespaces is watched", namespaces)
        .test("a CRD that is created, deleted and created again is watched", kinds)
        .run()
}

/// A running cache; dropped, it ends.
struct Running {
    cache: Cache,
    _tasks: JoinSet<()>,
}

fn running(target: &Target, namespaces: Vec<String>) -> Running {
    let cache = Cache::new("c".into(), namespaces);
    let mut tasks = JoinSet::new();
    cache.start(&target.client(), &Clock::real(), &mut tasks);
    Running { cache, _tasks: tasks }
}

fn key(namespace: &str, name: &str) -> Key {
    Key::new("c".into(), Some(namespace), name)
}

async fn create(maps: &Api<ConfigMap>, name: &str, app: &str) -> anyhow::Result<()> {
    let map = json!({"metadata": {"name": name, "labels": {"app": app}}, "data": {"text": "something"}});
    maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
    Ok(())
}

async fn label(maps: &Api<ConfigMap>, name: &str, app: &str) -> anyhow::Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"app": app}}}));
    maps.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn selectors(target: Target) -> anyhow::Result<()> {
    let namespace = target.namespace().await?;
    let maps: Api<ConfigMap> = Api::namespaced(target.client(), &namespace);
    create(&maps, "a", "x").await?;
    create(&maps, "b", "y").await?;
    let Running { cache, _tasks } = running(&target, vec![namespace.clone()]);
    let labelled: Opened<PartialObjectMeta<ConfigMap>> =
        cache.open(Scope::default().labelled("app in (x, z)")?);
    let named: Opened<ConfigMap> = cache.open(Scope::default().with_fields("metadata.name=b")?);
    cache.synced().await;
    let here = |name: &str| labelled.get(&key(&namespace, name)).is_some();
    ensure!(here("a") && !here("b") && labelled.len() == 1);
    ensure!(named.len() == 1 && named.list()[0].data.is_some());
    let held = labelled.get(&key(&namespace, "a")).context("held")?;
    ensure!(held.types.is_none() && held.metadata.managed_fields.is_none());
    label(&maps, "b", "z").await?;
    label(&maps, "a", "y").await?;
    until("they changed places", || async { Ok(here("b") && !here("a")) }).await?;
    maps.delete("b", &DeleteParams::default()).await?;
    until("gone from both", || async { Ok(labelled.is_empty() && named.is_empty()) }).await?;
    let stats = cache.stats();
    ensure!(
        stats.iter().all(|stats| stats.synced && stats.undecodable == 0 && stats.bytes == 0),
        "{stats:?}"
    );
    Ok(())
}

async fn namespaces(target: Target) -> anyhow::Result<()> {
    let (one, two, other) = (target.namespace().await?, target.namespace().await?, target.namespace().await?);
    let Running { cache, _tasks } = running(&target, vec![one.clone(), two.clone()]);
    let maps: Opened<ConfigMap> = cache.open(Scope::default());
    maps.synced().await;
    for namespace in [&other, &one, &two] {
        create(&Api::namespaced(target.client(), namespace), "a", "x").await?;
    }
    let here = |namespace: &str| maps.get(&key(namespace, "a")).is_some();
    until("both are seen", || async { Ok(here(&one) && here(&two)) }).await?;
    ensure!(!here(&other));
    Ok(())
}

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.cache.windlass.dev"},
        "spec": {
            "group": "cache.windlass.dev", "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "listKind": "GadgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

async fn kinds(target: Target) -> anyhow::Result<()> {
    let namespace = target.namespace().await?;
    let kind = Kind {
        group: "cache.windlass.dev".into(),
        version: "v1".into(),
        kind: "Gadget".into(),
        plural: "gadgets".into(),
        namespaced: true,
    };
    let definitions: Api<CustomResourceDefinition> = Api::all(target.client());
    let gadgets: Api<DynamicObject> = Api::namespaced_with(target.client(), &namespace, &kind.api_resource());
    let Running { cache, _tasks } = running(&target, vec![namespace.clone()]);
    let store: Opened<DynamicObject> = cache.open_of(kind.clone(), Scope::default());
    until("it says what is missing", || async {
        Ok(store.stats().trouble.as_deref() == Some("the server has no such kind"))
    })
    .await?;
    for round in ["first", "second"] {
        definitions.create(&PostParams::default(), &serde_json::from_value(definition())?).await?;
        let gadget = DynamicObject::new(round, &kind.api_resource()).data(json!({"spec": {"size": 1}}));
        until("it can be created", || async {
            match gadgets.create(&PostParams::default(), &gadget).await {
                Ok(_) => Ok(true),
                // Established soon after, not at once.
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
        .await?;
        until("it is seen", || async { Ok(store.get(&key(&namespace, round)).is_some()) }).await?;
        ensure!(store.len() == 1, "{:?}", store.list());
        definitions.delete("gadgets.cache.windlass.dev", &DeleteParams::default()).await?;
        until("its objects are gone", || async { Ok(store.is_empty()) }).await?;
        until("and so is the kind", || async {
            let there = definitions.get_opt("gadgets.cache.windlass.dev").await?;
            Ok(there.is_none() && store.stats().trouble.is_some())
        })
        .await?;
    }
    Ok(())
}
