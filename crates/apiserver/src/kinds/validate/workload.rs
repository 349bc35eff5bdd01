//! What makes pods, keeps them, and counts them.

use super::check::{Check, in_go, not_above_all, percentage};
use super::{Object, has, list, number, part, parts, word};
use crate::kinds::go_format::selector;
use crate::kinds::resources::quantity;
use serde_json::{Map, Value};
use windlass_schema::field::{FieldError, Path};
use windlass_schema::meta;

/// The metadata of a template is told of without its name.
pub(super) fn template(template: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(metadata) = template.get("metadata") {
        errors.extend(meta::labels_and_annotations(metadata, path));
    }
    if part(template, "spec").is_some_and(|pod| !list(pod, "ephemeralContainers").is_empty()) {
        let path = path.child("spec").child("ephemeralContainers");
        errors.push(FieldError::forbidden(&path, "ephemeral containers not allowed in pod template"));
    }
}

/// Does a selector select these labels?
pub(crate) fn matches(selector: &Value, labels: &Map<String, Value>) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let wanted = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut equal = wanted.map(|(key, value)| label(key) == value.as_str());
    let none = Map::new();
    let selector = selector.as_object().unwrap_or(&none);
    let mut expressed =
        list(selector, "matchExpressions").iter().filter_map(Value::as_object).map(|expression| {
            let found = label(word(expression, "key"));
            let listed =
                || list(expression, "values").iter().any(|value| found.is_some() && value.as_str() == found);
            match word(expression, "operator") {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => true,
            }
        });
    equal.all(|matches| matches) && expressed.all(|matches| matches)
}

const STRATEGY: [(&str, &str); 2] = [("Type", "type"), ("RollingUpdate", "rollingUpdate")];

pub(super) fn deployment(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (deadline, ready) =
        (number(spec, "progressDeadlineSeconds"), number(spec, "minReadySeconds").unwrap_or(0));
    if let Some(deadline) = deadline.filter(|deadline| *deadline <= ready) {
        let path = path.child("progressDeadlineSeconds");
        errors.push(FieldError::invalid(&path, deadline, "must be greater than minReadySeconds"));
    }
    let Some(strategy) = part(spec, "strategy") else { return };
    let path = path.child("strategy");
    match word(strategy, "type") {
        "Recreate" => {
            if has(strategy, "rollingUpdate") {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(FieldError::forbidden(&path.child("rollingUpdate"), why));
            }
        }
        "RollingUpdate" => match part(strategy, "rollingUpdate") {
            None => errors.push(FieldError::required(
                &path.child("rollingUpdate"),
                "this should be defaulted and never be nil",
            )),
            Some(rolling) => {
                let path = path.child("rollingUpdate");
                let null = Value::Null;
                let at = |field: &str| rolling.get(field).unwrap_or(&null);
                percentage(at("maxUnavailable"), &path.child("maxUnavailable"), errors);
                percentage(at("maxSurge"), &path.child("maxSurge"), errors);
                if is_zero(at("maxUnavailable")) && is_zero(at("maxSurge")) {
                    let path = path.child("maxUnavailable");
                    let why = "may not be 0 when `maxSurge` is 0";
                    errors.push(FieldError::invalid(&path, at("maxUnavailable").clone(), why));
                }
                not_above_all(at("maxUnavailable"), &path.child("maxUnavailable"), errors);
            }
        },
        other => {
            let error = FieldError::not_supported(&path, other, &["Recreate", "RollingUpdate"]);
            errors.push(error.showing(in_go(strategy, &STRATEGY)));
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text == "0%",
        _ => true,
    }
}

pub(super) fn daemon_set_strategy(strategy: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    match word(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let Some(rolling) = part(strategy, "rollingUpdate") else {
                errors.push(FieldError::required(&path.child("rollingUpdate"), ""));
                return;
            };
            let path = path.child("rollingUpdate");
            let null = Value::Null;
            let at = |field: &str| rolling.get(field).unwrap_or(&null);
            for field in ["maxUnavailable", "maxSurge"] {
                percentage(at(field), &path.child(field), errors);
                not_above_all(at(field), &path.child(field), errors);
            }
            match (is_zero(at("maxUnavailable")), is_zero(at("maxSurge"))) {
                (true, true) => {
                    let why = "cannot be 0 when maxSurge is 0";
                    errors.push(FieldError::required(&path.child("maxUnavailable"), why));
                }
                (false, false) => {
                    let why = "may not be set when maxUnavailable is non-zero";
                    errors.push(FieldError::invalid(&path.child("maxSurge"), at("maxSurge").clone(), why));
                }
                _ => {}
            }
        }
        other => {
            let error = FieldError::not_supported(path, other, &["RollingUpdate", "OnDelete"]);
            errors.push(error.showing(in_go(strategy, &STRATEGY)));
        }
    }
}

