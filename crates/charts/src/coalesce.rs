//! The values that the templates of a chart see: its own below those that its user gives, and globals handed down to the charts within it.

use crate::values::{Table, merge_tables};
use crate::{Chart, Error};
use serde_json::Value as Json;

/// The key whose values all charts see.
const GLOBAL: &str = "global";
/// Tables within tables beyond this are refused.
const DEEPEST: usize = 200;

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
