//! Mutating admission: what may still change an object, or refuse it, before it is prepared and validated.
//!
//! Run once per attempt of the compare-and-swap, on the object as it was read in that attempt, and never under a lock of the
//! store: webhooks are asked here, after the policies. If one of either changed the object, the plug-ins have a second look, and
//! so have the policies and webhooks that want it.

use super::webhooks::{self, Admitted};
use super::{policies, prepare};
use crate::admission::{self, namespace_lifecycle};
use crate::admission_plugins::AdmissionPlugin;
use crate::admission_policies::BoundPolicy;
use crate::admission_webhooks::Webhook;
use crate::object::{child, list, put, text};
use crate::operation::Operation;
use crate::status::Status;
use serde_json::Value;
use std::sync::Arc;
use windlass_schema::apply::entries;

/// Admits an object that is to be created, or to be what `old` was.
pub(crate) async fn mutate(
    operation: &Operation<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    plug_ins(operation, object, old).await?;
    let Some(mut others) = Others::of(operation) else { return Ok(()) };
    let owners = object.pointer("/metadata/managedFields").cloned();
    let admitted = Admitted::write(operation, object, old);
    if !others.mutate(&admitted, object, 0).await? {
        return Ok(());
    }
    plug_ins(operation, object, old).await?;
    others.mutate(&admitted, object, 1).await?;
    keep_owners(operation, object, owners);
    prepare::owners(operation, object, true);
    match object.get("metadata").is_some() && operation.resource.namespaced {
        true => prepare::namespace(operation, object),
        false => Ok(()),
    }
}

/// Asks only policies and webhooks: about what a request shows of an object that is written by other means, or about what is sent and
/// stored nowhere.
pub(crate) async fn mutate_view(
    operation: &Operation<'_>,
    view: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let Some(mut others) = Others::of(operation) else { return Ok(()) };
    let admitted = Admitted::write(operation, view, old);
    if others.mutate(&admitted, view, 0).await? {
        others.mutate(&admitted, view, 1).await?;
    }
    Ok(())
}

/// The policies and webhooks that may change an object, and what is remembered of them between two rounds.
struct Others {
    policies: Arc<[Arc<BoundPolicy>]>,
    webhooks: Arc<[Arc<Webhook>]>,
    rounds: (policies::Rounds, webhooks::Rounds),
}

impl Others {
    /// None if there are none.
    fn of(operation: &Operation<'_>) -> Option<Self> {
        let policies = policies::mutates(operation);
        let webhooks = match webhooks::mutates(operation) {
            true => operation.api.webhooks.mutating(),
            false => Arc::new([]),
        };
        let any = !policies.is_empty() || !webhooks.is_empty();
        any.then(|| Self { policies, webhooks, rounds: Default::default() })
    }

    /// Whether one of them changed the object.
    async fn mutate(
        &mut self,
        admitted: &Admitted<'_>,
        object: &mut Value,
        round: usize,
    ) -> Result<bool, Status> {
        let (first, then) = &mut self.rounds;
        let by_policy = policies::mutate(&self.policies, admitted, object, first, round > 0).await?;
        let by_webhook = webhooks::mutate(&self.webhooks, admitted, Some(object), then, round).await?;
        Ok(by_policy || by_webhook)
    }
}

/// The built-in plug-ins.
pub(crate) async fn plug_ins(
    operation: &Operation<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if old.is_none() && guards_namespaces(operation) {
        namespace_lifecycle::validate_create(operation, object)?;
    }
    // What faults make of an object, as a mutating webhook might.
    operation.mutations.iter().for_each(|mutation| mutation.carry_out(object));
    admission::mutate(operation, object, old).await
}

/// Admits that an object is deleted, before it is read.
pub(crate) async fn delete(operation: &Operation<'_>, name: &str) -> Result<(), Status> {
    match guards_namespaces(operation) {
        true => namespace_lifecycle::validate_delete(operation, name),
        false => Ok(()),
    }
}

/// Asks webhooks whether an object may be deleted; `given` is how that is asked for.
pub(crate) async fn delete_object(
    operation: &Operation<'_>,
    old: &Value,
    given: &Value,
) -> Result<(), Status> {
    if !webhooks::mutates(operation) {
        return Ok(());
    }
    let asked = operation.api.webhooks.mutating();
    if asked.is_empty() {
        return Ok(());
    }
    let admitted = Admitted::delete(operation, old, given);
    webhooks::mutate(&asked, &admitted, None, &mut webhooks::Rounds::default(), 0).await.map(drop)
}

/// Who owns which field stays what it was if a webhook left behind what cannot be read.
fn keep_owners(operation: &Operation<'_>, object: &mut Value, before: Option<Value>) {
    let now = object.pointer("/metadata/managedFields");
    if now == before.as_ref() || now.is_none() {
        return;
    }
    let of_nobody = |owner: &Value| !matches!(text(owner, &["operation"]), "Apply" | "Update");
    let why = match list(object, &["metadata", "managedFields"]).iter().any(of_nobody) {
        true => "operation must be `Apply` or `Update`",
        false if entries(object).is_none() => "they cannot be read",
        false => return,
    };
    put(child(object, "metadata"), "managedFields", before.as_ref());
    operation.warn(vec![format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating \
         admission controller; please fix your requests: {why}"
    )]);
}

fn guards_namespaces(operation: &Operation<'_>) -> bool {
    !operation.api.disabled_admission_plugins.contains(AdmissionPlugin::NamespaceLifecycle)
}
