//! Namespace deletion.

use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, config_map, named, object, pod, secret};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a namespace is deleted with all its objects", goes_with_all)
        .test(
            "a terminating namespace has conditions for remaining objects and finalizers",
            says_what_keeps_it,
        )
        .test("pods are deleted before the other objects of their namespace", pods_first)
        .test("a namespace waits for its metadata.finalizers", own_finalizers)
        .test("a namespace is deleted with custom resources whose conversion webhook is gone", unconverted)
}

async fn another(cluster: &TestCluster) -> anyhow::Result<(String, TestCluster)> {
    let name = format!("{}-ends", cluster.namespace());
    cluster.create(named::<Namespace>(&name)).await?;
    let there = cluster.in_namespace(&name);
    Ok((name, there))
}

fn said(namespace: &Namespace, of: &str) -> Option<(String, String, String)> {
    let conditions = namespace.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == of)?;
    Some((found.status.clone(), found.reason.clone()?, found.message.clone()?))
}

async fn goes_with_all(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let (name, there) = another(&cluster).await?;
    for number in 0..5 {
        there.create(config_map(format!("map-{number}"))).await?;
        there.create(secret(format!("secret-{number}"))).await?;
    }
    cluster.delete::<Namespace>(&name).await?;
    cluster.eventually::<Namespace>(&name).is_deleted().await?;
    ensure!(there.list::<ConfigMap>().await?.is_empty() && there.list::<Secret>().await?.is_empty());
    // The name is free again.
    cluster.create(named::<Namespace>(&name)).await?;
    there.create(config_map("again")).await?;
    cluster.delete::<Namespace>(&name).await
}

async fn says_what_keeps_it(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let (name, there) = another(&cluster).await?;
    let held = json!({ "metadata": { "finalizers": ["example.com/never"] } });
    for map in ["a", "b"] {
        there.create(object::<ConfigMap>(map, held.clone())).await?;
    }
    there.create(config_map("free")).await?;
    cluster.delete::<Namespace>(&name).await?;
    let going = cluster
        .eventually::<Namespace>(&name)
        .is("says that finalizers remain", |it| {
            said(it, "NamespaceFinalizersRemaining").is_some_and(|it| it.0 == "True")
        })
        .await?;
    let condition = |of: &str| said(&going, of).with_context(|| format!("no {of}"));
    let (_, reason, message) = condition("NamespaceFinalizersRemaining")?;
    ensure!(reason == "SomeFinalizersRemain");
    ensure!(
        message
            == "Some content in the namespace has finalizers remaining: example.com/never in 2 resource instances",
        "{message}"
    );
    let (status, reason, message) = condition("NamespaceContentRemaining")?;
    ensure!((status.as_str(), reason.as_str()) == ("True", "SomeResourcesRemain"));
    ensure!(message == "Some resources are remaining: configmaps. has 2 resource instances", "{message}");
    for of in [
        "NamespaceDeletionDiscoveryFailure",
        "NamespaceDeletionGroupVersionParsingFailure",
        "NamespaceDeletionContentFailure",
    ] {
        ensure!(condition(of)?.0 == "False", "{going:?}");
    }
    ensure!(going.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Terminating"));
    ensure!(there.find::<ConfigMap>("free").await?.is_none());
    for map in ["a", "b"] {
        there.patch::<ConfigMap>(map, json!({ "metadata": { "finalizers": null } })).await?;
    }
    cluster.eventually::<Namespace>(&name).is_deleted().await
}

async fn pods_first(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let (name, there) = another(&cluster).await?;
    there.eventually::<k8s_openapi::api::core::v1::ServiceAccount>("default").exists().await?;
    let mut kept = pod("kept", "nginx");
    kept.metadata.finalizers = Some(vec!["example.com/never".to_owned()]);
    there.create(kept).await?;
    there.create(config_map("needed")).await?;
    cluster.delete::<Namespace>(&name).await?;
    let going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    there.eventually::<Pod>("kept").is("goes", going).await?;
    let has_said = |it: &Namespace| said(it, "NamespaceContentRemaining").is_some();
    cluster.eventually::<Namespace>(&name).is("was looked at", has_said).await?;
    ensure!(there.get::<ConfigMap>("needed").await?.metadata.deletion_timestamp.is_none());
    there.patch::<Pod>("kept", json!({ "metadata": { "finalizers": null } })).await?;
    cluster.eventually::<Namespace>(&name).is_deleted().await
}

async fn own_finalizers(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let name = format!("{}-held", cluster.namespace());
    let held = json!({ "metadata": { "finalizers": ["example.com/never"] } });
    cluster.create(object::<Namespace>(&name, held)).await?;
    let there = cluster.in_namespace(&name);
    there.create(config_map("free")).await?;
    cluster.delete::<Namespace>(&name).await?;
    there.eventually::<ConfigMap>("free").is_deleted().await?;
    let emptied = |it: &Namespace| {
        it.spec.as_ref().is_none_or(|spec| spec.finalizers.as_ref().is_none_or(Vec::is_empty))
    };
    cluster.eventually::<Namespace>(&name).is("was emptied", emptied).await?;
    cluster.patch::<Namespace>(&name, json!({ "metadata": { "finalizers": null } })).await?;
    cluster.eventually::<Namespace>(&name).is_deleted().await
}

async fn unconverted(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let (name, there) = another(&cluster).await?;
    let group = format!("{}.example.com", cluster.namespace());
    // The reference deletes in the version that it prefers; the embedded cluster in the one that is stored.
    let other = if target.environment().contains("reference") { "v1beta1" } else { "v2" };
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let webhook = json!({ "clientConfig": { "url": "https://127.0.0.1:9/convert" }, "conversionReviewVersions": ["v1"] });
    let definition = json!({ "spec": {
        "group": group, "scope": "Namespaced",
        "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
        "conversion": { "strategy": "Webhook", "webhook": webhook },
        "versions": [
            { "name": "v1", "served": true, "storage": true, "schema": schema },
            { "name": other, "served": true, "storage": false, "schema": schema },
        ],
    } });
    let crd = format!("widgets.{group}");
    cluster.create(object::<CustomResourceDefinition>(&crd, definition)).await?;
    cluster.eventually::<CustomResourceDefinition>(&crd).has_condition("Established", true).await?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Widget"));
    let widgets: Api<DynamicObject> = Api::namespaced_with(cluster.client(), &name, &resource);
    let make =
        || async { Ok(widgets.create(&Default::default(), &DynamicObject::new("a", &resource)).await?) };
    cluster.until("widgets are served", make, |_| true).await?;
    there.create(config_map("map")).await?;
    cluster.delete::<Namespace>(&name).await?;
    cluster.eventually::<Namespace>(&name).is_deleted().await?;
    ensure!(widgets.list(&Default::default()).await?.items.is_empty());
    cluster.delete::<CustomResourceDefinition>(&crd).await
}
