//! The conditions of a status, in kinds that check them.

use super::text;
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

fn each(object: &Value) -> impl Iterator<Item = (&Value, Path)> {
    let list = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let path = Path::new("status").child("conditions");
    list.enumerate().map(move |(index, condition)| (condition, path.index(index)))
}

/// There is one condition of each type.
pub(super) fn of_unique_types(object: &Value) -> Vec<FieldError> {
    let (mut errors, mut seen) = (Vec::new(), BTreeSet::new());
    for (condition, path) in each(object) {
        let kind = text(condition, &["type"]);
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        if kind.is_empty() {
            errors.push(FieldError::required(&path.child("type"), ""));
        }
    }
    errors
}

/// The status of each is one of three, named in the order that a kind names them.
pub(super) fn of_known_status(object: &Value, known: [&str; 3]) -> Vec<FieldError> {
    let wrong = each(object).filter(|(condition, _)| !known.contains(&text(condition, &["status"])));
    wrong
        .map(|(condition, path)| {
            FieldError::not_supported(&path.child("status"), text(condition, &["status"]), &known)
        })
        .collect()
}

/// Conditions of the common type: whole, and one of each type.
pub(super) fn common(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (condition, path) in each(object) {
        let kind = text(condition, &["type"]);
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        let at = path.child("type");
        errors.extend(names::qualified(kind).into_iter().map(|why| FieldError::invalid(&at, kind, why)));
        let generation = condition.get("observedGeneration").and_then(Value::as_i64);
        if let Some(generation) = generation.filter(|generation| *generation < 0) {
            let why = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, why));
        }
        for field in ["lastTransitionTime", "reason"] {
            if text(condition, &[field]).is_empty() {
                errors.push(FieldError::required(&path.child(field), ""));
            }
        }
    }
    errors.extend(of_known_status(object, ["False", "True", "Unknown"]));
    errors
}
