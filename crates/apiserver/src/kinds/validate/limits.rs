//! Limits and quotas.

use super::check::{NEGATIVE, is_empty};
use super::container::{is_extended, is_standard, names_resource};
use super::{Object, invalid, list, part, parts, word};
use crate::kinds::resources::{quantity, ratio};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use windlass_schema::Quantity;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

pub(super) fn limits(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let mut taken = BTreeSet::new();
    for (item, path) in parts(spec, "limits", path) {
        let (kind, at) = (word(item, "type"), path.child("type"));
        let wrong = names::qualified(kind);
        if wrong.is_empty()
            && !kind.contains('/')
            && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim")
        {
            errors.push(FieldError::invalid(&at, kind, "must be a standard limit type or fully qualified"));
        }
        invalid(errors, &at, kind, wrong);
        if !taken.insert(kind) {
            errors.push(FieldError::duplicate(&at, kind));
        }
        let storage = |field: &str| part(item, field).is_some_and(|amounts| amounts.contains_key("storage"));
        if kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
            let why = "either minimum or maximum storage value is required, but neither was provided";
            errors.push(FieldError::required(&path.child("limits"), why));
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !is_empty(item.get(field).unwrap_or(&Value::Null)) {
                    errors.push(FieldError::forbidden(
                        &path.child(field),
                        "may not be specified when `type` is 'Pod'",
                    ));
                }
            }
        }
        if matches!(kind, "Pod" | "Container") {
            for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
                let skipped = kind == "Pod" && field.starts_with("default");
                for name in part(item, field).filter(|_| !skipped).into_iter().flat_map(Object::keys) {
                    let wrong = names_resource(name, is_standard(name), "containers");
                    invalid(errors, &path.child(field).key(name), name.as_str(), wrong);
                }
            }
        }
        compared(item, kind, &path, errors);
    }
}

/// What is compared: the two sides in order, and which of them is told of where.
fn compared(item: &Object, kind: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let side = |field: &str| -> BTreeMap<&String, Quantity> {
        let skipped = kind == "Pod" && field.starts_with("default");
        let amounts = part(item, field).filter(|_| !skipped).into_iter().flatten();
        amounts.filter_map(|(name, amount)| Some((name, quantity(amount)?))).collect()
    };
    let (min, max) = (side("min"), side("max"));
    let (limit, request, ratios) = (side("default"), side("defaultRequest"), side("maxLimitRequestRatio"));
    let mut say = |small: &BTreeMap<&String, Quantity>,
                   large: &BTreeMap<&String, Quantity>,
                   field: &str,
                   shows_small: bool,
                   words: [&str; 2]| {
        for (name, amount) in small {
            if let Some(bound) = large.get(name).filter(|bound| amount > bound) {
                let why = format!("{} {amount} is greater than {} {bound}", words[0], words[1]);
                let shown = if shows_small { amount } else { bound };
                errors.push(FieldError::invalid(&path.child(field).key(name), shown.to_string(), why));
            }
        }
    };
    say(&min, &max, "min", true, ["min value", "max value"]);
    say(&min, &request, "defaultRequest", false, ["min value", "default request value"]);
    say(&request, &max, "defaultRequest", true, ["default request value", "max value"]);
    say(&request, &limit, "defaultRequest", true, ["default request value", "default limit value"]);
    say(&min, &limit, "default", true, ["min value", "default value"]);
    say(&limit, &max, "default", false, ["default value", "max value"]);
    for (name, amount) in ratios {
        let path = path.child("maxLimitRequestRatio").key(name);
        if amount < Quantity::from(1) {
            errors.push(FieldError::invalid(
                &path,
                amount.to_string(),
                format!("ratio {amount} is less than 1"),
            ));
        }
        if let (Some(min), Some(max)) = (min.get(name), max.get(name)) {
            let most = ratio(max, min);
            if ratio(&amount, &Quantity::from(1)) > most {
                let why = format!("ratio {amount} is greater than max/min = {most:.6}");
                errors.push(FieldError::invalid(&path, amount.to_string(), why));
            }
        }
    }
}

fn is_compute(name: &str) -> bool {
    let bare = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    matches!(bare, "cpu" | "memory" | "ephemeral-storage") || bare.starts_with("hugepages-")
}

