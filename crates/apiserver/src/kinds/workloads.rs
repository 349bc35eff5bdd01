//! Validation of pods, of the workloads that make them, and of Services.

use super::text;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn pod(pod: &Value) -> Vec<FieldError> {
    pod_spec(pod.get("spec").unwrap_or(&Value::Null), &Path::new("spec"))
}

fn pod_spec(spec: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if items(spec, "containers").next().is_none() {
        errors.push(FieldError::required(&path.child("containers"), ""));
    }
    let mut taken = BTreeSet::new();
    for field in ["containers", "initContainers"] {
        for (index, container) in items(spec, field).enumerate() {
            let path = path.child(field).index(index);
            let name = text(container, &["name"]);
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), ""));
            } else {
                let why = names::label(name).into_iter();
                errors.extend(why.map(|why| FieldError::invalid(&path.child("name"), name, why)));
            }
            if !name.is_empty() && !taken.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            if text(container, &["image"]).is_empty() {
                errors.push(FieldError::required(&path.child("image"), ""));
            }
        }
    }
    let restart = text(spec, &["restartPolicy"]);
    if !matches!(restart, "Always" | "OnFailure" | "Never") {
        let known = ["Always", "OnFailure", "Never"];
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), restart, &known));
    }
    errors
}

/// What of a pod may change after it was made.
pub(super) fn pod_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    const WHY: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                       `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                       existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                       previously negative)";
    if !subresource.is_empty() {
        return Vec::new();
    }
    let mut errors = pod(new);
    if fixed_part(new) != fixed_part(old) {
        errors.push(FieldError::forbidden(&Path::new("spec"), WHY));
    }
    errors
}

fn fixed_part(pod: &Value) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    if let Some(spec) = spec.as_object_mut() {
        for field in
            ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "ephemeralContainers"]
        {
            spec.remove(field);
        }
        for field in ["containers", "initContainers"] {
            let containers = spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
            containers.filter_map(Value::as_object_mut).for_each(|container| {
                container.remove("image");
            });
        }
    }
    spec
}

fn matches(selector: &Value, labels: &Map<String, Value>) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let wanted = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut equal = wanted.map(|(key, value)| label(key) == value.as_str());
    let mut expressed = items(selector, "matchExpressions").map(|expression| {
        let found = label(text(expression, &["key"]));
        let listed = || items(expression, "values").any(|value| found.is_some() && value.as_str() == found);
        match text(expression, &["operator"]) {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => true,
        }
    });
    equal.all(|matches| matches) && expressed.all(|matches| matches)
}

/// What makes pods must find them again.
fn workload(object: &Value, kind: &str) -> Vec<FieldError> {
    let (path, empty) = (Path::new("spec"), Map::new());
    let mut errors = Vec::new();
    let spec = object.get("spec").unwrap_or(&Value::Null);
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
        if let Some(number) = spec.get(field).and_then(Value::as_i64).filter(|number| *number < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&path.child(field), number, why));
        }
    }
    let labels = spec.pointer("/template/metadata/labels").and_then(Value::as_object).unwrap_or(&empty);
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    let selects = match selector {
        None => {
            errors.push(FieldError::required(&path.child("selector"), ""));
            false
        }
        Some(selector) if selector.as_object().is_some_and(Map::is_empty) => {
            let why = format!("empty selector is invalid for {kind}");
            errors.push(FieldError::invalid(&path.child("selector"), selector.clone(), why));
            true
        }
        Some(selector) => matches(selector, labels),
    };
    let template = path.child("template");
    if !selects {
        let why = "`selector` does not match template `labels`";
        let shown = if labels.is_empty() { Value::Null } else { json!(labels) };
        errors.push(FieldError::invalid(&template.child("metadata").child("labels"), shown, why));
    }
    let pod = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    errors.extend(pod_spec(pod, &template.child("spec")));
    let restart = text(pod, &["restartPolicy"]);
    if restart != "Always" {
        let path = template.child("spec").child("restartPolicy");
        errors.push(FieldError::not_supported(&path, restart, &["Always"]));
    }
    errors
}

pub(super) fn deployment(object: &Value) -> Vec<FieldError> {
    workload(object, "deployment")
}

pub(super) fn replica_set(object: &Value) -> Vec<FieldError> {
    workload(object, "deployment")
}

pub(super) fn daemon_set(object: &Value) -> Vec<FieldError> {
    workload(object, "daemonset")
}

pub(super) fn stateful_set(object: &Value) -> Vec<FieldError> {
    workload(object, "statefulset")
}

pub(super) fn stateful_set_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    const MAY: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    if subresource == "status" {
        return Vec::new();
    }
    let mut errors = stateful_set(new);
    let fixed = |set: &Value| {
        let mut spec = set.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        spec.retain(|field, _| !MAY.contains(&field.as_str()));
        spec
    };
    if fixed(new) != fixed(old) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden(&Path::new("spec"), why));
    }
    errors
}

pub(super) fn job(job: &Value) -> Vec<FieldError> {
    job_spec(job.get("spec").unwrap_or(&Value::Null), &Path::new("spec"))
}

fn job_spec(spec: &Value, path: &Path) -> Vec<FieldError> {
    let template = path.child("template").child("spec");
    let pod = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    let mut errors = pod_spec(pod, &template);
    let path = template.child("restartPolicy");
    if matches!(text(pod, &["restartPolicy"]), "" | "Always") {
        errors.push(FieldError::required(&path, "valid values: \"OnFailure\", \"Never\""));
    }
    errors
}

pub(super) fn cron_job(cron: &Value) -> Vec<FieldError> {
    let path = Path::new("spec");
    let spec = cron.get("spec").unwrap_or(&Value::Null);
    let template = path.child("jobTemplate").child("spec");
    let mut errors = job_spec(spec.pointer("/jobTemplate/spec").unwrap_or(&Value::Null), &template);
    if text(spec, &["schedule"]).is_empty() {
        errors.push(FieldError::required(&path.child("schedule"), ""));
    }
    errors
}

pub(super) fn service(service: &Value) -> Vec<FieldError> {
    let path = Path::new("spec").child("ports");
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    let count = items(spec, "ports").count();
    let headless = text(spec, &["clusterIP"]) == "None";
    if count == 0 && !headless && text(spec, &["type"]) != "ExternalName" {
        errors.push(FieldError::required(&path, ""));
    }
    let mut taken = BTreeSet::new();
    for (index, port) in items(spec, "ports").enumerate() {
        let path = path.index(index);
        let name = text(port, &["name"]);
        if name.is_empty() && count > 1 {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if !name.is_empty() && !taken.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
        if !(1..=65535).contains(&number) {
            let why = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(&path.child("port"), number, why));
        }
    }
    errors
}

/// The first address of a Service is its own for good.
pub(super) fn service_update(new: &Value, old: &Value, _: &str) -> Vec<FieldError> {
    let kind = |service: &Value| text(service, &["spec", "type"]) == "ExternalName";
    let address = |service: &Value| text(service, &["spec", "clusterIP"]).to_owned();
    let mut errors = Vec::new();
    if !kind(new) && !kind(old) && !address(old).is_empty() && address(new) != address(old) {
        let path = Path::new("spec").child("clusterIPs").index(0);
        errors.push(FieldError::invalid(&path, json!([address(new)]), "may not change once set"));
    }
    errors.extend(service(new));
    errors
}
