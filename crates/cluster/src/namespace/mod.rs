//! The end of a namespace: everything in it goes, pods first, and then the namespace itself.

mod decide;

use crate::discovery::{Catalog, Served};
use crate::metadata_client;
use decide::{Found, Left, left};
use futures::StreamExt;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use windlass::queue::Backoff;
use windlass::{Controller, Key, Kind, Manager, Reconcile, ReconcileError, Requeue};

/// The finalizer that is ours.
const FINALIZER: &str = "kubernetes";
/// Kinds that are emptied at once.
const AT_ONCE: usize = 8;

pub(crate) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(end)
        .named("namespace-controller")
        .filter(|namespace: &Namespace| namespace.metadata.deletion_timestamp.is_some())
        .backoff(Backoff { first: Duration::from_millis(5), limit: Duration::from_secs(60) })
        .concurrency(10);
    manager.controller(controller)
}

async fn end(namespace: Arc<Namespace>, ctx: Reconcile<Namespace>) -> Result<Requeue, ReconcileError> {
    let finalizers = namespace.spec.iter().flat_map(|spec| spec.finalizers.iter().flatten());
    let (ours, others): (Vec<&String>, Vec<&String>) = finalizers.partition(|name| *name == FINALIZER);
    let Some(deleted) = &namespace.metadata.deletion_timestamp else { return Ok(Requeue::on_change()) };
    if ours.is_empty() {
        return Ok(Requeue::on_change());
    }
    let now = ctx.clock().now();
    let since = now.duration_since(deleted.0);
    let found = empty(ctx.writer().client(), ctx.key().name(), since).await;
    let status = namespace.status.clone().unwrap_or_default();
    let conditions = found.conditions(status.conditions.as_deref().unwrap_or_default(), now);
    if found.is_empty() {
        // What it says at last can be seen only if somebody else holds it.
        if !others.is_empty() || namespace.metadata.finalizers.as_ref().is_some_and(|held| !held.is_empty()) {
            say(&namespace, &ctx, &conditions).await?;
        }
        return finalize(&namespace, &ctx, &others).await;
    }
    say(&namespace, &ctx, &conditions).await?;
    match found.error() {
        Some(why) => Err(ReconcileError::custom(why)),
        None => Ok(Requeue::after(found.pace(since))),
    }
}

async fn say(
    namespace: &Namespace,
    ctx: &Reconcile<Namespace>,
    conditions: &[k8s_openapi::api::core::v1::NamespaceCondition],
) -> Result<(), ReconcileError> {
    let mut status = namespace.status.clone().unwrap_or_default();
    if status.conditions.as_deref() == Some(conditions) {
        return Ok(());
    }
    status.conditions = Some(conditions.to_vec());
    status.phase = Some("Terminating".to_owned());
    ctx.replace_status(&Namespace { status: Some(status), ..namespace.clone() }).await?;
    Ok(())
}

/// Lets the namespace go, as far as we are concerned.
async fn finalize(
    namespace: &Namespace,
    ctx: &Reconcile<Namespace>,
    others: &[&String],
) -> Result<Requeue, ReconcileError> {
    // All of its metadata, at its version: what is not sent is taken away, as finalizers of others.
    let metadata = ObjectMeta { managed_fields: None, ..namespace.metadata.clone() };
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": { "finalizers": others },
    });
    match metadata_client::put(
        ctx.writer().client(),
        &Kind::of::<Namespace>(),
        ctx.key(),
        "finalize",
        &object,
    )
    .await
    {
        Err(error) if metadata_client::code(&error) != Some(404) => Err(ReconcileError::custom(error)),
        _ => Ok(Requeue::on_change()),
    }
}

/// Deletes everything in a namespace, and says what is left of it. While there are pods, the rest stays: they may need it to
/// end well.
async fn empty(client: &Client, namespace: &str, since: SignedDuration) -> Found {
    let mut found = Found::default();
    let catalog = match Catalog::discover(client).await {
        Ok(catalog) => catalog,
        Err(error) => {
            found.undiscovered = Some(error.to_string());
            return found;
        }
    };
    if !catalog.stale.is_empty() {
        let each: Vec<String> =
            catalog.stale.iter().map(|it| format!("{it}: stale GroupVersion discovery: {it}")).collect();
        found.undiscovered = Some(format!(
            "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
            each.len(),
            each.join(", ")
        ));
    }
    let kinds = catalog.preferred().filter(|served| served.kind.namespaced && served.can(&["delete"]));
    let (pods, others): (Vec<Served>, Vec<Served>) =
        kinds.cloned().partition(|served| served.kind.group.is_empty() && served.kind.plural == "pods");
    for kinds in [pods, others] {
        let emptied = futures::stream::iter(kinds)
            .map(|served: Served| async move {
                let left = empty_kind(client, &served, namespace, since).await;
                (served.kind, left)
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>();
        for (kind, left) in emptied.await {
            found.add(namespace, &kind, left.map_err(|error| error.to_string()));
        }
        if found.has_left() {
            break;
        }
    }
    found
}

async fn empty_kind(
    client: &Client,
    served: &Served,
    namespace: &str,
    since: SignedDuration,
) -> kube::Result<Left> {
    let kind = &served.kind;
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background" });
    let lists = served.can(&["list"]);
    if lists && metadata_client::is_empty(client, kind, namespace).await? {
        return Ok(Left::default());
    }
    if served.can(&["deletecollection"]) {
        unless_gone(metadata_client::delete_all(client, kind, namespace, &options).await)?;
    } else if lists {
        delete_each(client, kind, namespace, &options).await?;
    }
    if !lists {
        return Ok(Left::default());
    }
    Ok(left(&metadata_client::list(client, kind, Some(namespace)).await?, since))
}

async fn delete_each(client: &Client, kind: &Kind, namespace: &str, options: &Value) -> kube::Result<()> {
    for object in metadata_client::list(client, kind, Some(namespace)).await? {
        let name = object.name.unwrap_or_default();
        let key = Key::new("".into(), Some(namespace), &name);
        unless_gone(metadata_client::delete(client, kind, &key, options).await)?;
    }
    Ok(())
}

/// A kind, or an object, that is no more needs no deletion.
fn unless_gone(done: kube::Result<()>) -> kube::Result<()> {
    match done {
        Err(error) if matches!(metadata_client::code(&error), Some(404 | 405)) => Ok(()),
        done => done,
    }
}
