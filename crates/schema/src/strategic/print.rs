//! Values as Go prints them in errors about patches.

use crate::go;
use serde_json::{Map, Value};

/// `%v` of a value read from JSON: `map[a:1 b:[x y]]`, `<nil>`, strings as they are.
pub fn print(value: &Value) -> String {
    let mut text = String::new();
    put(value, &mut text);
    text
}

pub(super) fn map(fields: &Map<String, Value>) -> String {
    let mut text = String::new();
    put_map(fields, &mut text);
    text
}

pub(super) fn list(items: &[Value]) -> String {
    let mut text = String::new();
    put_list(items, &mut text);
    text
}

fn put(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => text.push_str(&go::number(value)),
        Value::String(value) => text.push_str(value),
        Value::Array(items) => put_list(items, text),
        Value::Object(fields) => put_map(fields, text),
    }
}

fn put_map(fields: &Map<String, Value>, text: &mut String) {
    text.push_str("map[");
    for (place, (name, field)) in fields.iter().enumerate() {
        if place > 0 {
            text.push(' ');
        }
        text.push_str(name);
        text.push(':');
        put(field, text);
    }
    text.push(']');
}

fn put_list(items: &[Value], text: &mut String) {
    text.push('[');
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            text.push(' ');
        }
        put(item, text);
    }
    text.push(']');
}

/// A value where Go was told to print a text: what is none says so, each for itself.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(as_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, field)| format!("{name}:{}", as_text(field))).collect();
            format!("map[{}]", fields.join(" "))
        }
        scalar => format!("%!s({}={})", type_name(Some(scalar)), print(scalar)),
    }
}

/// The Go type of a value read from JSON.
pub(super) fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None | Some(Value::Null) => "%!s(<nil>)",
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(number)) if number.is_f64() => "float64",
        Some(Value::Number(_)) => "int64",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "[]interface {}",
        Some(Value::Object(_)) => "map[string]interface {}",
    }
}
