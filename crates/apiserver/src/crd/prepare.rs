//! Defaults of a CRD, and the fields that only the server sets.

use super::{CLEANUP, flag, naming, versions};
use crate::object::{child, text};
use serde_json::{Map, Value, json};

/// Names that follow from the kind, and the conversion.
pub(crate) fn default(crd: &mut Value) {
    let kind = text(crd, &["spec", "names", "kind"]).to_owned();
    let spec = child(crd, "spec");
    let names = spec.entry("names").or_insert_with(|| json!({}));
    if let Some(names) = names.as_object_mut()
        && !kind.is_empty()
    {
        let mut fill = |name: &str, value: String| {
            if names.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
                names.insert(name.to_owned(), Value::String(value));
            }
        };
        fill("singular", kind.to_lowercase());
        fill("listKind", format!("{kind}List"));
    }
    match spec.get_mut("conversion") {
        None | Some(Value::Null) => {
            spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
        }
        Some(conversion) => {
            let path = conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut);
            if let Some(service) = path {
                service.entry("port").or_insert_with(|| json!(443));
            }
        }
    }
}

/// A new definition has no status but the version that is stored.
pub(crate) fn create(crd: &mut Value) {
    *child(crd, "status") = empty_status();
    child(crd, "metadata").insert("generation".to_owned(), json!(1));
    remember_stored(crd);
}

/// An update may change which version is stored. Which ones were is for who writes the status to say.
pub(crate) fn update(crd: &mut Value, old: &Value) {
    if crd.get("status") == old.get("status") {
        remember_stored(crd);
    }
}

/// The first step of a deletion: the definition waits for its objects to go.
pub(crate) fn terminate(crd: &mut Value, now: &str) {
    let finalizers = child(crd, "metadata").entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.contains(&json!(CLEANUP))
    {
        finalizers.push(json!(CLEANUP));
    }
    let why = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(crd, "Terminating", "True", "InstanceDeletionPending", why, now);
}

/// Sets one condition in a definition's status.
pub(crate) fn set_condition(
    crd: &mut Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let conditions = child(crd, "status").entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(conditions) = conditions.as_array_mut() {
        naming::set(conditions, kind, status, reason, message, now);
    }
}

fn empty_status() -> Map<String, Value> {
    let status =
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null});
    match status {
        Value::Object(status) => status,
        _ => Map::new(),
    }
}

fn remember_stored(crd: &mut Value) {
    let stored = versions(crd).iter().find(|version| flag(version, "storage"));
    let Some(stored) = stored.and_then(|version| version.get("name")).cloned() else { return };
    let versions = child(crd, "status").entry("storedVersions").or_insert(Value::Null);
    match versions {
        Value::Array(versions) if versions.contains(&stored) => {}
        Value::Array(versions) => versions.push(stored),
        other => *other = Value::Array(vec![stored]),
    }
}
