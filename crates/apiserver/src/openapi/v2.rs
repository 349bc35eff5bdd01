//! OpenAPI v2, made from the documents of version 3: all in one, in the older notation.

use super::{GROUP_VERSION_KIND, PREFIX};
use serde_json::{Map, Value, json};

/// One document of all these.
pub(super) fn document(documents: Vec<Value>, version: &str) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for mut document in documents {
        if let Some(Value::Object(own)) = document.get_mut("paths").map(Value::take) {
            paths.extend(own.into_iter().map(|(path, operations)| (path, path_of(operations))));
        }
        let schemas = document.pointer_mut("/components/schemas").map(Value::take);
        if let Some(Value::Object(own)) = schemas {
            for (name, mut schema) in own {
                definition(&mut schema);
                definitions.entry(name).or_insert(schema);
            }
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "definitions": definitions,
    })
}

/// A definition. Of an object that may have any fields nothing else is said, not even that it has metadata.
fn definition(schema: &mut Value) {
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
        && let Some(fields) = schema.as_object_mut().filter(|fields| fields.contains_key(GROUP_VERSION_KIND))
    {
        fields.retain(|name, _| name == GROUP_VERSION_KIND);
        fields.insert("type".to_owned(), "object".into());
    }
    rewrite(schema);
}

fn path_of(operations: Value) -> Value {
    let Value::Object(operations) = operations else { return operations };
    let operation = |(method, value): (String, Value)| {
        let value = if method == "parameters" { parameters(value) } else { operation(value) };
        (method, value)
    };
    operations.into_iter().map(operation).collect::<Map<_, _>>().into()
}

/// Parameters say their types themselves.
fn parameters(given: Value) -> Value {
    let Value::Array(mut given) = given else { return given };
    for parameter in &mut given {
        if let Some(parameter) = parameter.as_object_mut()
            && let Some(Value::Object(schema)) = parameter.remove("schema")
        {
            parameter.extend(schema);
        }
    }
    given.into()
}

fn operation(mut operation: Value) -> Value {
    let mut all = parameters(operation.get_mut("parameters").map(Value::take).unwrap_or_else(|| json!([])));
    let Some(fields) = operation.as_object_mut() else { return operation };
    let body = fields.remove("requestBody").unwrap_or_default();
    if let Some((media, schema)) = content(&body) {
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
        if body.get("required") == Some(&Value::Bool(true)) {
            parameter["required"] = true.into();
        }
        if let Some(all) = all.as_array_mut() {
            all.insert(0, parameter);
        }
        fields.insert("consumes".to_owned(), media.into());
    }
    fields.insert("parameters".to_owned(), all);
    fields.insert("produces".to_owned(), json!(["application/json"]));
    fields.insert("schemes".to_owned(), json!(["https"]));
    if let Some(responses) = fields.get_mut("responses").and_then(Value::as_object_mut) {
        for response in responses.values_mut() {
            let schema = content(response).map(|(_, schema)| schema);
            if let Some(response) = response.as_object_mut() {
                response.remove("content");
                response.extend(schema.map(|schema| ("schema".to_owned(), schema)));
            }
        }
    }
    operation
}

/// The media types of a content, and its schema in the older notation.
fn content(holder: &Value) -> Option<(Vec<String>, Value)> {
    let content = holder.get("content")?.as_object()?;
    let mut schema = content.values().next()?.get("schema")?.clone();
    rewrite(&mut schema);
    Some((content.keys().cloned().collect(), schema))
}

/// A schema in the older notation, which has no alternatives and nothing that may be null, and keeps its definitions
/// elsewhere.
fn rewrite(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    // A reference beside anything else is wrapped there, and bare here.
    if let Some(inner) = fields.get("allOf").and_then(Value::as_array)
        && let [inner] = inner.as_slice()
        && let Some(reference) = inner.get("$ref").cloned()
    {
        fields.remove("default");
        fields.insert("$ref".to_owned(), reference);
    }
    if let Some(target) = fields.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix(PREFIX)) {
        let target = format!("#/definitions/{target}");
        fields.insert("$ref".to_owned(), target.into());
    }
    for name in ["allOf", "anyOf", "oneOf", "not"] {
        fields.remove(name);
    }
    leave_open(fields);
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(rewrite);
    for name in ["items", "additionalProperties"] {
        fields.get_mut(name).into_iter().for_each(rewrite);
    }
}

/// Says less of what may be null or have unknown fields: clients would take all else for an error.
fn leave_open(fields: &mut Map<String, Value>) {
    let is = |value: Option<&Value>| value == Some(&Value::Bool(true));
    let nulls: Vec<Value> = fields
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, property)| is(property.get("nullable")))
        .map(|(name, _)| name.as_str().into())
        .collect();
    if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !nulls.contains(name));
        if required.is_empty() {
            fields.remove("required");
        }
    }
    let null = is(fields.remove("nullable").as_ref());
    let unknown = is(fields.get("x-kubernetes-preserve-unknown-fields"));
    if null || unknown {
        fields.remove("items");
        fields.remove("properties");
    }
    let kind = fields.get("type").and_then(Value::as_str);
    let untyped =
        (unknown && kind == Some("object")) || (kind == Some("array") && !fields.contains_key("items"));
    if null || untyped {
        fields.remove("type");
    }
}
