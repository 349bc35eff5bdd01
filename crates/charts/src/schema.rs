//! `values.schema.json`: what values a chart takes.

use crate::Chart;
use serde_json::{Map, Value as Json};

/// What is wrong with the values of a chart and of those within it: nothing if the answer is empty.
#[must_use]
pub fn check(chart: &Chart, values: &Map<String, Json>) -> String {
    let mut out = String::new();
    if let Some(schema) = &chart.schema {
        let wrong = mistakes(schema, &Json::Object(values.clone()));
        if !wrong.is_empty() {
            out.push_str(&format!("{}:\n{wrong}", chart.name()));
        }
    }
    for within in &chart.dependencies {
        if let Some(Json::Object(values)) = values.get(within.name()) {
            out.push_str(&check(within, values));
        }
    }
    out
}

/// References lead nowhere but into the schema itself: no file and no address is read.
fn mistakes(schema: &[u8], values: &Json) -> String {
    let schema: Json = match serde_json::from_slice(schema) {
        Ok(schema) => schema,
        Err(error) => return format!("the schema is no JSON: {error}\n"),
    };
    match jsonschema::options().build(&schema) {
        Ok(validator) => validator
            .iter_errors(&whole(values))
            .map(|error| {
                let path = error.instance_path().to_string();
                let at = if path.is_empty() { "(root)" } else { &path };
                format!("- at '{at}': {error}\n")
            })
            .collect(),
        Err(error) => format!("the schema is wrong: {error}\n"),
    }
}

/// Floats without a fraction are integers in JSON.
fn whole(value: &Json) -> Json {
    match value {
        Json::Number(number) => match number.as_f64() {
            #[allow(clippy::cast_possible_truncation)]
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                Json::from(float as i64)
            }
            _ => value.clone(),
        },
        Json::Array(items) => Json::Array(items.iter().map(whole).collect()),
        Json::Object(fields) => {
            Json::Object(fields.iter().map(|(key, value)| (key.clone(), whole(value))).collect())
        }
        other => other.clone(),
    }
}
