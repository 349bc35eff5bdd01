//! YAML as Helm reads and writes it: go-yaml v2, by way of JSON.

mod read;
mod scalar;

use crate::value::Value;
use serde_json::Value as Json;

pub use read::{Error, read, read_all};

/// Go's `toYaml`, with the line break at its end.
pub(crate) fn write(value: &Value) -> Result<String, String> {
    let json = crate::plain::to_json(value)?;
    if !readable(&json) {
        return Err("yaml: control characters are not allowed".into());
    }
    Ok(windlass_schema::yaml::write(&json))
}

/// Go's `toYamlPretty`: straight from the values, so that floats stay floats.
pub(crate) fn write_pretty(value: &Value) -> Result<String, String> {
    let json = crate::plain::to_json_as_is(value)?;
    Ok(windlass_schema::yaml::write_indented(&json))
}

/// Plain JSON as YAML, as `helm` prints it.
#[must_use]
pub fn to_text(json: &Json) -> String {
    windlass_schema::yaml::write(json)
}

/// Would YAML's reader take the characters of all texts?
fn readable(json: &Json) -> bool {
    let fine = |text: &str| {
        !text.contains(|c| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
    };
    match json {
        Json::String(text) => fine(text),
        Json::Array(items) => items.iter().all(readable),
        Json::Object(fields) => fields.iter().all(|(key, value)| fine(key) && readable(value)),
        _ => true,
    }
}
