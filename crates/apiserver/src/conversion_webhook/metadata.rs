//! What of an object's metadata a conversion may change: labels and annotations, and nothing else.

use crate::object::{at, text};
use serde_json::{Map, Value};
use windlass_schema::field::{Path, aggregate};
use windlass_schema::meta;

/// Whether it is still the same object.
///
/// # Errors
/// What differs.
pub(super) fn check(original: &Value, converted: &Value) -> Result<(), String> {
    for (what, field) in [("name", "name"), ("namespace", "namespace"), ("UID", "uid")] {
        let of = |object| text(object, &["metadata", field]).to_owned();
        let (expected, got) = (of(original), of(converted));
        if expected != got {
            return Err(format!("must have the same {what}: {expected} != {got}"));
        }
    }
    Ok(())
}

/// Puts the metadata of the original into what it was converted to, which keeps its own labels and annotations.
///
/// # Errors
/// When those are none, or invalid and new.
pub(super) fn restore(original: &Value, converted: &mut Value) -> Result<(), String> {
    let answered = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(other)));
        }
    };
    let mut metadata = at(original, &["metadata"]).and_then(Value::as_object).cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match answered.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(Value::Object(given)) => {
                let had = metadata.get(field).and_then(Value::as_object);
                if let Some((key, value)) = given.iter().find(|(_, value)| !value.is_string()) {
                    let go = go_type(value);
                    return Err(format!(
                        "metadata.{field}[{key}] must be a string, but is {go} in converted object"
                    ));
                }
                if had != Some(given) && !(had.is_none() && given.is_empty()) {
                    valid(field, given)?;
                }
                metadata.insert(field.to_owned(), Value::Object(given.clone()));
            }
            Some(other) => {
                let go = go_type(other);
                return Err(format!("invalid metadata.{field} of type {go} in converted object"));
            }
        }
    }
    if let Some(object) = converted.as_object_mut() {
        object.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Ok(())
}

fn valid(field: &str, given: &Map<String, Value>) -> Result<(), String> {
    let mut metadata = Map::new();
    metadata.insert(field.to_owned(), Value::Object(given.clone()));
    let errors = meta::labels_and_annotations(&Value::Object(metadata), &Path::new("metadata"));
    match errors.is_empty() {
        true => Ok(()),
        // The reference leaves out a letter.
        false => Err(aggregate(&errors).replace("metadata.annotations", "metadata.annotation")),
    }
}

/// What Go calls a value of JSON.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn restored(original: Value, converted: Value) -> Result<Value, String> {
        let mut converted = json!({ "metadata": converted });
        restore(&json!({ "metadata": original }), &mut converted)?;
        Ok(converted["metadata"].take())
    }

    #[test]
    fn labels_and_annotations_are_taken_and_nothing_else() {
        let original =
            json!({"name": "a", "finalizers": ["x/y"], "labels": {"a": "1"}, "annotations": {"b": "2"}});
        let converted = json!({"name": "a", "generation": 7, "labels": {"c": "3"}});
        let wanted = json!({"name": "a", "finalizers": ["x/y"], "labels": {"c": "3"}});
        assert_eq!(restored(original, converted).unwrap(), wanted);
    }

    #[test]
    fn new_labels_must_be_valid_and_old_ones_may_be_what_they_were() {
        let bad = json!({"name": "a", "labels": {"-": "1"}});
        assert!(restored(json!({"name": "a"}), bad.clone()).unwrap_err().contains("metadata.labels"));
        assert_eq!(restored(bad.clone(), bad.clone()).unwrap(), bad);
        let odd = json!({"labels": {"a": 1}});
        let why = restored(json!({}), odd).unwrap_err();
        assert_eq!(why, "metadata.labels[a] must be a string, but is int64 in converted object");
        let why = restored(json!({}), json!({"annotations": []})).unwrap_err();
        assert_eq!(why, "invalid metadata.annotations of type []interface {} in converted object");
    }

    #[test]
    fn it_is_the_same_object() {
        let of = |name: &str, uid: &str| json!({"metadata": {"name": name, "namespace": "n", "uid": uid}});
        assert_eq!(check(&of("a", "u"), &of("a", "u")), Ok(()));
        assert_eq!(check(&of("a", "u"), &of("a", "")).unwrap_err(), "must have the same UID: u != ");
    }
}
