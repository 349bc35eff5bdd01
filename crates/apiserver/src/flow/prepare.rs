//! Prepares an object for the store: sets what only the server sets (UID, timestamps, generation, generated names), and
//! puts back what a request may not touch (status, spec, metadata, as its subresource says).

use crate::facts::FACTS;
use crate::kinds;
use crate::kinds::{Kept, Raised, Rules};
use crate::object::{at, child, generate_name, put, text, uid};
use crate::operation::Operation;
use crate::resource::Resource;
use crate::status::Status;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};

/// Makes the object and the path agree about the namespace.
pub(crate) fn namespace(operation: &Operation<'_>, object: &mut Value) -> Result<(), Status> {
    let metadata = child(object, "metadata");
    if !operation.resource.namespaced {
        metadata.remove("namespace");
        return Ok(());
    }
    match metadata.get("namespace").and_then(Value::as_str).unwrap_or_default() {
        "" => {
            metadata.insert("namespace".to_owned(), json!(operation.namespace));
            Ok(())
        }
        same if same == operation.namespace => Ok(()),
        _ => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// Makes the object and the path agree about the name.
pub(crate) fn name(operation: &Operation<'_>, object: &Value) -> Result<(), Status> {
    let (given, expected) = (text(object, &["metadata", "name"]), &operation.name);
    match given {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be provided"
        ))),
        same if same == expected => Ok(()),
        _ => Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({expected})"
        ))),
    }
}

/// Takes away what nobody says of an object that is to be created.
pub(crate) fn wipe(object: &mut Value) {
    let metadata = child(object, "metadata");
    for field in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(field);
    }
}

/// Names each owner once, and warns about those that came again; `admitted` says whether mutating admission has been.
pub(crate) fn owners(operation: &Operation<'_>, object: &mut Value, admitted: bool) {
    let owners = child(object, "metadata").get_mut("ownerReferences").and_then(Value::as_array_mut);
    let Some(owners) = owners.filter(|owners| owners.len() > 1) else { return };
    let (mut seen, mut again) = (HashSet::new(), Vec::new());
    owners.retain(|owner| {
        let first = seen.insert(owner.to_string());
        if !first {
            again.push(text(owner, &["uid"]).to_owned());
        }
        first
    });
    if !again.is_empty() {
        let when = if admitted { " after mutating admission happens" } else { "" };
        operation.warn(vec![format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, \
             and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            again.join(", ")
        )]);
    }
}

/// A new object: its UID, its time of creation, its generated name, its first generation, and a status of its own.
pub(crate) fn create(operation: &Operation<'_>, object: &mut Value) {
    let resource = &operation.resource;
    let metadata = child(object, "metadata");
    metadata.insert("uid".to_owned(), json!(uid()));
    metadata.insert("creationTimestamp".to_owned(), json!(operation.now()));
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(field);
    }
    let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !prefix.is_empty() && metadata.get("name").and_then(Value::as_str).unwrap_or_default().is_empty() {
        metadata.insert("name".to_owned(), json!(generate_name(&prefix)));
    }
    match resource.rules {
        Some(rules) => {
            if resource.has_subresource("status") && !rules.brings_status {
                let blank = resource.blank_object();
                in_stored_shape(resource, object, |object| {
                    if let Some(object) = object.as_object_mut() {
                        put(object, "status", blank.as_ref().and_then(|blank| blank.get("status")));
                    }
                });
            }
            if rules.generation && rules.raised != Raised::Later {
                child(object, "metadata").insert("generation".to_owned(), json!(1));
            }
            kinds::disabled_features::drop(&resource.definition, object);
            (rules.prepare_create)(&operation.rule_context(), object);
            if resource.has_subresource("status") {
                // What was reset is filled in again.
                kinds::defaults::fill(&FACTS.structs, &resource.definition, object);
            }
        }
        None => {
            if resource.has_subresource("status")
                && let Some(object) = object.as_object_mut()
            {
                object.remove("status");
            }
            child(object, "metadata").insert("generation".to_owned(), json!(1));
        }
    }
}

/// A changed object, given what it was.
pub(crate) fn update(operation: &Operation<'_>, new: &mut Value, old: &Value) {
    let resource = &operation.resource;
    let (none, mut undropped) = (Map::new(), false);
    let old_metadata = old.get("metadata").and_then(Value::as_object).unwrap_or(&none);
    put(child(new, "metadata"), "generation", old_metadata.get("generation"));
    match resource.rules {
        Some(rules) => {
            if rules.owned.is_empty() {
                in_stored_shape(resource, new, |new| match resource.shape {
                    Some(shape) => {
                        keep_to_subresource(operation, new, &kinds::convert::to_stored(shape, old));
                    }
                    None => keep_to_subresource(operation, new, old),
                });
            }
            for (owner, field) in rules.owned {
                if *owner != operation.subresource
                    && let Some(new) = new.as_object_mut()
                {
                    put(new, field, old.get(*field));
                }
            }
            if operation.subresource == "status" {
                keep_metadata(rules, new, old_metadata);
            }
            if matches!(operation.subresource.as_str(), "status" | "approval") {
                (rules.prepare_status)(&operation.rule_context(), new, old);
            }
            kinds::pods::keep_to(&operation.subresource, new, old);
            undropped = rules.raised_by_dropped && raises(rules, &operation.subresource, new, old);
            kinds::disabled_features::drop(&resource.definition, new);
            (rules.prepare_update)(new, old);
        }
        None => custom_update(operation, resource, new, old),
    }
    let raised = match resource.rules {
        Some(rules) => rules.generation && (undropped || raises(rules, &operation.subresource, new, old)),
        None => operation.subresource != "status" && custom_content_differs(new, old),
    };
    let metadata = child(new, "metadata");
    if raised {
        let before = old_metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
        metadata.insert("generation".to_owned(), json!(before.saturating_add(1)));
    }
    if metadata.get("uid").and_then(Value::as_str).unwrap_or_default().is_empty() {
        put(metadata, "uid", old_metadata.get("uid"));
    }
    put(metadata, "creationTimestamp", old_metadata.get("creationTimestamp"));
    if old_metadata.contains_key("deletionTimestamp") {
        put(metadata, "deletionTimestamp", old_metadata.get("deletionTimestamp"));
    }
    if !metadata.contains_key("deletionGracePeriodSeconds") {
        put(metadata, "deletionGracePeriodSeconds", old_metadata.get("deletionGracePeriodSeconds"));
    }
    if !operation.options.dry_run {
        // What is stored has none.
        metadata.remove("selfLink");
    }
}

