//! YAML as bodies have it: a value, and the keys that were given twice.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
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
    let value =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| told(&error.to_string()))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_given_twice_are_told_with_their_lines() {
        let document = read(b"a: 1\nb:\n  x: 1\n  x: 2\n  y: {z: 1, z: 3}\na: 4.0\n").expect("YAML");
        assert_eq!(document.value, json!({"a": 4, "b": {"x": 2, "y": {"z": 3}}}));
        let lines = ["line 4: key \"x\"", "line 5: key \"z\"", "line 6: key \"a\""];
        let expected: Vec<String> = lines.iter().map(|line| format!("{line} already set in map")).collect();
        assert_eq!(document.duplicates, expected);
        assert_eq!(
            read(br#"{"a": 1, "a": 2}"#).expect("JSON").duplicates,
            ["line 1: key \"a\" already set in map"]
        );
    }
}
