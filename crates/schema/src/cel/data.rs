//! The data of an object as values of the types that its schema declares.

use super::escape::{escape, unescape};
use super::library::time;
use super::value::{Failure, Meter, Outcome, Text, Value};
use crate::schema::{Additional, ListType, Schema, Type};
use base64::Engine;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A list of the data, and the schema of the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Items<'a> {
    pub list: &'a [Json],
    pub schema: &'a Schema,
}

/// An object of the data, with declared properties or as a map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object<'a> {
    pub fields: &'a Map<String, Json>,
    pub schema: &'a Schema,
}

/// Data as a value.
pub(super) fn value<'a>(json: &'a Json, schema: &'a Schema) -> Outcome<'a> {
    let wrong =
        |wanted: &str| Err(Failure::new(format!("invalid data, expected {wanted}, got {}", kind(json))));
    if json.is_null() {
        return if schema.nullable {
            Ok(Value::Null)
        } else {
            Err(Failure::new("invalid data, got null for schema with nullable=false"))
        };
    }
    if schema.int_or_string {
        return match json {
            Json::String(text) => Ok(Value::String(Text::Borrowed(text))),
            Json::Number(number) if number.is_i64() => Ok(Value::Int(number.as_i64().unwrap_or_default())),
            _ => Err(Failure::new(
                "invalid data, expected XIntOrString value to be either a string or integer",
            )),
        };
    }
    match (schema.kind, json) {
        (Some(Type::Object), Json::Object(fields)) => Ok(Value::Object(Object { fields, schema })),
        (Some(Type::Object), _) => {
            Err(Failure::new("invalid data, expected a map for the provided schema with type=object"))
        }
        (Some(Type::Array), Json::Array(list)) if schema.items.is_some() => {
            Ok(Value::Items(Items { list, schema }))
        }
        (Some(Type::Array), Json::Array(_)) => {
            Err(Failure::new("invalid array type, expected Items with a non-empty Schema"))
        }
        (Some(Type::Array), _) => {
            Err(Failure::new("invalid data, expected an array for the provided schema with type=array"))
        }
        (Some(Type::String), Json::String(text)) => {
            string(text, schema.format.as_deref().unwrap_or_default())
        }
        (Some(Type::String), _) => wrong("string"),
        (Some(Type::Number), Json::Number(number)) => Ok(Value::Double(number.as_f64().unwrap_or_default())),
        (Some(Type::Number), _) => wrong("float"),
        (Some(Type::Integer), Json::Number(number)) => match number.as_i64() {
            Some(number) => Ok(Value::Int(number)),
            None => wrong("int"),
        },
        (Some(Type::Integer), _) => wrong("int"),
        (Some(Type::Boolean), Json::Bool(truth)) => Ok(Value::Bool(*truth)),
        (Some(Type::Boolean), _) => wrong("bool"),
        (None, _) if schema.preserve_unknown => Ok(Value::Unknown(json)),
        (None, _) => Err(Failure::new(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with \
             x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ",
        )),
    }
}

/// The type in Go's words.
fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_f64() => "float64",
        Json::Number(_) => "int64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

fn string<'a>(text: &'a str, format: &str) -> Outcome<'a> {
    let failed = |what: &str, why: String| Failure::new(format!("Invalid {what} {text}: {why}"));
    Ok(match format {
        "duration" => Value::Duration(time::data_duration(text).map_err(|why| failed("duration", why))?),
        "date" => Value::Timestamp(time::date(text).map_err(|why| failed("date formatted string", why))?),
        "date-time" => {
            Value::Timestamp(time::date_time(text).map_err(|why| failed("date-time formatted string", why))?)
        }
        "byte" => {
            let decoded = base64::engine::general_purpose::STANDARD.decode(text);
            Value::Bytes(decoded.map_err(|why| failed("byte formatted string", why.to_string()))?.into())
        }
        _ => Value::String(Text::Borrowed(text)),
    })
}

impl<'a> Items<'a> {
    pub(super) fn get(self, index: usize) -> Outcome<'a> {
        match (self.list.get(index), &self.schema.items) {
            (Some(json), Some(schema)) => value(json, schema),
            _ => Err(Failure::new(format!("index out of bounds: {index}"))),
        }
    }

    /// The fields by which items are told apart.
    pub(super) fn keys(self) -> Option<&'a [String]> {
        (self.schema.list_type == Some(ListType::Map)).then_some(&self.schema.list_map_keys)
    }

    pub(super) fn is_set(self) -> bool {
        self.schema.list_type == Some(ListType::Set)
    }
}

/// What tells an item of a list of type map apart.
pub(super) fn item_key(item: &Json, keys: &[String]) -> String {
    let parts: Vec<String> =
        keys.iter().map(|key| item.get(key).map_or(String::new(), Json::to_string)).collect();
    parts.join("\n")
}

/// The items of a list by their keys.
pub(super) fn by_key<'a>(list: &'a [Json], keys: &[String]) -> BTreeMap<String, &'a Json> {
    list.iter().map(|item| (item_key(item, keys), item)).collect()
}

impl<'a> Object<'a> {
    /// Has it declared properties, and not keys of any name?
    fn declared(self) -> bool {
        !self.schema.properties.is_empty()
    }

    /// The schema of a field, if there is one.
    pub(super) fn schema_of(self, name: &str) -> Option<&'a Schema> {
        if self.declared() {
            return self.schema.properties.get(name).map(AsRef::as_ref);
        }
        match &self.schema.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// A field by its name in expressions. A declared field that is null is as good as absent.
    pub(super) fn find(self, name: &str) -> Result<Option<Value<'a>>, Failure> {
        let plain = if self.declared() { unescape(name) } else { Some(Cow::Borrowed(name)) };
        let Some(plain) = plain else { return Ok(None) };
        let Some(json) = self.fields.get(plain.as_ref()) else { return Ok(None) };
        if self.declared() && json.is_null() {
            return Ok(None);
        }
        self.schema_of(&plain).map(|schema| value(json, schema)).transpose()
    }

    /// The names of its fields in expressions.
    pub(super) fn names(self) -> Vec<Text<'a>> {
        let known = self.fields.keys().filter(|name| self.schema_of(name).is_some());
        let declared = self.declared();
        known
            .map(|name| match escape(name).filter(|_| declared) {
                Some(Cow::Owned(escaped)) => Text::Owned(escaped.into()),
                _ => Text::Borrowed(name.as_str()),
            })
            .collect()
    }

    pub(super) fn size(self, meter: &mut Meter) -> Result<usize, Failure> {
        meter.work(1)?;
        Ok(self.fields.len())
    }
}
