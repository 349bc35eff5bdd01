//! RuntimeClass: a pod's overhead and scheduling, from its RuntimeClass.

use super::forbidden;
use crate::object::{at, child, list_mut, text};
use crate::operation::Operation;
use crate::status::Status;
use serde_json::{Value, json};
use windlass_store::Key;

const OTHER: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn class(operation: &Operation<'_>, pod: &Value) -> Result<Option<Value>, Status> {
    let name = match at(pod, &["spec", "runtimeClassName"]).and_then(Value::as_str) {
        None => return Ok(None),
        Some(name) => name,
    };
    match operation.api.store.get(&Key::new("node.k8s.io/runtimeclasses", "", name)) {
        Some(entry) => Ok(Some(entry.value())),
        None => Err(forbidden(operation, pod, &format!("pod rejected: RuntimeClass {name:?} not found"))),
    }
}

fn fixed(class: Option<&Value>) -> Option<&Value> {
    class.and_then(|class| at(class, &["overhead", "podFixed"])).filter(|fixed| fixed.is_object())
}

/// Adds to a new pod what its class costs, and what nodes it needs.
pub(super) fn mutate(operation: &Operation<'_>, pod: &mut Value) -> Result<(), Status> {
    let Some(class) = class(operation, pod)? else { return Ok(()) };
    if let Some(fixed) = fixed(Some(&class)) {
        let own =
            at(pod, &["spec", "overhead"]).and_then(Value::as_object).is_some_and(|own| !own.is_empty());
        if own && at(pod, &["spec", "overhead"]) != Some(fixed) {
            return Err(forbidden(operation, pod, OTHER));
        }
        child(pod, "spec").insert("overhead".to_owned(), fixed.clone());
    }
    let Some(scheduling) = class.get("scheduling").filter(|scheduling| scheduling.is_object()) else {
        return Ok(());
    };
    for (key, value) in scheduling.get("nodeSelector").and_then(Value::as_object).into_iter().flatten() {
        let wanted = text(pod, &["spec", "nodeSelector", key]);
        if !wanted.is_empty() && Some(wanted) != value.as_str() {
            let value = value.as_str().unwrap_or_default();
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {wanted}"
            );
            return Err(forbidden(operation, pod, &why));
        }
        let selector = child(pod, "spec").entry("nodeSelector").or_insert_with(|| json!({}));
        if let Some(selector) = selector.as_object_mut() {
            selector.insert(key.clone(), value.clone());
        }
    }
    let more = scheduling.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(tolerations) = list_mut(child(pod, "spec"), "tolerations").filter(|_| !more.is_empty()) {
        tolerations.extend(more);
        let mut known = Vec::new();
        tolerations.retain(|toleration| {
            let fresh = !known.contains(toleration);
            known.push(toleration.clone());
            fresh
        });
    }
    Ok(())
}

/// A pod costs what its class says, and nothing without one.
pub(super) fn validate(operation: &Operation<'_>, pod: &Value) -> Result<(), Status> {
    let class = class(operation, pod)?;
    let own = at(pod, &["spec", "overhead"]).filter(|own| own.is_object());
    match fixed(class.as_ref()) {
        Some(fixed) if own != Some(fixed) => Err(forbidden(operation, pod, OTHER)),
        None if own.is_some() => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            Err(forbidden(operation, pod, why))
        }
        _ => Ok(()),
    }
}
