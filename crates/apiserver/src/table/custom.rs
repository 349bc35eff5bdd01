//! The columns of custom resources: those that their definition asks for, or how old they are.

use super::human;
use super::jsonpath::JsonPath;
use crate::object::text;
use jiff::Timestamp;
use serde_json::{Value, json};

/// A printer column of a definition.
#[derive(Debug, Clone)]
pub(crate) struct CustomColumn {
    /// As tables define it.
    pub(super) definition: Value,
    kind: String,
    path: JsonPath,
}

/// The printer columns of a definition's version. One that cannot be read ends them, as in the reference.
pub(crate) fn columns(version: &Value) -> Vec<CustomColumn> {
    let given = version.get("additionalPrinterColumns").and_then(Value::as_array).map(Vec::as_slice);
    let age = [json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "When the object was created.",
    })];
    let given = given.filter(|columns| !columns.is_empty()).unwrap_or(&age);
    given.iter().map_while(column).collect()
}

fn column(given: &Value) -> Option<CustomColumn> {
    let path = text(given, &["jsonPath"]);
    let description = match text(given, &["description"]) {
        "" => format!("Custom resource definition column (in JSONPath format): {path}"),
        description => description.to_owned(),
    };
    Some(CustomColumn {
        definition: json!({
            "name": text(given, &["name"]), "type": text(given, &["type"]), "format": text(given, &["format"]),
            "description": description, "priority": given.get("priority").and_then(Value::as_i64).unwrap_or(0),
        }),
        kind: text(given, &["type"]).to_owned(),
        path: JsonPath::parse(path)?,
    })
}

impl CustomColumn {
    /// What stands in this column for an object: the first value found, if it is of the column's type.
    pub(super) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let Some(value) = self.path.find(object).first().copied() else { return Value::Null };
        match (self.kind.as_str(), value) {
            ("string", Value::String(_) | Value::Null) => value.clone(),
            ("string", other) => other.to_string().into(),
            ("integer", Value::Number(number)) => {
                number.as_i64().map_or_else(|| whole(number.as_f64()), Value::from)
            }
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(_)) => human::since(Some(value), now).into(),
            _ => Value::Null,
        }
    }
}

/// The part of a number before its point, if it is one.
fn whole(number: Option<f64>) -> Value {
    // Rounding towards zero, and to the nearest that fits, is what the conversion does.
    #[allow(clippy::cast_possible_truncation, reason = "the integral part is what the column shows")]
    number.map_or(Value::Null, |number| Value::from(number as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_of_their_columns_types_or_empty() {
        let object = json!({"spec": {"n": 3, "f": 2.5, "s": "x", "b": true, "l": [1, "a"], "t": "2026-01-01T00:00:00Z"}});
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let cell = |kind: &str, path: &str| {
            let version =
                json!({"additionalPrinterColumns": [{"name": "C", "type": kind, "jsonPath": path}]});
            columns(&version)[0].cell(&object, now)
        };
        assert_eq!(cell("integer", ".spec.n"), json!(3));
        assert_eq!(cell("integer", ".spec.f"), json!(2));
        assert_eq!(cell("integer", ".spec.s"), json!(null));
        assert_eq!(cell("string", ".spec.n"), json!("3"));
        assert_eq!(cell("string", ".spec.l"), json!("[1,\"a\"]"));
        assert_eq!(cell("boolean", ".spec.b"), json!(true));
        assert_eq!(cell("date", ".spec.t"), json!("60s"));
        assert_eq!(cell("date", ".spec.s"), json!("<invalid>"));
        assert_eq!(cell("string", ".spec.missing"), json!(null));
    }
}
