//! Decodes metadata as Go's typed decoding does: unknown fields are dropped, wrong types are errors, empty values are omitted.

use super::time;
use crate::{go, json};
use serde_json::{Map, Value};

/// What a field is in Go.
enum Kind {
    Text,
    Integer,
    Flag,
    Time,
    Texts,
    TextMap,
    Raw,
    Structs(&'static Struct),
}

struct Struct {
    name: &'static str,
    fields: &'static [Field],
}

struct Field {
    name: &'static str,
    kind: Kind,
    /// Is it left out where it is empty?
    omit_empty: bool,
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, omit_empty: true }
}

const fn always(name: &'static str) -> Field {
    Field { name, kind: Kind::Text, omit_empty: false }
}

const OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        field("name", Kind::Text),
        field("generateName", Kind::Text),
        field("namespace", Kind::Text),
        field("selfLink", Kind::Text),
        field("uid", Kind::Text),
        field("resourceVersion", Kind::Text),
        field("generation", Kind::Integer),
        field("creationTimestamp", Kind::Time),
        field("deletionTimestamp", Kind::Time),
        field("deletionGracePeriodSeconds", Kind::Integer),
        field("labels", Kind::TextMap),
        field("annotations", Kind::TextMap),
        field("ownerReferences", Kind::Structs(&OWNER_REFERENCE)),
        field("finalizers", Kind::Texts),
        field("managedFields", Kind::Structs(&MANAGED_FIELDS_ENTRY)),
    ],
};

static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        always("apiVersion"),
        always("kind"),
        always("name"),
        always("uid"),
        field("controller", Kind::Flag),
        field("blockOwnerDeletion", Kind::Flag),
    ],
};

static MANAGED_FIELDS_ENTRY: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        field("manager", Kind::Text),
        field("operation", Kind::Text),
        field("apiVersion", Kind::Text),
        field("time", Kind::Time),
        field("fieldsType", Kind::Text),
        field("fieldsV1", Kind::Raw),
        field("subresource", Kind::Text),
    ],
};

/// Decodes an object's `metadata` in place. Returns the paths of the unknown fields it dropped, such as
/// `metadata.foo`; the error is worded as in Go.
pub fn decode(metadata: &mut Value) -> Result<Vec<String>, String> {
    decode_at(metadata, "metadata")
}

/// The same for metadata anywhere in an object.
pub(crate) fn decode_at(metadata: &mut Value, path: &str) -> Result<Vec<String>, String> {
    let mut decoder = Decoder { unknown: Vec::new(), error: None };
    let decoded = match metadata {
        Value::Null => Map::new(),
        Value::Object(fields) => decoder.fields(&OBJECT_META, std::mem::take(fields), path, ""),
        other => {
            return Err(format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                json::kind(other)
            ));
        }
    };
    *metadata = Value::Object(decoded);
    match decoder.error {
        Some(error) => Err(error),
        None => Ok(decoder.unknown),
    }
}

struct Decoder {
    unknown: Vec<String>,
    /// The first one; Go goes on decoding after it.
    error: Option<String>,
}

/// Where a value goes, for the error: the struct, and the way to the field.
struct Place<'a> {
    owner: &'a str,
    field: &'a str,
}

impl Decoder {
    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    fn mismatch(&mut self, value: &str, place: &Place<'_>, wanted: &str) {
        let Place { owner, field } = place;
        self.fail(format!(
            "json: cannot unmarshal {value} into Go struct field {owner}.{field} of type {wanted}"
        ));
    }

    fn fields(
        &mut self,
        shape: &Struct,
        fields: Map<String, Value>,
        path: &str,
        stack: &str,
    ) -> Map<String, Value> {
        let mut decoded = Map::new();
        for (name, value) in fields {
            let Some(field) = shape.fields.iter().find(|field| field.name == name) else {
                if self.unknown.len() < 100 {
                    self.unknown.push(format!("{path}.{name}"));
                }
                continue;
            };
            let stack = if stack.is_empty() { name.clone() } else { format!("{stack}.{name}") };
            let place = Place { owner: shape.name, field: &stack };
            let value = self.value(&field.kind, value, &place, &format!("{path}.{name}"));
            if let Some(value) = value.filter(|value| !field.omit_empty || !is_empty(&field.kind, value)) {
                decoded.insert(name, value);
            }
        }
        for field in shape.fields.iter().filter(|field| !field.omit_empty) {
            decoded.entry(field.name).or_insert_with(|| "".into());
        }
        decoded
    }

