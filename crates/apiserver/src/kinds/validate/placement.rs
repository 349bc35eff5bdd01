//! Where pods go: selectors, affinities, tolerations, spread, and the taints of nodes.

use super::check::{in_go, is_empty};
use super::{Object, has, invalid, list, number, part, parts, word};
use crate::object::text;
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_schema::field::{ErrorKind, FieldError, Path};
use windlass_schema::names;

const LISTED: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const BARE: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
const NO_OPERATOR: &str = "not a valid selector operator";

pub(super) fn label_selector(selector: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let at = path.child("matchLabels");
    for (key, value) in part(selector, "matchLabels").into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        invalid(errors, &at, key.as_str(), names::qualified(key));
        invalid(errors, &at.key(key), value, names::label_value(value));
    }
    for (requirement, path) in parts(selector, "matchExpressions", path) {
        let values = list(requirement, "values");
        match word(requirement, "operator") {
            "In" | "NotIn" => {
                if values.is_empty() {
                    errors.push(FieldError::required(&path.child("values"), LISTED));
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    errors.push(FieldError::forbidden(&path.child("values"), BARE));
                }
            }
            other => errors.push(FieldError::invalid(&path.child("operator"), other, NO_OPERATOR)),
        }
        let key = word(requirement, "key");
        invalid(errors, &path.child("key"), key, names::qualified(key));
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            invalid(errors, &path.child("values").index(index), value, names::label_value(value));
        }
    }
}

pub(super) fn node_affinity(affinity: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    if let Some(required) = part(affinity, REQUIRED)
        && list(required, "nodeSelectorTerms").is_empty()
    {
        let path = path.child(REQUIRED).child("nodeSelectorTerms");
        errors.push(FieldError::required(&path, "must have at least one node selector term"));
    }
    weights(affinity, path, errors);
}

fn weights(affinity: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for (term, path) in parts(affinity, "preferredDuringSchedulingIgnoredDuringExecution", path) {
        let weight = number(term, "weight").unwrap_or(0);
        if !(1..=100).contains(&weight) {
            errors.push(FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100"));
        }
    }
}

pub(super) fn pod_affinity(affinity: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    weights(affinity, path, errors);
}

pub(super) fn node_term(term: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for (requirement, path) in parts(term, "matchExpressions", path) {
        let values = list(requirement, "values");
        let at = path.child("values");
        match word(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(&at, LISTED)),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(&at, BARE)),
            "Gt" | "Lt" if values.len() != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(FieldError::required(&at, why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errors.push(FieldError::invalid(&path.child("operator"), other, NO_OPERATOR)),
        }
        let key = word(requirement, "key");
        invalid(errors, &path.child("key"), key, names::qualified(key));
    }
    for (requirement, path) in parts(term, "matchFields", path) {
        match word(requirement, "operator") {
            "In" | "NotIn" => {
                if list(requirement, "values").len() != 1 {
                    let why =
                        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                    errors.push(FieldError::required(&path.child("values"), why));
                }
            }
            other => errors.push(FieldError::invalid(&path.child("operator"), other, NO_OPERATOR)),
        }
        let key = word(requirement, "key");
        if key != "metadata.name" {
            errors.push(FieldError::invalid(&path.child("key"), key, "not a valid field selector key"));
        }
    }
}

pub(super) fn pod_term(term: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for namespace in list(term, "namespaces").iter().filter_map(Value::as_str) {
        invalid(errors, &path.child("namespace"), namespace, names::label(namespace));
    }
}

pub(super) fn toleration(toleration: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (key, operator, value) =
        (word(toleration, "key"), word(toleration, "operator"), word(toleration, "value"));
    let at = path.child("operator");
    if !key.is_empty() {
        invalid(errors, &path.child("key"), key, names::qualified(key));
    }
    if key.is_empty() && operator != "Exists" {
        let why =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&at, operator, why));
    }
    let effect = word(toleration, "effect");
    if has(toleration, "tolerationSeconds") && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), effect, why));
    }
    match operator {
        "" | "Equal" => invalid(errors, &at, value, names::label_value(value)),
        "Exists" if value.is_empty() => {}
        "Exists" => {
            errors.push(FieldError::invalid(&at, value, "value must be empty when `operator` is 'Exists'"))
        }
        // The comparisons of a feature that is off are named all the same.
        "Lt" | "Gt" => {
            errors.push(FieldError::not_supported(&at, operator, &["Equal", "Exists", "Lt", "Gt"]))
        }
        other => errors.push(FieldError::not_supported(&at, other, &["Equal", "Exists"])),
    }
    if !matches!(effect, "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
        errors.push(FieldError::not_supported(&path.child("effect"), effect, &EFFECTS));
    }
}

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) fn spread(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (constraint, path) in parts(spec, "topologySpreadConstraints", path) {
        let (key, when) = (word(constraint, "topologyKey"), word(constraint, "whenUnsatisfiable"));
        if let Some(domains) = number(constraint, "minDomains").filter(|_| when != "DoNotSchedule") {
            let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}");
            errors.push(FieldError::invalid(&path.child("minDomains"), domains, why));
        }
        if !seen.insert((key, when)) {
            let first = path_of_first(spec, &path, key, when);
            errors.push(FieldError::duplicate(&first, format!("{{{key}, {when}}}")));
        }
    }
}