pub(super) fn stateful_set(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    match word(spec, "podManagementPolicy") {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(FieldError::required(&path.child("podManagementPolicy"), "")),
        other => {
            let path = path.child("podManagementPolicy");
            errors.push(FieldError::invalid(&path, other, "must be 'OrderedReady' or 'Parallel'"));
        }
    }
    let Some(strategy) = part(spec, "updateStrategy") else { return };
    let path = path.child("updateStrategy");
    match word(strategy, "type") {
        "OnDelete" if has(strategy, "rollingUpdate") => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::invalid(
                &path.child("rollingUpdate"),
                strategy["rollingUpdate"].clone(),
                why,
            ));
        }
        "OnDelete" | "RollingUpdate" => {}
        "" => errors.push(FieldError::required(&path, "")),
        other => {
            let error = FieldError::invalid(&path, other, "must be 'RollingUpdate' or 'OnDelete'");
            errors.push(error.showing(in_go(strategy, &STRATEGY)));
        }
    }
}

pub(super) fn job(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let indexed = word(spec, "completionMode") == "Indexed";
    if indexed && !has(spec, "completions") {
        errors.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
    }
    for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        if let Some(given) = number(spec, field).filter(|_| !indexed) {
            errors.push(FieldError::invalid(&path.child(field), given, "requires indexed completion mode"));
        }
    }
    if let Some(policy) = part(spec, "successPolicy").filter(|_| !indexed) {
        const RULE: [(&str, &str); 2] =
            [("SucceededIndexes", "succeededIndexes"), ("SucceededCount", "succeededCount")];
        let rules = list(policy, "rules").iter().filter_map(Value::as_object).map(|rule| in_go(rule, &RULE));
        let shown = format!("{{\"Rules\":[{}]}}", rules.collect::<Vec<_>>().join(","));
        let error = FieldError::invalid(&path.child("successPolicy"), "", "requires indexed completion mode");
        errors.push(error.showing(shown));
    }
    if indexed && part(spec, "successPolicy").is_some_and(|policy| list(policy, "rules").is_empty()) {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path.child("successPolicy").child("rules"), why));
    }
    failure_policy(spec, path, errors);
    if !has(spec, "backoffLimitPerIndex") {
        if has(spec, "maxFailedIndexes") {
            let path = path.child("backoffLimitPerIndex");
            errors.push(FieldError::required(&path, "when maxFailedIndexes is specified"));
        }
        let rules = part(spec, "podFailurePolicy").into_iter();
        for (rule, path) in rules.flat_map(|it| parts(it, "rules", &path.child("podFailurePolicy"))) {
            if word(rule, "action") == "FailIndex" {
                let why = "requires the backoffLimitPerIndex to be set";
                errors.push(FieldError::invalid(&path.child("action"), "FailIndex", why));
            }
        }
    }
    let restarts = part(spec, "template").and_then(|template| part(template, "spec"));
    let restarts = restarts.map_or("", |pod| word(pod, "restartPolicy"));
    if has(spec, "podFailurePolicy") && restarts == "OnFailure" {
        let path = path.child("template").child("spec").child("restartPolicy");
        let why = "only \"Never\" is supported when podFailurePolicy is specified";
        errors.push(FieldError::invalid(&path, restarts, why));
    }
}