/// Changes an object as it is stored: another shape may keep parts of its status elsewhere.
fn in_stored_shape(resource: &Resource, object: &mut Value, change: impl FnOnce(&mut Value)) {
    match resource.shape {
        Some(shape) => {
            let mut stored = kinds::convert::to_stored(shape, object);
            change(&mut stored);
            *object =
                kinds::convert::from_stored(shape, &resource.definition, &resource.api_version(), stored);
        }
        None => change(object),
    }
}

/// An object's own path leaves its status as it was, and the status' path all that is not status or metadata.
fn keep_to_subresource(operation: &Operation<'_>, new: &mut Value, old: &Value) {
    if !operation.resource.has_subresource("status") {
        return;
    }
    let (Some(new), Some(old)) = (new.as_object_mut(), old.as_object()) else { return };
    let is_kept = |name: &str| match operation.subresource.as_str() {
        "status" | "approval" => name != "status" && name != "metadata",
        _ => name == "status",
    };
    let names: BTreeSet<&String> = new.keys().chain(old.keys()).filter(|name| is_kept(name)).collect();
    for name in names.into_iter().cloned().collect::<Vec<_>>() {
        put(new, &name, old.get(&name));
    }
}

/// What of the metadata is not for the status' path to change.
fn keep_metadata(rules: &Rules, new: &mut Value, old: &Map<String, Value>) {
    const ALL: &[&str] =
        &["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp", "selfLink"];
    let fields = match rules.status_keeps {
        Kept::All => ALL,
        Kept::Fields(fields) => fields,
        Kept::Everything => {
            let metadata = child(new, "metadata");
            metadata.retain(|name, _| ["managedFields", "resourceVersion"].contains(&name.as_str()));
            let rest = old.iter().filter(|(name, _)| !metadata.contains_key(*name));
            let rest: Map<String, Value> = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
            metadata.extend(rest);
            return;
        }
    };
    for field in fields {
        put(child(new, "metadata"), field, old.get(*field));
    }
}

fn raises(rules: &Rules, subresource: &str, new: &Value, old: &Value) -> bool {
    let relabelled =
        |field: &str| subresource != "status" && new["metadata"].get(field) != old["metadata"].get(field);
    match rules.raised {
        Raised::Never => false,
        Raised::ByContent | Raised::Later => content_differs(new, old),
        Raised::ByContentOr(field) => content_differs(new, old) || relabelled(field),
    }
}

fn custom_update(operation: &Operation<'_>, resource: &Resource, new: &mut Value, old: &Value) {
    if !resource.has_subresource("status") {
        return;
    }
    let status = new.get("status").cloned();
    if operation.subresource != "status" {
        if let Some(new) = new.as_object_mut() {
            put(new, "status", old.get("status"));
        }
        return;
    }
    // The status alone is written; who owns it is told by managedFields.
    let managed = at(new, &["metadata", "managedFields"]).cloned();
    let version = at(new, &["metadata", "resourceVersion"]).cloned();
    *new = old.clone();
    put(child(new, "metadata"), "managedFields", managed.as_ref());
    put(child(new, "metadata"), "resourceVersion", version.as_ref());
    if let Some(new) = new.as_object_mut() {
        put(new, "status", status.as_ref());
    }
}

/// Does anything but the metadata and the status differ, as Go sees it?
fn content_differs(new: &Value, old: &Value) -> bool {
    let counts = |name: &str| name != "metadata" && name != "status";
    differs(new, old, counts, |new, old| !same_to_go(new, old))
}

/// Does anything but the metadata differ in a custom resource? It is JSON to Go as well: nothing and an empty list are two.
fn custom_content_differs(new: &Value, old: &Value) -> bool {
    differs(new, old, |name| name != "metadata", |new, old| new != old)
}

fn differs(
    new: &Value,
    old: &Value,
    counts: impl Fn(&str) -> bool,
    differ: impl Fn(Option<&Value>, Option<&Value>) -> bool,
) -> bool {
    let none = Map::new();
    let (new, old) = (new.as_object().unwrap_or(&none), old.as_object().unwrap_or(&none));
    let names = new.keys().chain(old.keys().filter(|name| !new.contains_key(*name)));
    names.filter(|name| counts(name)).any(|name| differ(new.get(name), old.get(name)))
}

/// For Go a list with nothing in it is no list.
fn same_to_go(one: Option<&Value>, two: Option<&Value>) -> bool {
    let something =
        |value: &&Value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty());
    match (one.filter(something), two.filter(something)) {
        (Some(Value::Object(one)), Some(Value::Object(two))) => {
            one.iter().all(|(name, value)| same_to_go(Some(value), two.get(name)))
                && two.iter().all(|(name, value)| one.contains_key(name) || same_to_go(None, Some(value)))
        }
        (Some(Value::Array(one)), Some(Value::Array(two))) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same_to_go(Some(one), Some(two)))
        }
        (one, two) => one == two,
    }
}
