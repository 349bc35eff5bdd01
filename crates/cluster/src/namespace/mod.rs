//! Namespace termination: deletes everything in a terminating namespace, pods first, and then removes the finalizer of the
//! namespace itself.
//!
//! It polls instead of watching every kind: soon at first, then ever less often.

mod decide;

use crate::discovery::{Discovery, ServedKind};
use crate::metadata_client;
use decide::{DeletionProgress, Remaining, remaining};
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

/// The finalizer in `spec.finalizers` that this controller removes.
const FINALIZER: &str = "kubernetes";
/// The most kinds whose objects are deleted at once.
const MAX_CONCURRENT_KINDS: usize = 8;

pub(crate) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(reconcile)
        .named("namespace-controller")
        .filter(|namespace: &Namespace| namespace.metadata.deletion_timestamp.is_some())
        .backoff(Backoff { first: Duration::from_millis(5), limit: Duration::from_secs(60) })
        .concurrency(10);
    manager.controller(controller)
}

async fn reconcile(namespace: Arc<Namespace>, ctx: Reconcile<Namespace>) -> Result<Requeue, ReconcileError> {
    let finalizers = namespace.spec.iter().flat_map(|spec| spec.finalizers.iter().flatten());
    let (ours, others): (Vec<&String>, Vec<&String>) = finalizers.partition(|name| *name == FINALIZER);
    let Some(deleted) = &namespace.metadata.deletion_timestamp else { return Ok(Requeue::on_change()) };
    if ours.is_empty() {
        return Ok(Requeue::on_change());
    }
    let now = ctx.clock().now();
    let since = now.duration_since(deleted.0);
    let progress = delete_all_content(ctx.writer().client(), ctx.key().name(), since).await;
    let status = namespace.status.clone().unwrap_or_default();
    let conditions = progress.conditions(status.conditions.as_deref().unwrap_or_default(), now);
    if progress.is_empty() {
        // The last conditions can be observed only if another finalizer holds the namespace.
        if !others.is_empty() || namespace.metadata.finalizers.as_ref().is_some_and(|held| !held.is_empty()) {
            write_conditions(&namespace, &ctx, &conditions).await?;
        }
        return finalize(&namespace, &ctx, &others).await;
    }
    write_conditions(&namespace, &ctx, &conditions).await?;
    match progress.error() {
        Some(why) => Err(ReconcileError::custom(why)),
        None => Ok(Requeue::after(progress.requeue_after(since))),
    }
}

async fn write_conditions(
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

/// Removes our finalizer from the namespace.
async fn finalize(
    namespace: &Namespace,
    ctx: &Reconcile<Namespace>,
    others: &[&String],
) -> Result<Requeue, ReconcileError> {
    // All of its metadata, at its resourceVersion: what is not sent would be removed, such as the finalizers of others.
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

/// Deletes everything in a namespace, and reports what remains. While there are pods, the rest stays: they may need it to shut
/// down.
async fn delete_all_content(client: &Client, namespace: &str, since: SignedDuration) -> DeletionProgress {
    let mut progress = DeletionProgress::default();
    let discovery = match Discovery::discover_stored(client).await {
        Ok(discovery) => discovery,
        Err(error) => {
            progress.undiscovered = Some(error.to_string());
            return progress;
        }
    };
    if !discovery.stale.is_empty() {
        let each: Vec<String> =
            discovery.stale.iter().map(|it| format!("{it}: stale GroupVersion discovery: {it}")).collect();
        progress.undiscovered = Some(format!(
            "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
            each.len(),
            each.join(", ")
        ));
    }
    let kinds = discovery.preferred().filter(|served| served.kind.namespaced && served.supports(&["delete"]));
    let (pods, others): (Vec<ServedKind>, Vec<ServedKind>) =
        kinds.cloned().partition(|served| served.kind.group.is_empty() && served.kind.plural == "pods");
    for kinds in [pods, others] {
        let emptied = futures::stream::iter(kinds)
            .map(|served: ServedKind| async move {
                let remaining = empty_kind(client, &served, namespace, since).await;
                (served.kind, remaining)
            })
            .buffer_unordered(MAX_CONCURRENT_KINDS)
            .collect::<Vec<_>>();
        for (kind, remaining) in emptied.await {
            progress.add(namespace, &kind, remaining.map_err(|error| error.to_string()));
        }
        if progress.has_remaining() {
            break;
        }
    }
    progress
}

async fn empty_kind(
    client: &Client,
    served: &ServedKind,
    namespace: &str,
    since: SignedDuration,
) -> kube::Result<Remaining> {
    let kind = &served.kind;
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background" });
    let lists = served.supports(&["list"]);
    if lists && metadata_client::is_empty(client, kind, namespace).await? {
        return Ok(Remaining::default());
    }
    if served.supports(&["deletecollection"]) {
        unless_gone(metadata_client::delete_all(client, kind, namespace, &options).await)?;
    } else if lists {
        delete_each(client, kind, namespace, &options).await?;
    }
    if !lists {
        return Ok(Remaining::default());
    }
    Ok(remaining(&metadata_client::list(client, kind, Some(namespace)).await?, since))
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