/// What becomes of a job whose pods fail speaks of containers that there are.
fn failure_policy(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(policy) = part(spec, "podFailurePolicy") else { return };
    let pod = part(spec, "template").and_then(|template| part(template, "spec"));
    let known = |name: &str| {
        let containers = ["containers", "initContainers"]
            .into_iter()
            .flat_map(|field| pod.map_or(&[][..], |pod| list(pod, field)));
        containers.filter_map(Value::as_object).any(|container| word(container, "name") == name)
    };
    for (rule, path) in parts(policy, "rules", &path.child("podFailurePolicy")) {
        let Some(codes) = part(rule, "onExitCodes") else { continue };
        let path = path.child("onExitCodes").child("containerName");
        if let Some(name) = codes.get("containerName").and_then(Value::as_str).filter(|name| !known(name)) {
            let why = "must be one of the container or initContainer names in the pod template";
            errors.push(FieldError::invalid(&path, name, why));
        }
    }
    let replaces = word(spec, "podReplacementPolicy");
    if replaces == "TerminatingOrFailed" {
        errors.push(FieldError::not_supported(&path.child("podReplacementPolicy"), replaces, &["Failed"]));
    }
}

pub(super) fn budget(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if has(spec, "minAvailable") && has(spec, "maxUnavailable") {
        let null = Value::Null;
        let at = |field: &str| spec.get(field).unwrap_or(&null);
        let shown = format!(
            r#"{{"MinAvailable":{},"Selector":{},"MaxUnavailable":{},"UnhealthyPodEvictionPolicy":{}}}"#,
            at("minAvailable"),
            selector(at("selector")),
            at("maxUnavailable"),
            at("unhealthyPodEvictionPolicy"),
        );
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid(path, "", why).showing(shown));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let value = spec.get(field).unwrap_or(&Value::Null);
        percentage(value, &path.child(field), errors);
        not_above_all(value, &path.child(field), errors);
    }
}

fn replicas(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (least, most) = (number(spec, "minReplicas"), number(spec, "maxReplicas").unwrap_or(0));
    if let Some(least) = least.filter(|least| *least < 1) {
        errors.push(FieldError::invalid(
            &path.child("minReplicas"),
            least,
            "must be greater than or equal to 1",
        ));
    }
    let at = path.child("maxReplicas");
    if most < 1 {
        errors.push(FieldError::required(&at, "must be set and greater than 0"));
    }
    if least.is_some_and(|least| most < least) {
        errors.push(FieldError::invalid(&at, most, "must be greater than or equal to `minReplicas`"));
    }
    if least == Some(0) {
        let outside = |metric: &Value| matches!(metric["type"].as_str(), Some("Object" | "External"));
        if !list(spec, "metrics").iter().any(outside) {
            let why =
                "must specify at least one Object or External metric to support scaling to zero replicas";
            errors.push(FieldError::forbidden(&path.child("metrics"), why));
        }
    }
}

/// What is scaled is of an API group.
fn scaled(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let empty = Object::new();
    let version = word(part(spec, "scaleTargetRef").unwrap_or(&empty), "apiVersion");
    if !version.contains('/') {
        let path = path.child("scaleTargetRef").child("apiVersion");
        errors.push(FieldError::invalid(&path, version, "apiVersion must specify API group"));
    }
}

pub(super) fn old_autoscaler(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    replicas(spec, path, errors);
    scaled(spec, path, errors);
    Check::Positive("must be greater than 0").judge(
        spec.get("targetCPUUtilizationPercentage").unwrap_or(&Value::Null),
        &path.child("metrics").index(0).child("resource").child("target").child("averageUtilization"),
        errors,
    );
}

const METRICS: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

