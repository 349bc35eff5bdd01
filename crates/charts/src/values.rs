//! Tables of values: how they are read, and merged.

use crate::Error;
use serde_json::{Map, Number, Value as Json};
use std::collections::HashSet;

pub(crate) type Table = Map<String, Json>;

/// Reads `values.yaml`: all numbers become floats, as in Helm.
///
/// # Errors
/// If it is no YAML, or no mapping.
pub fn read_values(text: &str) -> Result<Table, Error> {
    match windlass_template::yaml::read(text)
        .map_err(|error| Error(format!("error converting YAML to JSON: {error}")))?
    {
        Json::Null => Ok(Table::new()),
        Json::Object(mut table) => {
            table.values_mut().for_each(floats);
            Ok(table)
        }
        other => {
            let found = match other {
                Json::Array(_) => "array",
                Json::String(_) => "string",
                Json::Bool(_) => "bool",
                _ => "number",
            };
            Err(Error(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )))
        }
    }
}

fn floats(value: &mut Json) {
    match value {
        Json::Number(number) => {
            if let Some(float) = number.as_f64().and_then(Number::from_f64) {
                *number = float;
            }
        }
        Json::Array(items) => items.iter_mut().for_each(floats),
        Json::Object(fields) => fields.values_mut().for_each(floats),
        _ => {}
    }
}

/// Adds what a table has not. Without `merge`, a null removes what stands in the other.
pub fn merge_tables(table: &mut Table, other: Table, merge: bool) {
    let filled: HashSet<String> =
        other.iter().filter(|(_, value)| !value.is_null()).map(|(key, _)| key.clone()).collect();
    for (key, value) in other {
        match (table.get_mut(&key), value) {
            (Some(Json::Null), _) if !merge && filled.contains(&key) => {
                table.remove(&key);
            }
            (Some(Json::Object(own)), Json::Object(value)) => merge_tables(own, value, merge),
            (Some(_), _) => {}
            (None, value) => {
                table.insert(key, value);
            }
        }
    }
}
