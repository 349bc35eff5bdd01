//! CustomResourceDefinitions as objects: their defaults, validation, names and conditions. How they are served is in
//! [`registry`](crate::registry), and what follows from a write of one in [`flow`](crate::flow).
//!
//! A new CRD is served before its creation is answered, and its CEL rules are compiled then, once.

mod approval;
mod conversion;
mod go_format;
pub(crate) mod naming;
pub(crate) mod prepare;
pub(crate) mod scale;
pub(crate) mod validate;

use serde_json::Value;

/// The finalizer that holds a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The group of the definitions themselves.
pub(crate) const GROUP: &str = "apiextensions.k8s.io";

/// Where the definitions are in the store.
pub(crate) const STORAGE: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// A condition of a definition.
pub(crate) fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = crd.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// Whether a condition is there and true.
pub(crate) fn is_true(crd: &Value, kind: &str) -> bool {
    condition(crd, kind).and_then(|condition| condition.get("status")).and_then(Value::as_str) == Some("True")
}

/// The versions of a definition.
pub(crate) fn versions(crd: &Value) -> &[Value] {
    crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}