/// The reference tells of the one that came first.
fn path_of_first(spec: &Object, repeated: &Path, key: &str, when: &str) -> Path {
    let same = |item: &Value| {
        item.as_object()
            .is_some_and(|item| word(item, "topologyKey") == key && word(item, "whenUnsatisfiable") == when)
    };
    let first = list(spec, "topologySpreadConstraints").iter().position(same).unwrap_or(0);
    let above = repeated.to_string();
    let above = above.rsplit_once('[').map_or(above.as_str(), |(head, _)| head);
    Path::new(above).index(first).child("{topologyKey, whenUnsatisfiable}")
}

/// Taints are told of as if they were metadata.
pub(super) fn node(spec: &Object, _: &Path, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (taint, path) in parts(spec, "taints", &Path::new("metadata")) {
        let (key, value, effect) = (word(taint, "key"), word(taint, "value"), word(taint, "effect"));
        invalid(errors, &path.child("key"), key, names::qualified(key));
        invalid(errors, &path.child("value"), value, names::label_value(value));
        if effect.is_empty() {
            errors.push(FieldError::required(&path.child("effect"), ""));
        } else if !EFFECTS.contains(&effect) {
            errors.push(FieldError::not_supported(&path.child("effect"), effect, &EFFECTS));
        }
        if !seen.insert((key, effect)) {
            let mut shown = taint.clone();
            shown.entry("value").or_insert_with(|| "".into());
            const FIELDS: [(&str, &str); 4] =
                [("Key", "key"), ("Value", "value"), ("Effect", "effect"), ("TimeAdded", "timeAdded")];
            let why = "taints must be unique by key and effect pair";
            let error = FieldError::new(ErrorKind::Duplicate, &path, Some("".into()), why);
            errors.push(error.showing(in_go(&shown, &FIELDS)));
        }
    }
}

/// What a node was given stays its own.
pub(crate) fn node_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(spec) = new.get("spec").and_then(Value::as_object) {
        // Its taints are looked at a second time.
        node(spec, &Path::new("spec"), &mut errors);
    }
    let external = |node: &Value| text(node, &["spec", "externalID"]).to_owned();
    if external(new) != external(old) {
        errors.push(FieldError::forbidden(&Path::new("spec").child("externalID"), "may not be updated"));
    }
    let networks = |node: &Value| node.pointer("/spec/podCIDRs").cloned().unwrap_or_default();
    if !is_empty(&networks(old)) && networks(new) != networks(old) {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&Path::new("spec").child("podCIDRs"), why));
    }
    let provider = |node: &Value| text(node, &["spec", "providerID"]).to_owned();
    if !provider(old).is_empty() && provider(new) != provider(old) {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&Path::new("spec").child("providerID"), why));
    }
    errors
}
