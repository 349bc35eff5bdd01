//! `kubectl.kubernetes.io/last-applied-configuration`: the way from client-side to server-side apply, for kubectl alone.

use super::compare::compare;
use super::conflict::{Conflict, Conflicts};
use super::fieldset::FieldSet;
use super::typed::{check, field_set};
use super::types::TypeView;
use super::values;
use serde_json::{Map, Value};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// All annotations of an object together may not be longer.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The manager that the annotation belongs to.
pub(crate) const KUBECTL: &str = "kubectl";

fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.get("annotations")?.as_object()
}

fn last_applied(object: &Value) -> Option<&str> {
    annotations(object)?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// The fields that kubectl may take without force: those it applied on the client's side and that are still so.
pub(crate) fn allowed(view: &TypeView, live: &Value, api_version: &str) -> Option<FieldSet> {
    let applied: Value = serde_json::from_str(last_applied(live)?).ok()?;
    if applied.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    check(view, live, false).ok()?;
    check(view, &applied, false).ok()?;
    let changed = compare(view, &applied, live);
    let set = field_set(view, &applied);
    Some(set.difference(&changed.modified).difference(&changed.added).difference(&changed.removed))
}

/// The conflicts that remain when those about `allowed` fields do not count.
pub(crate) fn remaining(conflicts: Conflicts, allowed: &FieldSet) -> Vec<Conflict> {
    conflicts.0.into_iter().filter(|conflict| !allowed.has(&conflict.path)).collect()
}

/// Writes the intent into the annotation of an object that has it.
pub(crate) fn refresh(object: &mut Value, intent: &Value) {
    if last_applied(object).is_none() {
        return;
    }
    let mut intent = intent.clone();
    if let Some(annotations) = intent.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let mut text = String::new();
    values::json(&intent, &mut text);
    text.push('\n');
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.insert(ANNOTATION.into(), text.into());
        let length: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
        if length > MAX_ANNOTATIONS {
            annotations.remove(ANNOTATION);
        }
    }
}
