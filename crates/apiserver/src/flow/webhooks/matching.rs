//! Which webhooks and policies a request concerns, and in which version of its resource.

use super::{Admitted, Verb, conditions};
use crate::admission_webhooks::{Webhook, WebhookType};
use crate::match_resources::{MatchResources, Rule, RuleSubject};
use crate::object::at;
use crate::resource::Resource;
use crate::status::{Named, Status};
use serde_json::Value;
use std::sync::Arc;
use windlass_schema::selector::Labels;
use windlass_store::Key;

/// A webhook that is to be asked, and the version of the resource in which it is told of the object.
pub(in crate::flow) struct Invocation {
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
    let Some(resource) = matched(&webhook.matching, admitted, object)? else { return Ok(None) };
    let invocation = Invocation { webhook: webhook.clone(), resource };
    let holds =
        webhook.conditions.is_empty() || conditions::hold(&invocation, kind, admitted, object).await?;
    Ok(holds.then_some(invocation))
}

/// The resource as which a request fits, if it does: that of the request, or another that shows the same objects.
///
/// # Errors
/// When that cannot be told.
pub(in crate::flow) fn matched(
    wanted: &MatchResources,
    admitted: &Admitted<'_>,
    object: Option<&Value>,
) -> Result<Option<Arc<Resource>>, Status> {
    // What cannot be told matters only if it would fit otherwise.
    let namespace = in_namespaces(&wanted.namespaces, admitted, object);
    if matches!(namespace, Ok(false)) || !of_objects(&wanted.objects, admitted, object) {
        return Ok(None);
    }
    let of = |rules: &[Rule]| resource(rules, wanted.equivalent, admitted);
    if !wanted.excluded.is_empty() && of(&wanted.excluded).is_some() {
        return Ok(None);
    }
    let Some(resource) = of(&wanted.rules) else { return Ok(None) };
    namespace?;
    Ok(Some(resource))
}

fn in_namespaces(selector: &Labels, admitted: &Admitted<'_>, object: Option<&Value>) -> Result<bool, Status> {
    let operation = admitted.operation;
    let is_namespace = operation.resource.plural == "namespaces";
    if (admitted.namespace.is_empty() && !is_namespace) || selector.is_empty() {
        return Ok(true);
    }
    let written = matches!(admitted.verb, Verb::Create | Verb::Update);
    if let Some(object) = object.filter(|_| is_namespace && written && operation.subresource.is_empty()) {
        return Ok(fits(selector, object));
    }
    let name = admitted.namespace.as_str();
    let stored = operation.api.store.get(&Key::new("namespaces", "", name));
    let namespaces = Named { group: "", kind: "namespaces" };
    let stored = stored.ok_or_else(|| Status::not_found(namespaces, name))?;
    Ok(fits(selector, &stored.value()))
}

fn of_objects(selector: &Labels, admitted: &Admitted<'_>, object: Option<&Value>) -> bool {
    // What has no metadata has no labels that could fit.
    let any = |object: Option<&Value>| {
        object.is_some_and(|object| object.get("metadata").is_some() && fits(selector, object))
    };
    selector.is_empty() || any(object) || any(admitted.old)
}

fn fits(selector: &Labels, object: &Value) -> bool {
    let labels = at(object, &["metadata", "labels"]);
    selector.matches(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
}

/// The resource that a rule is about.
fn resource(rules: &[Rule], equivalent: bool, admitted: &Admitted<'_>) -> Option<Arc<Resource>> {
    let operation = admitted.operation;
    let own = &operation.resource;
    if rules.iter().any(|rule| rule.matches(&subject(admitted, own))) {
        return Some(own.clone());
    }
    if !equivalent {
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
    rules.iter().find_map(found).map(|other| Arc::clone(other))
}

/// What the request is about, if it is about this resource.
fn subject<'a>(admitted: &'a Admitted<'_>, resource: &'a Resource) -> RuleSubject<'a> {
    RuleSubject {
        operation: admitted.verb.name(),
        group: &resource.group,
        version: &resource.version,
        resource: &resource.plural,
        subresource: &admitted.operation.subresource,
        name: &admitted.name,
        namespace: &admitted.namespace,
    }
}
