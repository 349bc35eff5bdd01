//! YAML as bodies have it and as Go reads it: a value, whose keys, too, are read for what they look like, and the keys that
//! were given twice.

use super::yaml_errors::in_go_words;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;
use std::cell::RefCell;
use std::fmt;
use windlass_schema::json;

/// A document, and what a strict reader minds about it.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) value: Value,
    /// In which lines keys were given again, in the words of Go's reader.
    pub(crate) duplicates: Vec<String>,
}

/// Reads YAML, of which JSON is a part. The last of duplicate keys wins, and what is written as a float but is whole is an
/// integer.
pub(crate) fn read(bytes: &[u8]) -> Result<Document, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid UTF-8".to_owned())?;
    let (mut value, duplicates) = match json::read(bytes) {
        // JSON is the common case and has its own reader.
        Ok(document) if text.trim_start().starts_with('{') && document.duplicates.is_empty() => {
            (document.value, Vec::new())
        }
        _ => with_duplicates(text)?,
    };
    if too_deep(&value, json::MAX_DEPTH) {
        return Err("yaml: exceeded max depth".to_owned());
    }
    make_whole(&mut value);
    Ok(Document { value, duplicates })
}

fn with_duplicates(text: &str) -> Result<(Value, Vec<String>), String> {
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    let text = first_document(text);
    let Tree(value) = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| in_go_words(&error.to_string(), text))?;
    let duplicates = RefCell::default();
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    // It was readable once: what is looked for now is only where.
    let _ = serde_saphyr::with_deserializer_from_str_with_options(text, options, |source| {
        Node(&duplicates).deserialize(source)
    });
    Ok((value, duplicates.into_inner()))
}

/// A value, read for the keys that it gives twice.
#[derive(Clone, Copy)]
struct Node<'a>(&'a RefCell<Vec<String>>);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        while source.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        let mut seen: Vec<String> = Vec::new();
        while let Some(key) = source.next_key::<Spanned<String>>()? {
            if seen.contains(&key.value) {
                let line = key.referenced.line();
                self.0.borrow_mut().push(format!("line {line}: key {:?} already set in map", key.value));
            } else {
                seen.push(key.value);
            }
            source.next_value_seed(self)?;
        }
        Ok(())
    }
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
    fn keys_given_twice_are_told_with_their_lines() {
        let document = read(b"a: 1\nb:\n  x: 1\n  x: 2\n  w: {z: 1, z: 3}\na: 4.0\n").expect("YAML");
        assert_eq!(document.value, json!({"a": 4, "b": {"x": 2, "w": {"z": 3}}}));
        let lines = ["line 4: key \"x\"", "line 5: key \"z\"", "line 6: key \"a\""];
        let expected: Vec<String> = lines.iter().map(|line| format!("{line} already set in map")).collect();
        assert_eq!(document.duplicates, expected);
        assert_eq!(
            read(br#"{"a": 1, "a": 2}"#).expect("JSON").duplicates,
            ["line 1: key \"a\" already set in map"]
        );
    }

    #[test]
    fn keys_are_read_as_go_reads_them() {
        let read = |text: &str| read(text.as_bytes()).expect("YAML").value;
        assert_eq!(read("n: 1\n\"y\": 2\n3: x\non: z\n"), json!({"false": 1, "y": 2, "3": "x", "true": "z"}));
        assert_eq!(read("a: {b: [1, ~, yes]}\n"), json!({"a": {"b": [1, null, true]}}));
        assert_eq!(read("# c\n---\na: 1\n---\nb: 2\n"), json!({"a": 1}));
        assert_eq!(read("a: &x {b: 1}\nc: *x\n"), json!({"a": {"b": 1}, "c": {"b": 1}}));
    }
}
