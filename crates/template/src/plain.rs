//! Between values of templates and plain JSON.

use crate::value::{Kind, Value};
use serde_json::{Number, Value as Json};

/// A template's value of plain JSON. Whole numbers become `int64`, as `--set` and custom resources have them; numbers with
/// a fraction or an exponent become `float64`.
#[must_use]
pub fn from_json(json: &Json) -> Value {
    convert(json, false)
}

/// The same, with all numbers as `float64`, as YAML and JSON are read.
pub(crate) fn from_json_floats(json: &Json) -> Value {
    convert(json, true)
}

fn convert(json: &Json, floats: bool) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(int) if !floats => Value::int64(int),
            _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => Value::list(items.iter().map(|item| convert(item, floats)).collect()),
        Json::Object(entries) => {
            Value::map(entries.iter().map(|(key, value)| (key.as_str(), convert(value, floats))))
        }
    }
}

/// Plain JSON of a template's value: what `toJson` shows, read again.
///
/// # Errors
/// If the value holds itself, or holds a number that JSON has not.
pub fn to_json(value: &Value) -> Result<Json, String> {
    json(value, 0)
}

fn json(value: &Value, depth: usize) -> Result<Json, String> {
    if depth > 500 {
        return Err("json: unsupported value: encountered a cycle".into());
    }
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(_, value) => Json::Number((*value).into()),
        Value::Uint(_, value) => Json::Number((*value).into()),
        Value::Float(value) => Json::Number(number(*value)?),
        Value::Complex(..) => return Err("json: unsupported type: complex128".into()),
        Value::Str(text) => Json::String(text.lossy().into_owned()),
        Value::Bytes(bytes) => {
            use base64::Engine;
            Json::String(base64::engine::general_purpose::STANDARD.encode(bytes))
        }
        Value::List(list) if list.is_nil() => Json::Null,
        Value::List(list) => {
            Json::Array(list.items().iter().map(|item| json(item, depth + 1)).collect::<Result<_, _>>()?)
        }
        Value::Map(map) => object(map.entries(), depth)?,
        Value::Object(entries) if entries.kind() == Kind::Map => object(entries.entries(), depth)?,
        Value::Object(other) => json(&other.plain(), depth + 1)?,
    })
}

fn object(entries: Vec<(crate::text::GoStr, Value)>, depth: usize) -> Result<Json, String> {
    let mut out = serde_json::Map::new();
    for (key, value) in entries {
        out.insert(key.lossy().into_owned(), json(&value, depth + 1)?);
    }
    Ok(Json::Object(out))
}

/// A float as its JSON text would be read again: what has no fraction is a whole number.
fn number(value: f64) -> Result<Number, String> {
    let unsupported = || format!("json: unsupported value: {}", crate::go::float::format(value, 'g', None));
    let text = crate::go::float::json(value);
    if let Ok(int) = text.parse::<i64>() {
        return Ok(if int == 0 && value.is_sign_negative() {
            Number::from_f64(value).ok_or_else(unsupported)?
        } else {
            int.into()
        });
    }
    if let Ok(uint) = text.parse::<u64>() {
        return Ok(uint.into());
    }
    Number::from_f64(value).ok_or_else(unsupported)
}

/// The same, but a float stays one even where its text is that of a whole number.
pub(crate) fn to_json_as_is(value: &Value) -> Result<Json, String> {
    as_is(value, 0)
}

fn as_is(value: &Value, depth: usize) -> Result<Json, String> {
    if depth > 500 {
        return Err("the value holds itself".into());
    }
    match value {
        Value::Float(float) => {
            Number::from_f64(*float).map(Json::Number).ok_or_else(|| "not a number".into())
        }
        Value::List(list) => {
            Ok(Json::Array(list.items().iter().map(|item| as_is(item, depth + 1)).collect::<Result<_, _>>()?))
        }
        Value::Map(map) => {
            let mut out = serde_json::Map::new();
            for (key, value) in map.entries() {
                out.insert(key.lossy().into_owned(), as_is(&value, depth + 1)?);
            }
            Ok(Json::Object(out))
        }
        other => json(other, depth),
    }
}
