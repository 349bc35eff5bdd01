//! Defaulting: sets absent fields to the defaults of their schema.

use crate::field::Path;
use crate::schema::{Additional, Schema};
use crate::{embedded, prune};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Fills in the defaults of a structural schema. A null where the schema knows none vanishes first, or makes room for
/// the default.
pub fn fill(schema: &Arc<Schema>, value: &mut Value) {
    drop_nulls(schema, value);
    fill_in(schema, value);
}

fn field_schema<'a>(schema: &'a Schema, name: &str) -> Option<&'a Arc<Schema>> {
    match (schema.properties.get(name), &schema.additional) {
        (Some(schema), _) => Some(schema),
        (None, Some(Additional::Schema(schema))) => Some(schema),
        _ => None,
    }
}

/// Drops nulls where the schema knows neither null nor a default.
pub fn drop_nulls(schema: &Arc<Schema>, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| match field_schema(schema, name) {
            Some(schema) if value.is_null() && !schema.nullable && schema.default.is_none() => false,
            Some(schema) => {
                drop_nulls(schema, value);
                true
            }
            None => true,
        }),
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(schema, item));
            }
        }
        _ => {}
    }
}

/// The same, but nulls stay where there is no default: what apply leaves behind is not read again.
pub fn fill_in(schema: &Arc<Schema>, value: &mut Value) {
    match value {
        Value::Object(fields) => fill_object(schema, fields),
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for item in items {
                replace_null(schema, item);
                fill_in(schema, item);
            }
        }
        _ => {}
    }
}

fn fill_object(schema: &Arc<Schema>, fields: &mut Map<String, Value>) {
    for (name, schema) in &schema.properties {
        let Some(default) = &schema.default else { continue };
        match fields.get(name) {
            None => {}
            Some(Value::Null) if !schema.nullable => {}
            Some(_) => continue,
        }
        fields.insert(name.clone(), pruned(schema, default));
    }
    for (name, value) in fields {
        if let Some(field) = schema.properties.get(name) {
            fill_in(field, value);
        } else if let Some(Additional::Schema(field)) = &schema.additional {
            replace_null(field, value);
            fill_in(field, value);
        }
    }
}

fn replace_null(schema: &Arc<Schema>, value: &mut Value) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = pruned(schema, default);
    }
}

/// A default without what its schema does not know, and without what is empty in embedded metadata. Definitions are
/// refused for the former, except where nothing looks: under `additionalProperties`.
fn pruned(schema: &Arc<Schema>, default: &Value) -> Value {
    let mut default = default.clone();
    if let Value::Object(_) | Value::Array(_) = default {
        // Definitions with metadata of a wrong type are refused.
        let _ = embedded::coerce(schema, &mut default, &Path::root());
        prune::prune(schema, &mut default, schema.embedded_resource);
    }
    default
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_fill_what_is_missing_and_what_may_not_be_null() {
        for (schema, value, filled) in [
            (
                json!({"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}, "c": {"properties": {"d": {"default": 2}}}}}),
                json!({}),
                json!({"a": {"b": 1}}),
            ),
            (
                json!({"properties": {"a": {"default": 1}, "b": {}, "c": {"nullable": true, "default": 1}}}),
                json!({"a": null, "b": null, "c": null, "d": null}),
                json!({"a": 1, "c": null, "d": null}),
            ),
            (json!({"items": {"default": 1}}), json!([null, 2]), json!([1, 2])),
            (json!({"items": {}}), json!([null]), json!([null])),
            (json!({"additionalProperties": {"default": 1}}), json!({"a": null}), json!({"a": 1})),
            (json!({"additionalProperties": {}}), json!({"a": null}), json!({})),
        ] {
            let schema = Arc::new(Schema::from_json(&schema).unwrap());
            let mut value = value;
            fill(&schema, &mut value);
            assert_eq!(value, filled);
        }
    }
}
