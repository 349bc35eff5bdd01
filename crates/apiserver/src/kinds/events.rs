//! Validation of Events. Those of the core group are let through as they always were; those of their own group are held to
//! more, and do not change.

use super::{convert, text};
use serde_json::{Value, json};
use windlass_schema::field::{FieldError, Path};
use windlass_schema::{meta, names};

/// An Event of the core group.
pub(super) fn core(event: &Value) -> Vec<FieldError> {
    always(event, "reportingComponent")
}

/// A new Event of the newer group.
pub(super) fn create(event: &Value) -> Vec<FieldError> {
    let event = &stored(event);
    let mut errors = always(event, "reportingController");
    errors.extend(meta::validate(
        &event["metadata"],
        true,
        meta::NameRule::Subdomain,
        &Path::new("metadata"),
    ));
    errors.extend(series(event));
    if text(event, &["eventTime"]).is_empty() {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = text(event, &["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        let why = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid(&Path::new("type"), "", why));
    }
    let given = |field: &str| match event.get(field) {
        None | Some(Value::Null) => false,
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(value) => *value != json!(0),
    };
    let old = ["firstTimestamp", "lastTimestamp", "count", "source"].into_iter().filter(|field| given(field));
    errors.extend(old.map(|field| FieldError::invalid(&Path::new(field), "", "needs to be unset")));
    errors
}

/// A changed Event of the newer group.
pub(super) fn update(new: &Value, old: &Value) -> Vec<FieldError> {
    let (new, old) = (&stored(new), &stored(old));
    let mut errors = always(new, "reportingController");
    if new.get("series") != old.get("series") {
        errors.extend(series(new));
    }
    // The reason is looked at twice.
    let fields = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    for field in fields {
        if new.get(field) != old.get(field) {
            let name = if field == "reportingComponent" { "reportingController" } else { field };
            errors.push(FieldError::invalid(&Path::new(name), shown(new, field), "field is immutable"));
        }
    }
    errors
}

/// As it is stored, which is as the core group has it.
fn stored(event: &Value) -> Value {
    match convert::shape("events.k8s.io", "v1", "events") {
        Some(shape) => convert::to_stored(shape, event),
        None => event.clone(),
    }
}

/// A field as Go shows it in errors: of structs all fields, with their names in Go.
fn shown(event: &Value, field: &str) -> Value {
    let value = event.get(field).cloned().unwrap_or_default();
    let all = |names: &[(&str, &str)]| -> Value {
        let shown = names.iter().map(|(go, name)| ((*go).to_owned(), json!(text(&value, &[name]))));
        Value::Object(shown.collect())
    };
    match field {
        "involvedObject" | "related" if field == "related" && value.is_null() => Value::Null,
        "involvedObject" | "related" => all(&[
            ("Kind", "kind"),
            ("Namespace", "namespace"),
            ("Name", "name"),
            ("UID", "uid"),
            ("APIVersion", "apiVersion"),
            ("ResourceVersion", "resourceVersion"),
            ("FieldPath", "fieldPath"),
        ]),
        "source" => all(&[("Component", "component"), ("Host", "host")]),
        "count" if value.is_null() => json!(0),
        "firstTimestamp" | "lastTimestamp" | "eventTime" => value,
        _ if value.is_null() => json!(""),
        _ => value,
    }
}

fn series(event: &Value) -> Vec<FieldError> {
    let Some(series) = event.get("series").filter(|series| series.is_object()) else { return Vec::new() };
    let mut errors = Vec::new();
    if series.get("count").and_then(Value::as_i64).unwrap_or(0) < 2 {
        errors.push(FieldError::invalid(&Path::new("series.count"), "", "should be at least 2"));
    }
    if text(series, &["lastObservedTime"]).is_empty() {
        errors.push(FieldError::required(&Path::new("series.lastObservedTime"), ""));
    }
    errors
}

/// What is asked of every Event; `reporter` is what the group calls who reports it.
fn always(event: &Value, reporter_field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let namespace = text(event, &["metadata", "namespace"]);
    let involved = text(event, &["involvedObject", "namespace"]);
    let mismatch = || {
        let path = Path::new("involvedObject").child("namespace");
        FieldError::invalid(&path, involved, "does not match event.namespace")
    };
    if text(event, &["eventTime"]).is_empty() {
        let matches = if involved.is_empty() { namespace == "default" } else { namespace == involved };
        if !matches {
            errors.push(mismatch());
        }
    } else {
        if involved.is_empty() && namespace != "default" && namespace != "kube-system" {
            errors.push(mismatch());
        }
        let reporter = text(event, &["reportingComponent"]);
        let path = Path::new(reporter_field);
        if reporter.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        errors.extend(
            names::qualified(reporter).into_iter().map(|why| FieldError::invalid(&path, reporter, why)),
        );
        for (field, most) in [("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024)]
        {
            let (path, length) = (Path::new(field), text(event, &[field]).len());
            if length == 0 && field != "message" {
                errors.push(FieldError::required(&path, ""));
            }
            if length > most {
                errors.push(FieldError::invalid(&path, "", format!("can have at most {most} characters")));
            }
        }
    }
    errors
}
