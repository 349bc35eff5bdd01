//! `x-kubernetes-list-type`: items of `set` lists and keys of `map` lists are unique.

use crate::field::{FieldError, Path};
use crate::json;
use crate::schema::{Additional, ListType, Schema};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Every duplicate, once.
pub fn validate(schema: &Arc<Schema>, value: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // As in Kubernetes, the value itself is an object.
    if let Value::Object(fields) = value {
        object(&schema.resolved(), fields, path, &mut errors);
    }
    errors
}

fn any(schema: &Arc<Schema>, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => object(&schema.resolved(), fields, path, errors),
        Value::Array(items) => array(&schema.resolved(), items, path, errors),
        _ => {}
    }
}

fn object(schema: &Schema, fields: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(Additional::Schema(schema)) = &schema.additional {
        for (name, value) in fields {
            any(schema, value, &path.key(name), errors);
        }
    }
    for (name, value) in fields {
        if let Some(schema) = schema.properties.get(name) {
            any(schema, value, &path.child(name), errors);
        }
    }
}

fn array(schema: &Schema, items: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    match schema.list_type {
        Some(ListType::Set) => {
            for index in duplicates(items.iter()) {
                errors.push(FieldError::duplicate(&path.index(index), items[index].clone()));
            }
        }
        Some(ListType::Map) => map(schema, items, path, errors),
        _ => {}
    }
    if let Some(schema) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            any(schema, item, &path.index(index), errors);
        }
    }
}

fn map(schema: &Schema, items: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        let why = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(&path.index(index), items[index].clone(), why));
        return;
    }
    // What is missing stays missing: it is a key of its own.
    let key = |item: &Value| -> Value {
        let fields = item.as_object();
        let entry = |name: &String| Some((name.clone(), fields?.get(name)?.clone()));
        schema.list_map_keys.iter().filter_map(entry).collect::<Map<String, Value>>().into()
    };
    let keys: Vec<Value> = items.iter().map(key).collect();
    for index in duplicates(keys.iter()) {
        errors.push(FieldError::duplicate(&path.index(index), keys[index].clone()));
    }
}

/// The second occurrence of everything that occurs more than once.
fn duplicates<'a>(values: impl Iterator<Item = &'a Value>) -> Vec<usize> {
    let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut found = Vec::new();
    for (index, value) in values.enumerate() {
        let mut text = json::write(value);
        // An integer and a float print alike and are not the same.
        if let Value::Number(number) = value
            && number.is_f64()
        {
            text.push(b'f');
        }
        let times = seen.entry(text).or_default();
        *times += 1;
        if *times == 2 {
            found.push(index);
        }
    }
    found
}
