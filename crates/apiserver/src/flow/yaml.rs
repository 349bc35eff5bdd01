//! YAML, as Go reads it: keys, too, are read for what they look like.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use windlass_schema::json;

/// Reads YAML, of which JSON is a part. The last of duplicate keys wins, and what is written as a float but is whole is an
/// integer.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid UTF-8".to_owned())?;
    let mut value = match json::read(bytes) {
        // JSON is the common case and has its own reader.
        Ok(document) if text.trim_start().starts_with('{') => document.value,
        _ => {
            let options =
                serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
            let tree: Tree = serde_saphyr::from_str_with_options(first_document(text), options)
                .map_err(|error| told(&error.to_string()))?;
            tree.0
        }
    };
    if too_deep(&value, json::MAX_DEPTH) {
        return Err("yaml: exceeded max depth".to_owned());
    }
    make_whole(&mut value);
    Ok(value)
}

/// What comes before the line that begins a second document; the rest is not looked at.
fn first_document(text: &str) -> &str {
    let is_mark = |line: &str| line.trim_end() == "---" || line.starts_with("--- ");
    let (mut at, mut begun) = (0, false);
    for line in text.split_inclusive('\n') {
        if begun && is_mark(line) {
            return &text[..at];
        }
        // What a first mark begins is the first document.
        begun |= is_mark(line) || !(line.trim().is_empty() || line.starts_with(['#', '%']));
        at += line.len();
    }
    text
}

fn make_whole(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Ok(whole) = json::to_string(value).parse::<i64>() {
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(fields) => fields.values_mut().for_each(make_whole),
        _ => {}
    }
}

/// The reader's first line, without the place: who reads the API's answer does not see the reader's input.
fn told(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let what = line
        .rsplit_once("column ")
        .and_then(|(_, rest)| rest.split_once(": "))
        .map_or(line, |(_, what)| what);
    format!("yaml: {what}")
}

fn too_deep(value: &Value, left: usize) -> bool {
    match value {
        _ if left == 0 => true,
        Value::Array(items) => items.iter().any(|item| too_deep(item, left - 1)),
        Value::Object(fields) => fields.values().any(|field| too_deep(field, left - 1)),
        _ => false,
    }
}

/// A document.
struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Nodes).map(Tree)
    }
}

struct Nodes;

impl<'de> Visitor<'de> for Nodes {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Tree(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = entries.next_key_seed(Key)? {
            let Tree(value) = entries.next_value()?;
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

/// What stands before a colon: a key that looks like a truth or a number is read as one, and written as text again.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<String, D::Error> {
        match source.deserialize_any(Nodes)? {
            Value::String(text) => Ok(text),
            scalar @ (Value::Bool(_) | Value::Number(_)) => Ok(json::to_string(&scalar)),
            _ => Err(D::Error::custom("unsupported map key")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_read_as_go_reads_them() {
        let read = |text: &str| read(text.as_bytes()).unwrap();
        assert_eq!(read("n: 1\n\"y\": 2\n3: x\non: z\n"), json!({"false": 1, "y": 2, "3": "x", "true": "z"}));
        assert_eq!(read("a: {b: [1, ~, yes]}\n"), json!({"a": {"b": [1, null, true]}}));
        assert_eq!(read("# c\n---\na: 1\n---\nb: 2\n"), json!({"a": 1}));
        assert_eq!(read("a: &x {b: 1}\nc: *x\n"), json!({"a": {"b": 1}, "c": {"b": 1}}));
    }
}
