//! The accepted names of a CRD, given those that others of its group have, and the conditions that say so.

use super::approval::{self, Approval};
use super::condition;
use crate::object::text;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use windlass_schema::field::aggregate;

/// The status that a definition should have, given the other definitions of its group; none if it has it already.
pub(crate) fn status(crd: &Value, others: &[Value], now: &str) -> Option<Value> {
    let wanted = crd.pointer("/spec/names").cloned().unwrap_or_default();
    let had = crd.pointer("/status/acceptedNames").cloned().unwrap_or_else(|| json!({}));
    let (accepted, conflict) = accept(&wanted, &had, others);
    let mut status = crd.get("status").cloned().unwrap_or_else(|| json!({}));
    let mut conditions: Vec<Value> =
        status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let established =
        condition(crd, "Established").is_some_and(|condition| text(condition, &["status"]) == "True");
    match &conflict {
        None => {
            set(&mut conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now);
            if !established {
                let why = "the initial names have been accepted";
                set(&mut conditions, "Established", "True", "InitialNamesAccepted", why, now);
            }
        }
        Some((reason, message)) => {
            set(&mut conditions, "NamesAccepted", "False", reason, message, now);
            if !established {
                set(
                    &mut conditions,
                    "Established",
                    "False",
                    "NotAccepted",
                    "not all names are accepted",
                    now,
                );
            }
        }
    }
    if let Some((approval, why)) = approval::of(crd) {
        let approved = if approval == Approval::Approved { "True" } else { "False" };
        set(&mut conditions, "KubernetesAPIApprovalPolicyConformant", approved, approval.reason(), &why, now);
    }
    let fields = status.as_object_mut()?;
    fields.insert("acceptedNames".to_owned(), accepted);
    fields.insert("conditions".to_owned(), Value::Array(conditions));
    (crd.get("status") != Some(&status)).then_some(status)
}

fn accept(wanted: &Value, had: &Value, others: &[Value]) -> (Value, Option<(&'static str, String)>) {
    let mut resources = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for other in others {
        let Some(names) = other.pointer("/status/acceptedNames") else { continue };
        resources.extend([text(names, &["plural"]), text(names, &["singular"])]);
        resources.extend(list(names, "shortNames"));
        kinds.extend([text(names, &["kind"]), text(names, &["listKind"])]);
    }
    let taken = |name: &str, had: &str, used: &BTreeSet<&str>| {
        (name != had && used.contains(name)).then(|| format!("{name:?} is already in use"))
    };
    let mut accepted: Map<String, Value> = had.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    let mut take = |field: &str, reason: &'static str, used: &BTreeSet<&str>, conflict: &mut Option<_>| {
        let name = text(wanted, &[field]);
        match taken(name, text(had, &[field]), used) {
            Some(why) => *conflict = Some((reason, why)),
            None => {
                accepted.insert(field.to_owned(), json!(name));
            }
        }
    };
    take("plural", "PluralConflict", &resources, &mut conflict);
    take("singular", "SingularConflict", &resources, &mut conflict);
    let ours: BTreeSet<&str> = list(had, "shortNames").collect();
    let clashes: Vec<String> = list(wanted, "shortNames")
        .filter(|name| !ours.contains(name))
        .filter_map(|name| taken(name, "", &resources))
        .collect();
    let short_names = match clashes.as_slice() {
        [] => wanted.get("shortNames").cloned(),
        _ => had.get("shortNames").cloned(),
    };
    if !clashes.is_empty() {
        conflict = Some(("ShortNamesConflict", aggregate(&clashes)));
    }
    take("kind", "KindConflict", &kinds, &mut conflict);
    take("listKind", "ListKindConflict", &kinds, &mut conflict);
    for (field, value) in [("shortNames", short_names), ("categories", wanted.get("categories").cloned())] {
        match value {
            Some(value) => accepted.insert(field.to_owned(), value),
            None => accepted.remove(field),
        };
    }
    (Value::Object(accepted), conflict)
}

fn list<'a>(names: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    names.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Sets a condition; its time moves only when its status does.
pub(crate) fn set(
    conditions: &mut Vec<Value>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let new = |since: &Value| json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message});
    match conditions.iter_mut().find(|condition| text(condition, &["type"]) == kind) {
        None => conditions.push(new(&json!(now))),
        Some(condition) => {
            let since = match text(condition, &["status"]) == status {
                true => condition.get("lastTransitionTime").cloned().unwrap_or_else(|| json!(now)),
                false => json!(now),
            };
            *condition = new(&since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(plural: &str, kind: &str) -> Value {
        json!({"spec": {"names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")}},
            "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]}})
    }

    fn with_status(mut crd: Value, others: &[Value]) -> Value {
        if let Some(status) = status(&crd, others, "t") {
            crd["status"] = status;
        }
        crd
    }

    #[test]
    fn the_first_of_two_keeps_the_kind() {
        let first = with_status(crd("as", "A"), &[]);
        assert!(super::super::is_true(&first, "Established"));
        assert_eq!(status(&first, &[], "later"), None, "a settled definition stays as it is");
        let second = with_status(crd("bs", "A"), std::slice::from_ref(&first));
        let names = condition(&second, "NamesAccepted").unwrap();
        assert_eq!((text(names, &["status"]), text(names, &["reason"])), ("False", "ListKindConflict"));
        assert!(!super::super::is_true(&second, "Established"));
        assert_eq!(second["status"]["acceptedNames"]["plural"], "bs");
    }
}