pub(super) fn autoscaler(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    replicas(spec, path, errors);
    scaled(spec, path, errors);
    for (metric, path) in parts(spec, "metrics", path) {
        let kind = word(metric, "type");
        let at = path.child("type");
        if kind.is_empty() {
            errors.push(FieldError::required(&at, "must specify a metric source type"));
        }
        let Some((_, field)) = METRICS.iter().find(|(known, _)| *known == kind) else {
            let known = METRICS.map(|(known, _)| known);
            // Told twice, as the reference does.
            errors.extend([(); 2].map(|()| FieldError::not_supported(&at, kind, &known)));
            continue;
        };
        if !has(metric, field) {
            let why = "must populate information for the given metric source";
            errors.push(FieldError::required(&path.child(field), why));
        }
        for (_, other) in METRICS.iter().filter(|(known, other)| *known != kind && has(metric, other)) {
            errors.push(FieldError::forbidden(
                &path.child(other),
                "must populate the given metric source only",
            ));
        }
        // Of several the first is looked into.
        let first = ["object", "external", "pods", "resource", "containerResource"];
        if let Some((field, source)) = first.iter().find_map(|field| Some((*field, part(metric, field)?))) {
            if field.ends_with("esource") && word(source, "name").is_empty() {
                let path = path.child(field).child("name");
                errors.push(FieldError::required(&path, "must specify a resource name"));
            }
            target(source, field, &path.child(field), errors);
        }
    }
    behavior(spec, path, errors);
}

fn target(source: &Object, kind: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let empty = Object::new();
    let target = part(source, "target").unwrap_or(&empty);
    let path = path.child("target");
    let by = word(target, "type");
    if by.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric target type"));
    }
    if !matches!(by, "Utilization" | "Value" | "AverageValue") {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&path.child("type"), by, why));
    }
    for field in ["value", "averageValue"] {
        let amount = target.get(field).and_then(quantity);
        if amount.is_some_and(|amount| amount.is_negative() || amount.is_zero()) {
            errors.push(FieldError::invalid(&path.child(field), target[field].clone(), "must be positive"));
        }
    }
    let share = path.child("averageUtilization");
    if let Some(given) = number(target, "averageUtilization").filter(|given| *given < 1) {
        errors.push(FieldError::invalid(&share, given, "must be greater than 0"));
    }
    let missing = match kind {
        "pods" => !has(target, "averageValue"),
        _ => !has(target, "value") && !has(target, "averageValue"),
    };
    let why = match kind {
        "pods" => "must specify a positive target averageValue",
        "object" => "must set either a target value or averageValue",
        "external" => "must set either a target value for metric or a per-pod target",
        _ => "",
    };
    if !why.is_empty() {
        if missing {
            errors.push(FieldError::required(&path.child("averageValue"), why));
        }
        if kind == "external" && has(target, "value") && has(target, "averageValue") {
            let why = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(&path.child("value"), why));
        }
        return;
    }
    match (has(target, "averageUtilization"), has(target, "averageValue")) {
        (false, false) => {
            let why = "must set either a target raw value or a target utilization";
            errors.push(FieldError::required(&share, why));
        }
        (true, true) => {
            let why = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(&path.child("averageValue"), why));
        }
        _ => {}
    }
}

fn behavior(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(behavior) = part(spec, "behavior") else { return };
    for field in ["scaleUp", "scaleDown"] {
        let Some(rules) = part(behavior, field) else { continue };
        let path = path.child("behavior").child(field);
        if list(rules, "policies").is_empty() {
            errors.push(FieldError::required(&path.child("policies"), "must specify at least one Policy"));
        }
        for (policy, path) in parts(rules, "policies", &path) {
            let by = word(policy, "type");
            if !matches!(by, "Percent" | "Pods") {
                errors.push(FieldError::not_supported(&path.child("type"), by, &["Percent", "Pods"]));
            }
            for bounded in ["value", "periodSeconds"] {
                if let Some(given) = Some(number(policy, bounded).unwrap_or(0)).filter(|given| *given <= 0) {
                    errors.push(FieldError::invalid(
                        &path.child(bounded),
                        given,
                        "must be greater than zero",
                    ));
                }
            }
        }
    }
}

/// Pods that live on have no deadline.
pub(crate) fn lives_on(template: &Object, path: &Path, owner: &str, errors: &mut Vec<FieldError>) {
    let Some(pod) = part(template, "spec") else { return };
    if has(pod, "activeDeadlineSeconds") {
        let why = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.push(FieldError::forbidden(&path.child("spec").child("activeDeadlineSeconds"), why));
    }
}
