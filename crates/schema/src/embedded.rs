//! Embedded resources: objects inside objects, with a kind and metadata of their own.

use crate::field::{FieldError, Path};
use crate::meta::{self, NameRule};
use crate::names;
use crate::schema::{Additional, Schema};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Checks the kind and the metadata of every embedded resource.
pub fn validate(schema: &Arc<Schema>, value: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(schema, value, path, &mut errors);
    errors
}

/// Does to embedded resources what decoding does to the object itself: types of `apiVersion` and `kind` are checked,
/// metadata is decoded. Returns the unknown fields it dropped, such as `spec.template.metadata.foo`.
pub fn coerce(schema: &Arc<Schema>, value: &mut Value, path: &Path) -> Result<Vec<String>, FieldError> {
    let mut unknown = Vec::new();
    coerce_in(schema, value, path, &mut unknown)?;
    unknown.sort();
    Ok(unknown)
}

fn check(schema: &Arc<Schema>, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let schema = &schema.resolved();
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                resource(fields, path, errors);
            }
            for (name, value) in fields {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(schema), _) => check(schema, value, &path.child(name), errors),
                    (None, Some(Additional::Schema(schema))) => check(schema, value, &path.key(name), errors),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check(schema, item, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

pub(crate) fn resource(fields: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    for required in ["apiVersion", "kind"] {
        if !fields.contains_key(required) {
            errors.push(FieldError::required(&path.child(required), ""));
        }
    }
    for name in ["apiVersion", "kind"] {
        let Some(value) = fields.get(name) else { continue };
        let path = path.child(name);
        let why = match value.as_str() {
            None => Some("must be a string".to_owned()),
            Some("") => Some("must not be empty".to_owned()),
            Some(text) if name == "apiVersion" => {
                (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
            }
            Some(kind) => {
                let wrong = names::label_1035(&kind.to_lowercase());
                (!wrong.is_empty())
                    .then(|| format!("may have mixed case, but should otherwise match: {}", wrong.join(",")))
            }
        };
        errors.extend(why.map(|why| FieldError::invalid(&path, value.clone(), why)));
    }
    if let Some(value) = fields.get("metadata") {
        let path = path.child("metadata");
        let mut metadata = value.clone();
        if let Err(error) = meta::decode(&mut metadata) {
            errors.push(FieldError::invalid(&path, value.clone(), error));
            return;
        }
        if let Value::Object(metadata) = &mut metadata {
            // The name of an embedded resource may be left open.
            metadata.entry("name").or_insert_with(|| "fakename".into());
        }
        let namespaced = metadata.get("namespace").is_some();
        errors.extend(meta::validate(&metadata, namespaced, NameRule::PathSegment, &path));
    }
}

fn coerce_in(
    schema: &Arc<Schema>,
    value: &mut Value,
    path: &Path,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    let schema = &schema.resolved();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "apiVersion" | "kind" if schema.embedded_resource && !value.is_string() => {
                        return Err(FieldError::invalid(
                            &path.child(name),
                            value.clone(),
                            "must be a string",
                        ));
                    }
                    "metadata" if schema.embedded_resource => {
                        let path = path.child("metadata");
                        let before = value.clone();
                        let dropped = meta::decode_at(value, &path.to_string())
                            .map_err(|error| FieldError::invalid(&path, before, error))?;
                        unknown.extend(dropped);
                    }
                    _ => {}
                }
                match (schema.properties.get(name), &schema.additional) {
                    (Some(schema), _) => coerce_in(schema, value, &path.child(name), unknown)?,
                    (None, Some(Additional::Schema(schema))) => {
                        coerce_in(schema, value, &path.key(name), unknown)?;
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    coerce_in(schema, item, &path.index(index), unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}
