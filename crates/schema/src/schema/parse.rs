//! Parses schemas from JSON: a CRD's `openAPIV3Schema`, or all definitions of an OpenAPI document with their references.

use crate::field::{FieldError, Path};
use crate::schema::{Additional, Definitions, ListType, MapType, Reference, Schema, Type};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

/// How deep schemas may nest: far beyond any real one, and safe for everything that walks them by recursion.
pub(crate) const MAX_SCHEMA_DEPTH: usize = 128;

type Target = Arc<OnceLock<Weak<Schema>>>;

impl Schema {
    /// Reads a CRD's `openAPIV3Schema` or an OpenAPI definition. Unknown keywords are ignored, references stay open.
    pub fn from_json(json: &Value) -> Result<Schema, Vec<FieldError>> {
        let mut reader = Reader::default();
        let schema = reader.schema(json, &Path::root(), 0);
        reader.finish(schema)
    }

    /// The same for a schema that was not stored yet, with errors below a path.
    pub(crate) fn read_unsettled(json: &Value, path: &Path) -> Result<Schema, Vec<FieldError>> {
        let mut reader = Reader { unsettled: true, ..Reader::default() };
        let schema = reader.schema(json, path, 0);
        reader.finish(schema)
    }
}

/// Reads all definitions of an OpenAPI document and links their references with each other.
pub fn link(raw: &Map<String, Value>) -> Result<Definitions, Vec<FieldError>> {
    link_with(raw, &Definitions::new())
}

/// The same for definitions that refer to each other and to those that are linked already.
///
/// # Errors
/// As [`link`].
pub fn link_with(raw: &Map<String, Value>, linked: &Definitions) -> Result<Definitions, Vec<FieldError>> {
    let mut reader = Reader::default();
    let mut definitions = Definitions::new();
    for (name, json) in raw {
        let schema = reader.schema(json, &Path::new(name), 0);
        definitions.insert(name.clone(), Arc::new(schema));
    }
    for (name, target) in &reader.targets {
        match definitions.get(name).or_else(|| linked.get(name)) {
            // Each target is set here and nowhere else, so it cannot have been set before.
            Some(schema) => drop(target.set(Arc::downgrade(schema))),
            None => reader.errors.push(FieldError::not_found(&Path::new("$ref"), name.as_str())),
        }
    }
    reader.finish(definitions)
}

/// The name in `#/components/schemas/NAME` or `#/definitions/NAME`.
fn definition_name(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/components/schemas/").or_else(|| reference.strip_prefix("#/definitions/"))
}

/// The value as it is after it was stored: a whole float is written, and read again, as an integer.
fn settled(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // The bounds of i64, where the cast is exact.
            Some(float) if float.fract() == 0.0 && (i64::MIN as f64..i64::MAX as f64).contains(&float) => {
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(settled).collect(),
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), settled(field))).collect(),
        other => other.clone(),
    }
}

#[derive(Default)]
struct Reader {
    /// Are numbers kept as they were written?
    unsettled: bool,
    errors: Vec<FieldError>,
    targets: BTreeMap<String, Target>,
}

impl Reader {
    fn finish<T>(self, read: T) -> Result<T, Vec<FieldError>> {
        if self.errors.is_empty() { Ok(read) } else { Err(self.errors) }
    }

