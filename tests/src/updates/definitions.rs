//! What the OpenAPI definitions of the built-in kinds say of a field, and a value for one that is absent.

use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static FACTS: LazyLock<Value> = LazyLock::new(|| {
    let facts = include_str!("../../../crates/apiserver/facts/openapi.json");
    serde_json::from_str(facts).expect("the facts are JSON")
});

/// How deep a value for an absent field is filled in.
const DEPTH: usize = 3;

/// The schema of a kind's objects.
pub fn of_kind(api_version: &str, kind: &str) -> Option<&'static Value> {
    let row = resource(api_version, kind)?;
    FACTS["definitions"].get(row["definition"].as_str()?)
}

/// The subresources of a kind that can be updated.
pub fn updatable_subresources(api_version: &str, kind: &str) -> Vec<&'static str> {
    let rows = resource(api_version, kind).and_then(|row| row["subresources"].as_array());
    let updatable = |row: &&Value| row["verbs"].as_array().into_iter().flatten().any(|verb| verb == "update");
    rows.into_iter().flatten().filter(updatable).filter_map(|row| row["name"].as_str()).collect()
}

fn resource(api_version: &str, kind: &str) -> Option<&'static Value> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut rows = FACTS["resources"].as_array()?.iter();
    rows.find(|row| row["group"] == group && row["version"] == version && row["kind"] == kind)
}

/// The schema itself, where another only refers to it.
pub fn resolved(schema: &'static Value) -> &'static Value {
    let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref")).and_then(Value::as_str);
    match reference.and_then(|path| path.rsplit('/').next()).and_then(|name| FACTS["definitions"].get(name)) {
        Some(schema) => schema,
        None => schema,
    }
}

/// The fields of a struct; nothing for what is none.
pub fn properties(schema: &'static Value) -> Option<&'static Map<String, Value>> {
    resolved(schema).get("properties").and_then(Value::as_object)
}

/// The schema of what a list or a map holds.
pub fn held(schema: &'static Value) -> Option<&'static Value> {
    let schema = resolved(schema);
    schema.get("items").or_else(|| schema.get("additionalProperties"))
}

/// The values that a text may have, where they are listed.
pub fn listed(schema: &'static Value) -> Option<&'static Vec<Value>> {
    resolved(schema).get("enum").and_then(Value::as_array)
}

/// Whether the schema is that of a quantity.
pub fn is_quantity(schema: &'static Value) -> bool {
    let types = resolved(schema).get("oneOf").and_then(Value::as_array);
    types.is_some_and(|types| types.iter().any(|one| one["type"] == "number"))
}

/// The format of a text or a number.
pub fn format(schema: &'static Value) -> &'static str {
    resolved(schema).get("format").and_then(Value::as_str).unwrap_or_default()
}

/// A value for a field that is absent: of its type, though not always valid beside the others.
pub fn value(schema: &'static Value) -> Value {
    value_at(schema, DEPTH)
}

fn value_at(schema: &'static Value, depth: usize) -> Value {
    if let Some(values) = listed(schema) {
        return values.first().cloned().unwrap_or_default();
    }
    if is_quantity(schema) {
        return json!("2");
    }
    if let Some(fields) = properties(schema) {
        let required = resolved(schema).get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        let fields = required
            .filter_map(|name| Some((name.to_owned(), value_at(fields.get(name)?, depth.checked_sub(1)?))));
        return Value::Object(fields.collect());
    }
    let schema = resolved(schema);
    match (schema["type"].as_str(), format(schema), held(schema)) {
        (Some("array"), _, Some(item)) if depth > 0 => json!([value_at(item, depth - 1)]),
        (Some("array"), ..) => json!([]),
        (Some("object"), _, Some(item)) if depth > 0 => json!({"added": value_at(item, depth - 1)}),
        (Some("object"), ..) => json!({}),
        (Some("integer" | "number"), ..) | (_, "int-or-string", _) => json!(1),
        (Some("boolean"), ..) => json!(true),
        (_, "date-time", _) => json!("2026-02-03T04:05:06Z"),
        (_, "byte", _) => json!("YWRkZWQ="),
        _ => json!("added"),
    }
}
