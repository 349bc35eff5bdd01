//! Which webhooks a request concerns, and in which version of its resource.

use super::{Admitted, Verb, conditions};
use crate::admission_webhooks::{Rule, RuleSubject, Webhook, WebhookType};
use crate::object::at;
use crate::resource::Resource;
use crate::status::{Named, Status};
use serde_json::Value;
use std::sync::Arc;
use windlass_schema::selector::Labels;
use windlass_store::Key;

/// A webhook that is to be asked, and the version of the resource in which it is told of the object.
pub(super) struct Invocation {
    pub(super) webhook: Arc<Webhook>,
    pub(super) resource: Arc<Resource>,
}

/// Whether a webhook is to be asked, and as what.
///
/// # Errors
/// When that cannot be told.
pub(super) async fn invocation(
    webhook: &Arc<Webhook>,
    kind: WebhookType,
    admitted: &Admitted<'_>,
    object: Option<&Value>,
) -> Result<Option<Invocation>, Status> {
    // What cannot be told matters only if it would be asked otherwise.
    let namespace = in_namespaces(webhook, admitted, object);
    if matches!(namespace, Ok(false)) || !of_objects(webhook, admitted, object) {
        return Ok(None);
    }
    let Some(resource) = resource(webhook, admitted) else { return Ok(None) };
    namespace?;
    let invocation = Invocation { webhook: webhook.clone(), resource };
    let holds =
        webhook.conditions.is_empty() || conditions::hold(&invocation, kind, admitted, object).await?;
    Ok(holds.then_some(invocation))
}

fn in_namespaces(webhook: &Webhook, admitted: &Admitted<'_>, object: Option<&Value>) -> Result<bool, Status> {
    let operation = admitted.operation;
    let is_namespace = operation.resource.plural == "namespaces";
    if (admitted.namespace.is_empty() && !is_namespace) || webhook.namespaces.is_empty() {
        return Ok(true);
    }
    let written = matches!(admitted.verb, Verb::Create | Verb::Update);
    if let Some(object) = object.filter(|_| is_namespace && written && operation.subresource.is_empty()) {
        return Ok(fits(&webhook.namespaces, object));
    }
    let name = admitted.namespace.as_str();
    let stored = operation.api.store.get(&Key::new("namespaces", "", name));
    let namespaces = Named { group: "", kind: "namespaces" };
    let stored = stored.ok_or_else(|| Status::not_found(namespaces, name))?;
    Ok(fits(&webhook.namespaces, &stored.value()))
}

fn of_objects(webhook: &Webhook, admitted: &Admitted<'_>, object: Option<&Value>) -> bool {
    // What has no metadata has no labels that could fit.
    let any = |object: Option<&Value>| {
        object.is_some_and(|object| object.get("metadata").is_some() && fits(&webhook.objects, object))
    };
    webhook.objects.is_empty() || any(object) || any(admitted.old)
}

fn fits(selector: &Labels, object: &Value) -> bool {
    let labels = at(object, &["metadata", "labels"]);
    selector.matches(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
}

/// The resource that a rule is about: that of the request, or another that shows the same objects.
fn resource(webhook: &Webhook, admitted: &Admitted<'_>) -> Option<Arc<Resource>> {
    let operation = admitted.operation;
    let own = &operation.resource;
    if webhook.rules.iter().any(|rule| rule.matches(&subject(admitted, own))) {
        return Some(own.clone());
    }
    if !webhook.equivalent {
        return None;
    }
    let (key, part) = (own.storage_key(), operation.subresource.as_str());
    let served = operation.api.registry.served();
    let mut others: Vec<&Arc<Resource>> = served
        .all()
        .filter(|other| (&other.group, &other.version) != (&own.group, &own.version))
        .filter(|other| other.storage_key() == key && (part.is_empty() || other.has_subresource(part)))
        .collect();
    // In the order in which versions are preferred; earlier rules count before later ones.
    let order = served.versions(&own.group);
    others.sort_by_key(|other| order.iter().position(|version| *version == other.version));
    let found = |rule: &Rule| others.iter().find(|other| rule.matches(&subject(admitted, other)));
    webhook.rules.iter().find_map(found).map(|other| Arc::clone(other))
}

/// What the request is about, if it is about this resource.
fn subject<'a>(admitted: &'a Admitted<'_>, resource: &'a Resource) -> RuleSubject<'a> {
    RuleSubject {
        operation: admitted.verb.name(),
        group: &resource.group,
        version: &resource.version,
        resource: &resource.plural,
        subresource: &admitted.operation.subresource,
        namespace: &admitted.namespace,
    }
}