/// What can be counted without anyone defining it.
fn is_counted(name: &str) -> bool {
    const PLAIN: [&str; 10] = [
        "pods",
        "services",
        "services.nodeports",
        "services.loadbalancers",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "requests.storage",
    ];
    PLAIN.contains(&name) || is_compute(name)
}

pub(super) fn quota(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let hard = part(spec, "hard").cloned().unwrap_or_default();
    amounts(&hard, &path.child("hard"), errors);
    scopes(spec, &hard, path, errors);
    scope_selector(spec, &hard, path, errors);
}

fn scope_selector(spec: &Object, hard: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(selector) = part(spec, "scopeSelector") else { return };
    let path = path.child("scopeSelector").child("matchExpressions");
    for requirement in list(selector, "matchExpressions").iter().filter_map(Value::as_object) {
        let (scope, operator) = (word(requirement, "scopeName"), word(requirement, "operator"));
        if !SCOPES.contains(&scope) {
            errors.push(FieldError::invalid(&path.child("scopeName"), scope, "unsupported scope"));
        }
        for _ in hard.keys().filter(|name| is_counted(name) && !applies(scope, name)) {
            let shown = Value::Object(selector.clone());
            errors.push(FieldError::invalid(&path, shown, "unsupported scope applied to resource"));
        }
        if !matches!(scope, "PriorityClass" | "VolumeAttributesClass")
            && operator != "Exists"
            && SCOPES.contains(&scope)
        {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, \
                       ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                       ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(FieldError::invalid(&path.child("operator"), operator, why));
        }
        let values = list(requirement, "values");
        let at = path.child("values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(FieldError::required(&at, why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(FieldError::invalid(&at, values.to_vec(), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let why = "not a valid selector operator";
                errors.push(FieldError::invalid(&path.child("operator"), other, why));
            }
        }
    }
}

/// Does a quota of this scope count such a resource?
fn applies(scope: &str, name: &str) -> bool {
    match scope {
        "BestEffort" => name == "pods",
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => name == "pods" || is_compute(name),
        _ => true,
    }
}

fn amounts(amounts: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for (name, amount) in amounts {
        let path = path.key(name);
        invalid(errors, &path, name.as_str(), names_resource(name, is_counted(name), "quota"));
        let Some(given) = quantity(amount) else { continue };
        if given.is_negative() {
            errors.push(FieldError::invalid(&path, amount.clone(), NEGATIVE));
        }
        let object_count = is_counted(name) && !is_compute(name) && name != "requests.storage";
        if (object_count || is_extended(name)) && !given.is_integer() {
            errors.push(FieldError::invalid(&path, amount.clone(), "must be an integer"));
        }
    }
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

fn scopes(spec: &Object, hard: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let given = list(spec, "scopes");
    let at = path.child("scopes");
    let mut refuse = |why: &str| errors.push(FieldError::invalid(&at, given.to_vec(), why));
    let known: BTreeSet<&str> = given.iter().filter_map(Value::as_str).collect();
    for scope in given.iter().filter_map(Value::as_str) {
        if !SCOPES.contains(&scope) {
            refuse("unsupported scope");
        }
        for _ in hard.keys().filter(|name| is_counted(name) && !applies(scope, name)) {
            refuse("unsupported scope applied to resource");
        }
    }
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| known.contains(scope)) {
            refuse("conflicting scopes");
        }
    }
}

/// Which objects a quota counts does not change; and its status, which only its own path changes, has amounts as the spec has.
pub(crate) fn quota_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    if subresource == "status" {
        let mut errors = Vec::new();
        for field in ["hard", "used"] {
            if let Some(given) = new.pointer(&format!("/status/{field}")).and_then(Value::as_object) {
                amounts(given, &Path::new("status").child(field), &mut errors);
            }
        }
        return errors;
    }
    let scopes = |quota: &Value| -> BTreeSet<String> {
        let list = quota.pointer("/spec/scopes").and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|scope| scope.as_str().map(str::to_owned)).collect()
    };
    if scopes(new) == scopes(old) {
        return Vec::new();
    }
    let shown = new.pointer("/spec/scopes").cloned().unwrap_or_default();
    vec![FieldError::invalid(&Path::new("spec").child("scopes"), shown, "field is immutable")]
}