    fn schema(&mut self, json: &Value, path: &Path, depth: usize) -> Schema {
        let Some(map) = json.as_object() else {
            self.errors.push(FieldError::type_invalid(path, json.clone(), "must be an object"));
            return Schema::default();
        };
        if depth > MAX_SCHEMA_DEPTH {
            self.errors.push(FieldError::invalid(
                path,
                "",
                format!("schemas may not nest deeper than {MAX_SCHEMA_DEPTH} levels"),
            ));
            return Schema::default();
        }
        let take = if self.unsettled { Value::clone } else { settled };
        let mut node = Node { reader: self, map, path, depth: depth + 1 };
        let format = node.text("format");
        Schema {
            int_or_string: node.flag("x-kubernetes-int-or-string")
                || format.as_deref() == Some("int-or-string"),
            kind: node.named("type", Type::named),
            format,
            title: node.text("title"),
            nullable: node.flag("nullable"),
            default: map.get("default").filter(|value| !value.is_null()).map(take),
            enumeration: node.list("enum").map(|values| values.iter().map(take).collect()),
            properties: node.schemas_by_name("properties"),
            required: node.texts("required"),
            additional: node.additional(),
            min_properties: node.count("minProperties"),
            max_properties: node.count("maxProperties"),
            items: node.one("items"),
            min_items: node.count("minItems"),
            max_items: node.count("maxItems"),
            unique_items: node.flag("uniqueItems"),
            minimum: node.number("minimum"),
            maximum: node.number("maximum"),
            exclusive_minimum: node.flag("exclusiveMinimum"),
            exclusive_maximum: node.flag("exclusiveMaximum"),
            multiple_of: node.number("multipleOf"),
            min_length: node.count("minLength"),
            max_length: node.count("maxLength"),
            pattern: node.text("pattern").filter(|pattern| !pattern.is_empty()),
            all_of: node.several("allOf"),
            any_of: node.several("anyOf"),
            one_of: node.several("oneOf"),
            not: node.one("not"),
            preserve_unknown: node.flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: node.flag("x-kubernetes-embedded-resource"),
            list_type: node.named("x-kubernetes-list-type", |name| match name {
                "atomic" => Some(ListType::Atomic),
                "set" => Some(ListType::Set),
                "map" => Some(ListType::Map),
                _ => None,
            }),
            list_map_keys: node.texts("x-kubernetes-list-map-keys"),
            map_type: node.named("x-kubernetes-map-type", |name| match name {
                "granular" => Some(MapType::Granular),
                "atomic" => Some(MapType::Atomic),
                _ => None,
            }),
            validations: node.list("x-kubernetes-validations").map(<[Value]>::to_vec).unwrap_or_default(),
            reference: node.reference(),
            any_format: false,
            compiled: OnceLock::new(),
        }
    }
}

/// One schema object while it is read.
struct Node<'a> {
    reader: &'a mut Reader,
    map: &'a Map<String, Value>,
    path: &'a Path,
    depth: usize,
}

