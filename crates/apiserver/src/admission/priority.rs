//! Priority: sets a pod's priority and preemption policy from its PriorityClass.

use super::forbidden;
use crate::object::{at, child, text};
use crate::operation::Operation;
use crate::status::Status;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_store::{Entry, Key, ListQuery};

/// Gives a new pod the priority of its class.
pub(super) fn mutate(operation: &Operation<'_>, pod: &mut Value) -> Result<(), Status> {
    let class = match text(pod, &["spec", "priorityClassName"]) {
        "" => default_class(operation),
        name => {
            let key = Key::new("scheduling.k8s.io/priorityclasses", "", name);
            let found = operation.api.store.get(&key).map(|entry| entry.value());
            let why = format!("no PriorityClass with name {name} was found");
            Some(found.ok_or_else(|| forbidden(operation, pod, &why))?)
        }
    };
    let priority = class.as_ref().and_then(|class| class.get("value")).cloned().unwrap_or(json!(0));
    let policy = match class.as_ref().map_or("", |class| text(class, &["preemptionPolicy"])) {
        "" => "PreemptLowerPriority",
        policy => policy,
    };
    if let Some(given) = at(pod, &["spec", "priority"]).filter(|given| **given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        );
        return Err(forbidden(operation, pod, &why));
    }
    let given = text(pod, &["spec", "preemptionPolicy"]);
    if !given.is_empty() && given != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(operation, pod, &why));
    }
    let spec = child(pod, "spec");
    if let Some(class) = &class {
        spec.insert("priorityClassName".to_owned(), json!(text(class, &["metadata", "name"])));
    }
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    spec.insert("priority".to_owned(), priority);
    Ok(())
}

/// An update that leaves out what was computed keeps it.
pub(super) fn keep(pod: &mut Value, old: Option<&Value>) {
    for field in ["priority", "preemptionPolicy"] {
        if let Some(before) = old.and_then(|old| at(old, &["spec", field]))
            && at(pod, &["spec", field]).is_none_or(Value::is_null)
        {
            child(pod, "spec").insert(field.to_owned(), before.clone());
        }
    }
}

/// The class of pods that name none: of several, the least.
fn default_class(operation: &Operation<'_>) -> Option<Value> {
    let page = operation.api.store.list(&ListQuery::all("scheduling.k8s.io/priorityclasses")).ok()?;
    // Hardly any class is: only one whose text says so is read.
    const SAYS_SO: &[u8] = br#""globalDefault":true"#;
    let says_so = |entry: &&Arc<Entry>| entry.json().windows(SAYS_SO.len()).any(|text| text == SAYS_SO);
    let classes = page.items.iter().filter(says_so).map(|entry| entry.value());
    let defaults = classes.filter(|class| class.get("globalDefault") == Some(&json!(true)));
    defaults.min_by_key(|class| class.get("value").and_then(Value::as_i64))
}
