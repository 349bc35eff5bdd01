//! Admission policies and bindings with parameters: nobody has a policy read for them what they may not read themselves.

use crate::authorization::{Attributes, On, ResourceAttributes, is_privileged};
use crate::object::text;
use crate::operation::Operation;
use crate::request::Identity;
use crate::status::{Status, causes};
use serde_json::Value;
use windlass_schema::field::{FieldError, Path};
use windlass_store::Key;

const GROUP: &str = "admissionregistration.k8s.io";

/// What is asked of an authorizer.
struct Wanted {
    group: String,
    version: String,
    resource: String,
}

/// Refuses a policy whose parameters its writer may not read, and such a binding; both are valid otherwise.
pub(super) async fn check(
    operation: &Operation<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let resource = &operation.resource;
    if resource.group != GROUP || !operation.subresource.is_empty() || is_privileged(operation.identity) {
        return Ok(());
    }
    let (field, refused) = match resource.plural.as_str() {
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
            ("paramKind", policy(operation, object, old).await)
        }
        "validatingadmissionpolicybindings" => {
            ("paramRef", binding(operation, object, old, "validatingadmissionpolicies").await)
        }
        "mutatingadmissionpolicybindings" => {
            ("paramRef", binding(operation, object, old, "mutatingadmissionpolicies").await)
        }
        _ => return Ok(()),
    };
    let Err(why) = refused else { return Ok(()) };
    let error = FieldError::forbidden(&Path::new("spec").child(field), why);
    let named = crate::status::Named { group: GROUP, kind: &resource.kind };
    Err(Status::invalid(named, text(object, &["metadata", "name"]), causes(&[error])))
}

async fn policy(operation: &Operation<'_>, object: &Value, old: Option<&Value>) -> Result<(), String> {
    let kind = |object: &'_ Value| object.pointer("/spec/paramKind").filter(|kind| kind.is_object()).cloned();
    let Some(wanted) = kind(object) else { return Ok(()) };
    if old.and_then(kind).as_ref() == Some(&wanted) {
        return Ok(());
    }
    let asked = resolved(operation, &wanted).0;
    if allowed(operation, "get", &asked, ("*", "*")).await {
        return Ok(());
    }
    let (user, kind, version) =
        (shown(operation.identity), text(&wanted, &["kind"]), text(&wanted, &["apiVersion"]));
    Err(format!(
        "user {user} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, \
         apiVersion={version})"
    ))
}

async fn binding(
    operation: &Operation<'_>,
    object: &Value,
    old: Option<&Value>,
    policies: &str,
) -> Result<(), String> {
    let of = |object: &'_ Value| {
        let chosen = object.pointer("/spec/paramRef").filter(|chosen| chosen.is_object()).cloned();
        chosen.map(|chosen| (chosen, text(object, &["spec", "policyName"]).to_owned()))
    };
    let Some((chosen, policy)) = of(object) else { return Ok(()) };
    if old.and_then(of).as_ref() == Some(&(chosen.clone(), policy.clone())) {
        return Ok(());
    }
    let key = Key::new(format!("{GROUP}/{policies}"), "", policy.as_str());
    let stored = operation.api.store.get(&key).map(|entry| entry.value());
    let kind = stored.as_ref().and_then(|stored| stored.pointer("/spec/paramKind"));
    let (asked, is_resolved) = match kind {
        Some(kind) => resolved(operation, kind),
        None => (anything(), true),
    };
    let name = text(&chosen, &["name"]);
    let verb = if name.is_empty() { "list" } else { "get" };
    if allowed(operation, verb, &asked, (text(&chosen, &["namespace"]), name)).await {
        return Ok(());
    }
    let user = shown(operation.identity);
    let whole = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all \
         groups, versions and resources"
    );
    Err(match (&stored, kind) {
        (None, _) => format!("unable to get policy {policy} {whole}"),
        (_, Some(kind)) if !is_resolved => {
            let (version, kind) = (text(kind, &["apiVersion"]), text(kind, &["kind"]));
            format!("unable to resolve paramKind &ParamKind{{APIVersion:{version},Kind:{kind},}} {whole}")
        }
        _ => format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef"),
    })
}

fn anything() -> Wanted {
    Wanted { group: "*".to_owned(), version: "*".to_owned(), resource: "*".to_owned() }
}

/// The resource of a kind, as far as it is known; and whether it is.
fn resolved(operation: &Operation<'_>, kind: &Value) -> (Wanted, bool) {
    let version = text(kind, &["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = text(kind, &["kind"]);
    let served = operation.api.registry.served();
    let found = served.all().find(|resource| {
        (resource.group.as_str(), resource.version.as_str(), resource.kind.as_str()) == (group, version, kind)
    });
    let resource = found.map_or("*", |resource| &resource.plural).to_owned();
    (Wanted { group: group.to_owned(), version: version.to_owned(), resource }, found.is_some())
}

async fn allowed(
    operation: &Operation<'_>,
    verb: &str,
    wanted: &Wanted,
    (namespace, name): (&str, &str),
) -> bool {
    let on = ResourceAttributes {
        group: &wanted.group,
        version: &wanted.version,
        resource: &wanted.resource,
        namespace,
        name,
        ..ResourceAttributes::default()
    };
    let asked = Attributes { identity: operation.identity, verb, on: On::Resource(on) };
    operation.api.authorizer.allows(&asked).await
}

/// A user in Go's words.
fn shown(identity: &Identity) -> String {
    let Identity { user, uid, groups, extra } = identity;
    let extra: Vec<String> =
        extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{user} {uid} [{}] map[{}]}}", groups.join(" "), extra.join(" "))
}
