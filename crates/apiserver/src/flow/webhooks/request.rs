//! The request as reviews and match conditions show it.

use super::Admitted;
use crate::request::Identity;
use crate::resource::Resource;
use serde_json::{Value, json};

/// All of it but the objects and what tells one review from another; told as one about `resource`.
pub(in crate::flow) fn shown_request(resource: &Resource, admitted: &Admitted<'_>) -> Value {
    let operation = admitted.operation;
    let subresource = operation.subresource.as_str();
    let (kind, shown) = names(resource, subresource);
    let (request_kind, request_resource) = names(&operation.resource, subresource);
    let mut request = json!({
        "kind": kind, "resource": shown,
        "requestKind": request_kind, "requestResource": request_resource,
        "operation": admitted.verb.name(),
        "userInfo": user(operation.identity),
        "dryRun": operation.options.dry_run,
        "options": admitted.options,
    });
    for (field, value) in [
        ("subResource", subresource),
        ("requestSubResource", subresource),
        ("name", &admitted.name),
        ("namespace", &admitted.namespace),
    ] {
        if !value.is_empty() {
            request[field] = json!(value);
        }
    }
    request
}

/// The kind and the resource of a request.
fn names(resource: &Resource, subresource: &str) -> (Value, Value) {
    let (group, version, kind) = kind_of(resource, subresource);
    (
        json!({ "group": group, "version": version, "kind": kind }),
        json!({ "group": resource.group, "version": resource.version, "resource": resource.plural }),
    )
}

/// The group, the version and the kind of what is sent to a resource or to a subresource, which may be of another kind.
pub(in crate::flow) fn kind_of<'a>(resource: &'a Resource, subresource: &str) -> (&'a str, &'a str, &'a str) {
    let own = (resource.group.as_str(), resource.version.as_str(), resource.kind.as_str());
    if subresource.is_empty() {
        return own;
    }
    let first = subresource.split('/').next().unwrap_or_default();
    match resource.subresources.iter().find(|part| part.name == first) {
        Some(part) if part.kind != resource.kind && !part.kind.is_empty() => {
            (&part.group, &part.version, &part.kind)
        }
        _ => own,
    }
}

fn user(identity: &Identity) -> Value {
    let Identity { user, uid, groups, extra } = identity;
    let mut shown = json!({ "username": user });
    if !uid.is_empty() {
        shown["uid"] = json!(uid);
    }
    if !groups.is_empty() {
        shown["groups"] = json!(groups);
    }
    if !extra.is_empty() {
        shown["extra"] = json!(extra);
    }
    shown
}
