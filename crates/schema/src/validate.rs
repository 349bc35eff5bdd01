//! Schema validation, with Kubernetes' own errors: types, paths, texts and order.
//!
//! Fields are visited in the order of their names where the real server's order is random.

mod numbers;
mod outcome;
mod walk;

use crate::field::{FieldError, Path};
use crate::schema::Schema;
use crate::{embedded, lists};
use serde_json::Value;
use std::sync::Arc;

/// Validates a new value: the schema's keywords, then embedded resources, then the keys of sets and maps.
pub fn validate(schema: &Arc<Schema>, value: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = against_schema(schema, value, path);
    errors.extend(embedded::validate(schema, value, path));
    errors.extend(lists::validate(schema, value, path));
    errors
}

/// Validates a changed value. Errors of unchanged values are ignored, as in Kubernetes (ratcheting).
pub fn validate_update(schema: &Arc<Schema>, new: &Value, old: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = walk::check(schema, new, Some(old)).into_field_errors(path);
    errors.extend(embedded::validate(schema, new, path));
    if lists::validate(schema, old, path).is_empty() {
        errors.extend(lists::validate(schema, new, path));
    }
    errors
}

/// Validates an update of the status subresource: by the schema of the status, with paths that begin at the status.
pub fn validate_status_update(schema: &Arc<Schema>, new: &Value, old: &Value) -> Vec<FieldError> {
    let path = Path::new("status");
    let mut errors = Vec::new();
    if let (Some(schema), Some(status)) = (schema.resolved().properties.get("status"), new.get("status")) {
        errors = walk::check(schema, status, old.get("status")).into_field_errors(&path);
    }
    let root = Path::root();
    let duplicates = lists::validate(schema, new, &root);
    if !duplicates.is_empty() && lists::validate(schema, old, &root).is_empty() {
        errors.extend(duplicates);
    }
    errors
}

/// The schema's keywords only.
pub(crate) fn against_schema(schema: &Arc<Schema>, value: &Value, path: &Path) -> Vec<FieldError> {
    walk::check(schema, value, None).into_field_errors(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_update_is_not_blamed_for_what_was_wrong_before() {
        let schema = Arc::new(
            Schema::from_json(&json!({"type": "object", "properties": {
                "n": {"type": "integer", "maximum": 3},
                "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
                "l": {"type": "array", "items": {"type": "integer"}},
                "o": {"type": "object", "properties": {"a": {"type": "string"}},
                    "allOf": [{"properties": {"a": {"minLength": 3}}}]},
            }}))
            .unwrap(),
        );
        let old =
            json!({"n": 9, "m": [{"k": "a", "v": "x"}, {"v": "x"}], "l": ["x", 1], "o": {"a": "y", "b": 1}});
        for (new, expected) in [
            (json!({"n": 9, "m": [{"k": "b"}, {"k": "a", "v": "x"}], "l": ["x", 1]}), vec![]),
            (json!({"n": 8}), vec!["n: Invalid value: 8: n in body should be less than or equal to 3"]),
            (
                json!({"m": [{"v": "x"}]}),
                vec!["m[0].v: Invalid value: \"string\": m[0].v in body must be of type integer: \"string\""],
            ),
            (
                json!({"l": ["x", 2]}),
                vec!["l[0]: Invalid value: \"string\": l[0] in body must be of type integer: \"string\""],
            ),
            // Inside of logic nothing is forgiven by itself.
            (
                json!({"o": {"a": "y"}}),
                vec![
                    "o.a: Invalid value: \"y\": o.a in body should be at least 3 chars long",
                    "<nil>: Invalid value: \"\": \"o\" must validate all the schemas (allOf). None validated",
                ],
            ),
        ] {
            let errors = validate_update(&schema, &new, &old, &Path::root());
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, expected, "{new}");
        }
    }
}
