//! OpenAPI v2 of extension API servers, merged into our own: pure.
//!
//! Of a server's document only the paths of its own group and version count, and the definitions that these need. A definition whose name is
//! taken by another is renamed.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

const DEFINITION: &str = "#/definitions/";

/// What of a document is about paths that begin so, as JSON; none if it is no document.
pub(crate) fn of_paths(document: &[u8], prefix: &str) -> Option<bytes::Bytes> {
    let mut document: Value = serde_json::from_slice(document).ok()?;
    let mut paths = match document.get_mut("paths").map(Value::take) {
        Some(Value::Object(paths)) => paths,
        _ => Map::new(),
    };
    paths.retain(|path, _| path.starts_with(prefix));
    let all = match document.get_mut("definitions").map(Value::take) {
        Some(Value::Object(all)) => all,
        _ => Map::new(),
    };
    let parameters = document.get_mut("parameters").map(Value::take).unwrap_or_default();
    let (mut wanted, mut definitions) = (BTreeSet::new(), Map::new());
    paths.values().for_each(|path| references(path, &mut wanted));
    references(&parameters, &mut wanted);
    while let Some(name) = wanted.pop_first() {
        if let Some(definition) = all.get(&name).filter(|_| !definitions.contains_key(&name)) {
            references(definition, &mut wanted);
            definitions.insert(name, definition.clone());
        }
    }
    // Parameters are told where they are used: of several servers they would have the same names.
    let mut paths = Value::Object(paths);
    if let Value::Object(parameters) = &parameters {
        inline(&mut paths, parameters);
    }
    let document = serde_json::json!({"paths": paths, "definitions": definitions});
    Some(windlass_schema::json::write(&document).into())
}

/// Merges such a document into another. Paths that are there already stay what they are.
pub(super) fn merge(into: &mut Value, document: &[u8]) {
    let Ok(mut document) = serde_json::from_slice::<Value>(document) else { return };
    let taken = document.get_mut("definitions").map(Value::take);
    let Some(Value::Object(definitions)) = taken else { return };
    let mut names = BTreeMap::new();
    if let Some(known) = into["definitions"].as_object() {
        for (name, definition) in &definitions {
            if known.get(name).is_some_and(|known| !is_same(known, definition)) {
                names.insert(name.clone(), free(name, definition, known, &definitions));
            }
        }
    }
    let mut definitions = Value::Object(definitions);
    rename(&mut definitions, &names);
    rename(&mut document, &names);
    if let (Some(known), Value::Object(definitions)) = (into["definitions"].as_object_mut(), definitions) {
        for (name, definition) in definitions {
            let name = names.remove(&name).unwrap_or(name);
            known.entry(name).or_insert(definition);
        }
    }
    if let (Some(known), Some(Value::Object(paths))) =
        (into["paths"].as_object_mut(), document.get_mut("paths").map(Value::take))
    {
        for (path, operations) in paths {
            known.entry(path).or_insert(operations);
        }
    }
}

/// A name that nothing else has: `NAME_v2`, or a later one.
fn free(name: &str, definition: &Value, known: &Map<String, Value>, own: &Map<String, Value>) -> String {
    let candidates = (2..).map(|number: usize| format!("{name}_v{number}"));
    let fits = |name: &String| {
        known.get(name).is_none_or(|known| is_same(known, definition)) && !own.contains_key(name)
    };
    // There are more numbers than names.
    candidates.take(known.len() + own.len() + 1).find(fits).unwrap_or_else(|| format!("{name}_v"))
}

/// Whether two definitions say the same, whatever kinds they are said to be of.
fn is_same(one: &Value, other: &Value) -> bool {
    let without_kind = |definition: &Value| {
        let mut definition = definition.clone();
        definition.as_object_mut().and_then(|fields| fields.remove(super::GROUP_VERSION_KIND));
        definition
    };
    without_kind(one) == without_kind(other)
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().and_then(|to| to.strip_prefix(DEFINITION)) {
                    Some(to) if name == "$ref" => {
                        found.insert(to.to_owned());
                    }
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let to = value.as_str().and_then(|to| names.get(to.strip_prefix(DEFINITION)?));
                match to {
                    Some(to) if name == "$ref" => *value = format!("{DEFINITION}{to}").into(),
                    _ => rename(value, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

/// Writes parameters where they are referred to.
fn inline(value: &mut Value, parameters: &Map<String, Value>) {
    let to = value.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix("#/parameters/"));
    if let Some(parameter) = to.and_then(|to| parameters.get(to)) {
        *value = parameter.clone();
        return;
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|value| inline(value, parameters)),
        Value::Array(items) => items.iter_mut().for_each(|item| inline(item, parameters)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_own_paths_are_taken_and_what_they_need() {
        let document = json!({
            "paths": {
                "/apis/a.example/v1/gadgets": {"parameters": [{"$ref": "#/parameters/p"}],
                    "get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Gadget"}}}}},
                "/api/v1/pods": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Pod"}}}}},
            },
            "parameters": {"p": {"name": "pretty", "in": "query"}},
            "definitions": {
                "Gadget": {"properties": {"spec": {"$ref": "#/definitions/Spec"}, "self": {"$ref": "#/definitions/Gadget"}}},
                "Spec": {"type": "object"},
                "Pod": {"type": "object"},
            },
        });
        let taken = of_paths(document.to_string().as_bytes(), "/apis/a.example/v1/").unwrap();
        let taken: Value = serde_json::from_slice(&taken).unwrap();
        assert_eq!(taken["definitions"].as_object().unwrap().len(), 2, "{taken}");
        assert_eq!(taken["paths"].as_object().unwrap().len(), 1, "{taken}");
        assert_eq!(taken["paths"]["/apis/a.example/v1/gadgets"]["parameters"][0]["name"], "pretty");
        assert!(of_paths(b"<html>", "/").is_none());
    }

    #[test]
    fn a_definition_of_a_taken_name_is_renamed_with_what_refers_to_it() {
        let mut into = json!({"paths": {"/a": {"ours": true}}, "definitions": {
            "Meta": {"type": "object", "description": "ours"}, "Same": {"type": "string"}}});
        let document = json!({
            "paths": {"/a": {"theirs": true}, "/b": {"schema": {"$ref": "#/definitions/Meta"}}},
            "definitions": {"Meta": {"type": "object", "description": "theirs"},
                "Same": {"type": "string", "x-kubernetes-group-version-kind": []},
                "Gadget": {"properties": {"metadata": {"$ref": "#/definitions/Meta"}}}},
        });
        merge(&mut into, document.to_string().as_bytes());
        // Another server that has the same finds it under its new name.
        let other = json!({
            "paths": {"/b": {"again": true}, "/c": {"schema": {"$ref": "#/definitions/Meta"}}},
            "definitions": {"Meta": {"type": "object", "description": "theirs"}},
        });
        merge(&mut into, other.to_string().as_bytes());
        assert_eq!(
            into,
            json!({
                "paths": {"/a": {"ours": true}, "/b": {"schema": {"$ref": "#/definitions/Meta_v2"}},
                    "/c": {"schema": {"$ref": "#/definitions/Meta_v2"}}},
                "definitions": {
                    "Meta": {"type": "object", "description": "ours"},
                    "Meta_v2": {"type": "object", "description": "theirs"},
                    "Same": {"type": "string"},
                    "Gadget": {"properties": {"metadata": {"$ref": "#/definitions/Meta_v2"}}},
                },
            })
        );
    }
}
