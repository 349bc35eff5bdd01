//! What rows of behaviours change in an object that is right otherwise.

use serde_json::{Value, json};

/// Merges as a JSON merge patch does: null takes a field away.
pub(super) fn merge(into: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            into.as_object_mut().map(|into| into.remove(name));
        } else {
            merge(&mut into[name], value);
        }
    }
}
