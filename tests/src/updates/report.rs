//! How two answers differ, for a person to read.

use crate::compare::Answer;
use serde_json::Value;

/// What one answer says that the other does not: causes of an error, warnings, or the first field.
pub fn only_of(one: &Answer, other: &Answer) -> String {
    let mut said: Vec<String> = one.warnings.clone();
    said.extend(sayings(&one.body));
    let mut heard: Vec<String> = other.warnings.clone();
    heard.extend(sayings(&other.body));
    for saying in heard {
        if let Some(at) = said.iter().position(|known| *known == saying) {
            said.remove(at);
        }
    }
    if said.is_empty() && one.is_success() && other.is_success() {
        return first_of(&one.body, &other.body, String::new()).unwrap_or_default();
    }
    said.join("; ").chars().take(600).collect()
}

/// The causes of an error, or its message.
fn sayings(body: &Value) -> Vec<String> {
    if body["kind"] != "Status" {
        return Vec::new();
    }
    let word = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let causes = body.pointer("/details/causes").and_then(Value::as_array);
    match causes {
        Some(causes) => causes
            .iter()
            .map(|cause| format!("{}: {}", word(cause, "field"), word(cause, "message")))
            .collect(),
        None => vec![format!("{}: {}", word(body, "reason"), word(body, "message"))],
    }
}

/// The first field that the other has not, or has with another value.
fn first_of(one: &Value, other: &Value, path: String) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => one.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            match other.get(name) {
                Some(other) => first_of(value, other, path),
                None => Some(format!("{path}: {value}")),
            }
        }),
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut items = one.iter().zip(other).enumerate();
            items.find_map(|(at, (one, other))| first_of(one, other, format!("{path}[{at}]")))
        }
        (one, other) if one != other => Some(format!("{path}: {one}")),
        _ => None,
    }
}