    fn value(&mut self, kind: &Kind, value: Value, place: &Place<'_>, path: &str) -> Option<Value> {
        match (kind, value) {
            (_, Value::Null) => None,
            (Kind::Raw, value) => Some(value),
            (Kind::Text, value @ Value::String(_)) | (Kind::Flag, value @ Value::Bool(_)) => Some(value),
            (Kind::Text, other) => self.refuse(&other, place, "string"),
            (Kind::Flag, other) => self.refuse(&other, place, "bool"),
            (Kind::Integer, Value::Number(number)) => {
                let integer = number.as_i64().or_else(|| {
                    let float = number.as_f64()?;
                    // A whole float reads as an integer, as long as it is printed like one.
                    (float.fract() == 0.0 && float.abs() < 9.2e18).then_some(float as i64)
                });
                if integer.is_none() {
                    let text = number.as_f64().map(go::json_float).unwrap_or_default();
                    self.mismatch(&format!("number {text}"), place, "int64");
                }
                integer.map(Value::from)
            }
            (Kind::Integer, other) => self.refuse(&other, place, "int64"),
            (Kind::Time, Value::String(text)) => match time::normalise(&text) {
                Ok(time) => time.map(Value::String),
                Err(error) => {
                    self.fail(error);
                    None
                }
            },
            (Kind::Time, other) => self.refuse(&other, place, "string"),
            (Kind::Texts, Value::Array(items)) => {
                Some(items.into_iter().map(|item| self.text(item, place)).collect())
            }
            (Kind::Texts, other) => self.refuse(&other, place, "[]string"),
            (Kind::TextMap, Value::Object(entries)) => {
                Some(entries.into_iter().map(|(key, value)| (key, self.text(value, place))).collect())
            }
            (Kind::TextMap, other) => self.refuse(&other, place, "map[string]string"),
            (Kind::Structs(shape), Value::Array(items)) => {
                let items = items.into_iter().enumerate().map(|(index, item)| match item {
                    Value::Object(fields) => {
                        self.fields(shape, fields, &format!("{path}[{index}]"), place.field)
                    }
                    Value::Null => self.fields(shape, Map::new(), path, place.field),
                    other => {
                        self.mismatch(json::kind(&other), place, &format!("v1.{}", shape.name));
                        Map::new()
                    }
                });
                Some(items.map(Value::Object).collect())
            }
            (Kind::Structs(shape), other) => self.refuse(&other, place, &format!("[]v1.{}", shape.name)),
        }
    }

    fn refuse(&mut self, value: &Value, place: &Place<'_>, wanted: &str) -> Option<Value> {
        self.mismatch(json::kind(value), place, wanted);
        None
    }

    /// A string inside a list or map, where null is an empty one.
    fn text(&mut self, value: Value, place: &Place<'_>) -> Value {
        self.value(&Kind::Text, value, place, "").unwrap_or_else(|| "".into())
    }
}

fn is_empty(kind: &Kind, value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && !matches!(kind, Kind::Raw),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wrong_types_are_refused_in_gos_words() {
        const TIME: &str = "2006-01-02T15:04:05Z07:00";
        for (mut meta, error) in [
            (json!({"name": 1}), "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string".to_owned()),
            (json!({"labels": "x"}), "json: cannot unmarshal string into Go struct field ObjectMeta.labels of type map[string]string".to_owned()),
            (json!({"labels": {"a": 1}}), "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string".to_owned()),
            (json!({"ownerReferences": [{"name": 1}]}), "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.name of type string".to_owned()),
            (json!({"ownerReferences": {}}), "json: cannot unmarshal object into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference".to_owned()),
            (json!({"ownerReferences": ["x"]}), "json: cannot unmarshal string into Go struct field ObjectMeta.ownerReferences of type v1.OwnerReference".to_owned()),
            (json!({"finalizers": [1]}), "json: cannot unmarshal number into Go struct field ObjectMeta.finalizers of type string".to_owned()),
            (json!({"generation": 1.5}), "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64".to_owned()),
            (json!({"generation": 1e30}), "json: cannot unmarshal number 1e+30 into Go struct field ObjectMeta.generation of type int64".to_owned()),
            (json!({"creationTimestamp": 1}), "json: cannot unmarshal number into Go struct field ObjectMeta.creationTimestamp of type string".to_owned()),
            (json!({"creationTimestamp": "x"}), format!("parsing time \"x\" as \"{TIME}\": cannot parse \"x\" as \"2006\"")),
            (json!({"creationTimestamp": "2020-13-01T00:00:00Z"}), "parsing time \"2020-13-01T00:00:00Z\": month out of range".to_owned()),
            (json!({"managedFields": [{"manager": 1}]}), "json: cannot unmarshal number into Go struct field ManagedFieldsEntry.managedFields.manager of type string".to_owned()),
            (json!([]), "json: cannot unmarshal array into Go value of type v1.ObjectMeta".to_owned()),
        ] {
            assert_eq!(decode(&mut meta), Err(error));
        }
    }

    #[test]
    fn unknown_and_empty_fields_are_dropped() {
        let mut meta = json!({"name": "a", "foo": 1, "annotations": {}, "labels": {"a": null}, "generation": 1.0,
            "creationTimestamp": null, "deletionTimestamp": "2020-01-01T01:00:00.5+01:00", "finalizers": [],
            "ownerReferences": [{"bar": 1, "name": "n"}]});
        assert_eq!(decode(&mut meta).unwrap(), ["metadata.foo", "metadata.ownerReferences[0].bar"]);
        assert_eq!(
            meta,
            json!({"name": "a", "labels": {"a": ""}, "generation": 1, "deletionTimestamp": "2020-01-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "", "kind": "", "name": "n", "uid": ""}]})
        );
    }
}
