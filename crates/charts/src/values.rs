//! Values: a chart's own below those that its user gives, and globals handed down to the charts within it.

use crate::{Chart, Error};
use serde_json::{Map, Number, Value as Json};
use std::collections::HashSet;

/// The key whose values all charts see.
const GLOBAL: &str = "global";
/// Tables within tables beyond this are refused.
const DEEPEST: usize = 200;

type Table = Map<String, Json>;

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

/// The values that a chart's templates see. With `merge`, nulls stay, so that they may remove values later.
///
/// # Errors
/// If what is meant for a dependency is no table.
pub fn coalesce(chart: &Chart, given: &Table, merge: bool) -> Result<Table, Error> {
    let mut values = given.clone();
    of_chart(chart, &mut values, merge, 0)?;
    Ok(values)
}

fn of_chart(chart: &Chart, values: &mut Table, merge: bool, depth: usize) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(Error::new("values are nested too deeply"));
    }
    let defaults = chart.values.clone();
    for (key, default) in defaults {
        match values.get_mut(&key) {
            None => {
                values.insert(key, default);
            }
            Some(Json::Null) if !merge => {
                values.remove(&key);
            }
            Some(Json::Object(table)) => {
                if let Json::Object(default) = default {
                    let child = chart.dependencies.iter().any(|within| within.name() == key);
                    merge_tables(table, default, merge || child);
                }
            }
            Some(_) => {}
        }
    }
    for within in &chart.dependencies {
        let name = within.name().to_owned();
        let globals = values.get(GLOBAL).cloned();
        let table = values.entry(name.clone()).or_insert_with(|| Json::Object(Table::new()));
        let Json::Object(table) = table else {
            return Err(Error(format!("type mismatch on {name}: {table}")));
        };
        hand_down(table, globals.as_ref());
        of_chart(within, table, merge, depth + 1)?;
    }
    Ok(())
}

/// Globals go from a chart to the charts within it.
fn hand_down(table: &mut Table, globals: Option<&Json>) {
    let source = match globals {
        None => Table::new(),
        Some(Json::Object(source)) => source.clone(),
        Some(_) => return,
    };
    let target = table.entry(GLOBAL).or_insert_with(|| Json::Object(Table::new()));
    let Json::Object(target) = target else { return };
    for (key, value) in source {
        match (value, target.get_mut(&key)) {
            (Json::Object(value), Some(Json::Object(own))) => {
                // The parent's wins here, and what only the dependency has stays.
                let mut merged = value;
                merge_tables(&mut merged, own.clone(), true);
                target.insert(key, Json::Object(merged));
            }
            (Json::Object(_), Some(_)) | (_, Some(Json::Object(_))) => {}
            (value, _) => {
                target.insert(key, value);
            }
        }
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
