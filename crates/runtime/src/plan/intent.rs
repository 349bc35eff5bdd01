//! From an object as an author writes it to the fields that it means to set.

use super::unserializable::{Unserializable, to_json};
use crate::kind::Object;
use serde_json::Value;

/// The fields that a typed object means to set: what is `None` or left to the server is not there.
pub(super) fn intent<K: Object>(object: &K) -> Result<Value, Unserializable> {
    let what = || format!("{} {}", K::kind(&()), object.meta().name.as_deref().unwrap_or_default());
    let mut json = to_json(object, what)?;
    if let Some(fields) = json.as_object_mut() {
        // Derived types may leave these to whoever knows the type.
        fields.entry("apiVersion").or_insert_with(|| K::api_version(&()).into());
        fields.entry("kind").or_insert_with(|| K::kind(&()).into());
    }
    strip(&mut json);
    Ok(json)
}

/// Leaves what an author means to set.
pub(super) fn strip(json: &mut Value) {
    drop_nulls(json);
    if let Some(meta) = json.get_mut("metadata").and_then(Value::as_object_mut) {
        for of_the_server in
            ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"]
        {
            meta.remove(of_the_server);
        }
    }
    if let Some(fields) = json.as_object_mut() {
        // Status has a subresource of its own.
        fields.remove("status");
    }
}

/// Removes nulls from objects: a type's `None` says nothing, where an applied null would claim the field.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
