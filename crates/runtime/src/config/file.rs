//! The configuration file: YAML, with a line for each option.

use super::layers::{Given, InvalidOption, flag};
use super::options::Options;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;
use std::fmt;
use std::path::Path;

/// The options that the text of a file gives.
pub(super) fn lines(path: &Path, text: &str) -> Result<Vec<Given>, InvalidOption> {
    let path = path.display();
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let Lines(lines) = serde_saphyr::from_str(text).map_err(|error| InvalidOption {
        place: path.to_string(),
        message: first_line(&error.to_string()).to_owned(),
    })?;
    // A file does not name another.
    let known: Vec<String> = Options::names().filter(|id| id != "config").collect();
    let given = |(name, value): (Spanned<String>, Value)| {
        let place = format!("{path}, line {}", name.referenced.line());
        let Some(id) = known.iter().find(|id| flag(id) == name.value).cloned() else {
            let names = known.iter().map(|id| flag(id)).collect::<Vec<_>>().join(", ");
            let message = format!("unknown option {:?}; the options are {names}", name.value);
            return Err(InvalidOption { place, message });
        };
        match texts(&value) {
            Some(values) => Ok(Given { place, id, values }),
            None => {
                let message = format!("{} takes a value, or a list of values", name.value);
                Err(InvalidOption { place, message })
            }
        }
    };
    lines.into_iter().map(given).collect()
}

/// The lines of a file in their order: names, with where they are, and values.
struct Lines(Vec<(Spanned<String>, Value)>);

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Lines;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("lines of the form `name: value`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Lines, A::Error> {
                let mut lines = Vec::new();
                while let Some(line) = map.next_entry()? {
                    lines.push(line);
                }
                Ok(Lines(lines))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A value of the file as the texts that a flag would have: a scalar, a list of them, or pairs.
fn texts(value: &Value) -> Option<Vec<String>> {
    let scalar = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        _ => None,
    };
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(values) => values.iter().map(scalar).collect(),
        Value::Object(pairs) => {
            pairs.iter().map(|(name, value)| Some(format!("{name}={}", scalar(value)?))).collect()
        }
        value => scalar(value).map(|value| vec![value]),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