impl<'a> Node<'a> {
    /// The keyword's value; null counts as absent, as in Go.
    fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.map.get(keyword).filter(|value| !value.is_null())
    }

    fn wrong(&mut self, keyword: &str, value: &Value, detail: &str) {
        self.reader.errors.push(FieldError::type_invalid(&self.path.child(keyword), value.clone(), detail));
    }

    fn read<T>(&mut self, keyword: &str, what: &str, read: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.get(keyword)?;
        let read = read(value);
        if read.is_none() {
            self.wrong(keyword, value, what);
        }
        read
    }

    fn text(&mut self, keyword: &str) -> Option<String> {
        self.read(keyword, "must be a string", |value| value.as_str().map(str::to_owned))
    }

    fn flag(&mut self, keyword: &str) -> bool {
        self.read(keyword, "must be a boolean", Value::as_bool).unwrap_or_default()
    }

    fn number(&mut self, keyword: &str) -> Option<f64> {
        self.read(keyword, "must be a number", Value::as_f64)
    }

    fn count(&mut self, keyword: &str) -> Option<u64> {
        self.read(keyword, "must be an integer", |value| {
            value.as_u64().or_else(|| value.as_i64().map(|_| 0)).or_else(|| {
                let float = value.as_f64()?;
                // Go refuses a fraction and what does not fit; the cast is exact for what is left.
                (float.fract() == 0.0 && (0.0..9e15).contains(&float)).then_some(float as u64)
            })
        })
    }

    fn list(&mut self, keyword: &str) -> Option<&'a [Value]> {
        self.read(keyword, "must be an array", |value| value.as_array().map(Vec::as_slice))
    }

    fn texts(&mut self, keyword: &str) -> Vec<String> {
        let texts = self.read(keyword, "must be an array of strings", |value| {
            value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        });
        texts.unwrap_or_default()
    }

    fn named<T>(&mut self, keyword: &str, named: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(keyword).filter(|text| !text.is_empty())?;
        let found = named(&text);
        if found.is_none() {
            self.wrong(keyword, &Value::String(text), "is not known");
        }
        found
    }

    fn inner(&mut self, json: &Value, path: &Path) -> Arc<Schema> {
        Arc::new(self.reader.schema(json, path, self.depth))
    }

    fn one(&mut self, keyword: &str) -> Option<Arc<Schema>> {
        let json = self.get(keyword)?;
        let path = self.path.child(keyword);
        Some(self.inner(json, &path))
    }

    fn several(&mut self, keyword: &str) -> Vec<Arc<Schema>> {
        let path = self.path.child(keyword);
        let list = self.list(keyword).unwrap_or_default();
        list.iter().enumerate().map(|(index, json)| self.inner(json, &path.index(index))).collect()
    }

    fn schemas_by_name(&mut self, keyword: &str) -> BTreeMap<String, Arc<Schema>> {
        let path = self.path.child(keyword);
        let Some(map) = self.read(keyword, "must be an object", Value::as_object) else {
            return BTreeMap::new();
        };
        map.iter().map(|(name, json)| (name.clone(), self.inner(json, &path.key(name)))).collect()
    }

    fn additional(&mut self) -> Option<Additional> {
        match self.get("additionalProperties")? {
            Value::Bool(allowed) => Some(Additional::Allowed(*allowed)),
            json => {
                let path = self.path.child("additionalProperties");
                Some(Additional::Schema(self.inner(json, &path)))
            }
        }
    }

    fn reference(&mut self) -> Option<Reference> {
        let name = self.text("$ref")?;
        let Some(name) = definition_name(&name).map(str::to_owned) else {
            self.wrong("$ref", &Value::String(name), "must lead to #/components/schemas/ or #/definitions/");
            return None;
        };
        let target = self.reader.targets.entry(name.clone()).or_default().clone();
        Some(Reference { name, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn recursive_definitions_are_linked() {
        let raw = json!({
            "Tree": {"type": "object", "properties": {
                "left": {"$ref": "#/components/schemas/Tree"},
                "leaf": {"allOf": [{"$ref": "#/definitions/Leaf"}], "default": {}},
            }},
            "Leaf": {"type": "string"},
        });
        let definitions = link(raw.as_object().unwrap()).unwrap();
        let tree = &definitions["Tree"];
        assert!(Arc::ptr_eq(&tree.properties["left"].resolved(), tree));
        assert_eq!(tree.properties["leaf"].resolved().kind, Some(Type::String));
    }

    #[test]
    fn a_reference_to_nowhere_is_refused() {
        let raw = json!({"A": {"$ref": "#/components/schemas/B"}});
        let errors = link(raw.as_object().unwrap()).unwrap_err();
        assert_eq!(errors[0].to_string(), r#"$ref: Not found: "B""#);
    }

    #[test]
    fn every_wrong_keyword_is_named() {
        let errors = Schema::from_json(&json!({
            "type": "thing", "properties": {"a": {"maxLength": "x"}}, "required": [1],
        }))
        .unwrap_err();
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                r#"type: Invalid value: "thing": is not known"#,
                r#"properties[a].maxLength: Invalid value: "x": must be an integer"#,
                "required: Invalid value: [1]: must be an array of strings",
            ]
        );
    }

    #[test]
    fn too_deep_a_schema_is_refused() {
        let mut json = json!({"type": "string"});
        for _ in 0..200 {
            json = json!({"items": json});
        }
        assert!(Schema::from_json(&json).is_err());
    }
}
