//! What a kind is asked beside what its structs are: selectors that find pods again, and what may not change.

use super::text;
use super::validate::{self, matches};
use serde_json::{Map, Value, json};
use windlass_schema::field::{FieldError, Path};

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// What a pod may not have from the start.
pub(super) fn pod(pod: &Value) -> Vec<FieldError> {
    let path = Path::new("spec").child("ephemeralContainers");
    let given = pod
        .pointer("/spec/ephemeralContainers")
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty());
    given.then(|| FieldError::forbidden(&path, "cannot be set on create")).into_iter().collect()
}

/// Containers that were added to a pod stay as they were.
fn added(new: &Value, old: &Value) -> Vec<FieldError> {
    let path = Path::new("spec").child("ephemeralContainers");
    let of = |pod: &Value| -> Vec<Value> {
        items(pod.get("spec").unwrap_or(&Value::Null), "ephemeralContainers").cloned().collect()
    };
    let wanted = of(new);
    let mut errors = Vec::new();
    for had in of(old) {
        let name = text(&had, &["name"]);
        let why = match wanted.iter().find(|one| text(one, &["name"]) == name) {
            None => format!("existing ephemeral containers {name:?} may not be removed\n"),
            Some(still) if *still != had => {
                format!("existing ephemeral containers {name:?} may not be changed\n")
            }
            Some(_) => continue,
        };
        errors.push(FieldError::forbidden(&path, why));
    }
    errors
}

/// What of a pod may change after it was made.
pub(super) fn pod_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    const WHY: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                       `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                       existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                       previously negative)";
    match subresource {
        "" => {}
        "ephemeralcontainers" => return added(new, old),
        _ => return Vec::new(),
    }
    let path = Path::new("spec");
    let mut errors = Vec::new();
    let deadline = |pod: &Value| pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    let at = path.child("activeDeadlineSeconds");
    match (deadline(new), deadline(old)) {
        (Some(new), Some(old)) if new > old => {
            errors.push(FieldError::invalid(&at, new, "must be less than or equal to previous value"));
            return errors;
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(&at, Value::Null, why));
        }
        _ => {}
    }
    let list = |pod: &'_ Value, field: &str| -> Vec<Value> {
        pod.get("spec")
            .and_then(|spec| spec.get(field))
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let but_seconds = |toleration: &Value| {
        let mut toleration = toleration.as_object().cloned().unwrap_or_default();
        toleration.remove("tolerationSeconds");
        toleration
    };
    let now: Vec<_> = list(new, "tolerations").iter().map(but_seconds).collect();
    // The reference looks for the first only, whatever its words say.
    if list(old, "tolerations").first().is_some_and(|toleration| !now.contains(&but_seconds(toleration))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(&path.child("tolerations"), why));
    }
    let gates = list(old, "schedulingGates");
    for (index, gate) in
        list(new, "schedulingGates").iter().enumerate().filter(|(_, gate)| !gates.contains(gate))
    {
        let why =
            format!("only deletion is allowed, but found new scheduling gate '{}'", text(gate, &["name"]));
        errors.push(FieldError::forbidden(&path.child("schedulingGates").index(index).child("name"), why));
    }
    let gated = !gates.is_empty();
    if fixed_part(new, gated) != fixed_part(old, gated) {
        errors.push(FieldError::forbidden(&path, WHY));
    }
    if gated {
        errors.extend(chosen_nodes(new, old));
    }
    errors
}

/// A pod that waits at a gate may still be told more about its node, and not less.
fn chosen_nodes(new: &Value, old: &Value) -> Vec<FieldError> {
    let selector = |pod: &Value| {
        pod.pointer("/spec/nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (now, before) = (selector(new), selector(old));
    let lost = before.iter().any(|(key, value)| now.get(key) != Some(value));
    let path = Path::new("spec").child("nodeSelector");
    let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
    let shown = Value::Object(now);
    lost.then(|| FieldError::invalid(&path, shown, why)).into_iter().collect()
}

fn fixed_part(pod: &Value, gated: bool) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    if let Some(spec) = spec.as_object_mut() {
        for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
            spec.remove(field);
        }
        if gated {
            spec.remove("nodeSelector");
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

/// What makes pods must find them again.
fn workload(object: &Value, kind: &str, owner: &str) -> Vec<FieldError> {
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
    let is_odd = selector.is_some_and(|selector| {
        let known = ["In", "NotIn", "Exists", "DoesNotExist"];
        items(selector, "matchExpressions")
            .any(|expression| !known.contains(&text(expression, &["operator"])))
    });
    let selects = match selector {
        Some(selector) if is_odd => {
            let part = |field: &str| selector.get(field).map(|value| format!("\"{field}\":{value}"));
            let shown: Vec<String> =
                ["matchLabels", "matchExpressions"].into_iter().filter_map(part).collect();
            let error = FieldError::invalid(&path.child("selector"), "", "invalid label selector");
            errors.push(error.showing(format!("{{{}}}", shown.join(","))));
            true
        }
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
    if let Some(object) = spec.get("template").and_then(Value::as_object) {
        validate::lives_on(object, &template, owner, &mut errors);
    }
    let restart = text(pod, &["restartPolicy"]);
    if restart != "Always" {
        let path = template.child("spec").child("restartPolicy");
        errors.push(FieldError::not_supported(&path, restart, &["Always"]));
    }
    errors
}

pub(super) fn deployment(object: &Value) -> Vec<FieldError> {
    workload(object, "deployment", "ReplicaSet")
}

pub(super) fn replica_set(object: &Value) -> Vec<FieldError> {
    workload(object, "deployment", "ReplicaSet")
}

pub(super) fn daemon_set(object: &Value) -> Vec<FieldError> {
    workload(object, "daemonset", "DaemonSet")
}

pub(super) fn stateful_set(object: &Value) -> Vec<FieldError> {
    workload(object, "statefulset", "StatefulSet")
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
    let spec = job.get("spec").unwrap_or(&Value::Null);
    let mut errors = job_spec(spec, &Path::new("spec"));
    let labels = spec.pointer("/template/metadata/labels").cloned().unwrap_or_default();
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    if selector.is_some_and(|selector| !matches(selector, labels.as_object().unwrap_or(&Map::new()))) {
        let path = Path::new("spec").child("template").child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, labels, "`selector` does not match template `labels`"));
    }
    errors
}

/// How many pods a job completes changes only together with how many run at once.
pub(super) fn job_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    if subresource == "status" {
        return Vec::new();
    }
    // The reference looks at all of it, and then at all of it again.
    let again = validate::object("io.k8s.api.batch.v1.Job", new).into_iter();
    let mut errors: Vec<FieldError> = again.filter(|error| error.path.starts_with("spec")).collect();
    errors.extend(job(new));
    errors.extend(job(new));
    let field = |job: &Value, field: &str| {
        job.get("spec").and_then(|spec| spec.get(field)).cloned().unwrap_or_default()
    };
    let now = field(new, "completions");
    if now != field(old, "completions") {
        let elastic = field(new, "completionMode") == "Indexed";
        let why = match elastic {
            true if now == field(new, "parallelism") => return errors,
            true => "can only be modified in tandem with spec.parallelism",
            false => "field is immutable",
        };
        errors.push(FieldError::invalid(&Path::new("spec").child("completions"), now, why));
    }
    errors
}

/// The pod template of a job that is suspended may change in what queues decide: where its pods go, and how much they may use.
pub(super) fn job_template(new: &Value, old: &Value) -> Vec<FieldError> {
    const IMMUTABLE: &str = "field is immutable";
    let template = |job: &Value| job.pointer("/spec/template").cloned().unwrap_or_default();
    let (now, mut before) = (template(new), template(old));
    let path = Path::new("spec").child("template");
    if !is_at_rest(old) {
        return if now == before { Vec::new() } else { vec![FieldError::invalid(&path, now, IMMUTABLE)] };
    }
    let empty = json!({});
    let (now_spec, before_spec) = (now.get("spec").unwrap_or(&empty), before.get_mut("spec"));
    let Some(before_spec) = before_spec else { return Vec::new() };
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        take_over(before_spec, now_spec, field);
    }
    if !now_spec["affinity"].is_null() && before_spec["affinity"].is_null() {
        before_spec["affinity"] = json!({});
    }
    if let Some(affinity) = before_spec.get_mut("affinity") {
        take_over(affinity, &now_spec["affinity"], "nodeAffinity");
        if now_spec["affinity"].is_null() && affinity.as_object().is_some_and(Map::is_empty) {
            take_over(before_spec, now_spec, "affinity");
        }
    }
    for list in ["containers", "initContainers"] {
        let (now, before) = (now_spec[list].as_array(), before_spec.get_mut(list));
        let Some((now, before)) = now.zip(before.and_then(Value::as_array_mut)) else { continue };
        if now.len() == before.len() {
            let pairs = now.iter().zip(before).filter(|(now, before)| now["name"] == before["name"]);
            pairs.for_each(|(now, before)| take_over(before, now, "resources"));
        }
    }
    match now_spec == before_spec {
        true => Vec::new(),
        false => vec![FieldError::invalid(&path.child("spec"), now_spec.clone(), IMMUTABLE)],
    }
}

/// Whether a job is suspended and none of its pods runs: it never started, or its controller says that it is suspended.
fn is_at_rest(job: &Value) -> bool {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let mut conditions = conditions.filter(|one| one["type"] == "Suspended");
    let never_started = job.pointer("/status/startTime").is_none_or(Value::is_null);
    let active = job.pointer("/status/active").and_then(Value::as_i64).unwrap_or_default();
    job.pointer("/spec/suspend") == Some(&Value::Bool(true))
        && (never_started || conditions.any(|one| one["status"] == "True"))
        && active == 0
}

/// Makes a field of `to` what it is in `from`.
fn take_over(to: &mut Value, from: &Value, field: &str) {
    let Some(to) = to.as_object_mut() else { return };
    match from.get(field).filter(|value| !value.is_null()) {
        Some(value) => to.insert(field.to_owned(), value.clone()),
        None => to.remove(field),
    };
}

fn job_spec(spec: &Value, path: &Path) -> Vec<FieldError> {
    let template = path.child("template").child("spec");
    let pod = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    let path = template.child("restartPolicy");
    if matches!(text(pod, &["restartPolicy"]), "" | "Always") {
        errors.push(FieldError::required(&path, "valid values: \"OnFailure\", \"Never\""));
    }
    errors
}

pub(super) fn cron_job(cron: &Value) -> Vec<FieldError> {
    let template = Path::new("spec").child("jobTemplate").child("spec");
    job_spec(cron.pointer("/spec/jobTemplate/spec").unwrap_or(&Value::Null), &template)
}

/// Pods that a controller of the old kind makes.
pub(super) fn replication_controller(controller: &Value) -> Vec<FieldError> {
    let path = Path::new("spec");
    let empty = Map::new();
    let spec = controller.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let selector = spec.get("selector").and_then(Value::as_object).unwrap_or(&empty);
    let mut errors = Vec::new();
    for field in ["replicas", "minReadySeconds"] {
        if let Some(number) = spec.get(field).and_then(Value::as_i64).filter(|number| *number < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&path.child(field), number, why));
        }
    }
    if selector.is_empty() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    let Some(template) = spec.get("template").and_then(Value::as_object) else {
        errors.push(FieldError::required(&path.child("template"), ""));
        return errors;
    };
    let at = path.child("template");
    let labels =
        template.get("metadata").and_then(|metadata| metadata.get("labels")).cloned().unwrap_or_default();
    let has = |(key, value): (&String, &Value)| labels.get(key) == Some(value);
    if !selector.is_empty() && !selector.iter().all(has) {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&at.child("metadata").child("labels"), labels.clone(), why));
    }
    let restart = template.get("spec").map_or("", |pod| text(pod, &["restartPolicy"]));
    if restart != "Always" {
        let path = at.child("spec").child("restartPolicy");
        errors.push(FieldError::not_supported(&path, restart, &["Always"]));
    }
    validate::lives_on(template, &at, "ReplicationController", &mut errors);
    errors
}

/// The first address of a Service is its own for good.
pub(super) fn service_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    let kind = |service: &Value| text(service, &["spec", "type"]).to_owned();
    let external = |service: &Value| kind(service) == "ExternalName";
    let field = |service: &Value, name: &str| text(service, &["spec", name]).to_owned();
    let path = Path::new("spec");
    let mut errors = Vec::new();
    if subresource == "status" {
        let ingress = new.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
        if ingress.is_some_and(|ingress| !ingress.is_empty()) && kind(new) != "LoadBalancer" {
            let path = Path::new("status").child("loadBalancer").child("ingress");
            errors.push(FieldError::forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'"));
        }
        return errors;
    }
    let (now, before) = (field(new, "clusterIP"), field(old, "clusterIP"));
    if !external(new) && !external(old) && !before.is_empty() && now != before {
        let path = path.child("clusterIPs").index(0);
        errors.push(FieldError::invalid(&path, json!([now]), "may not change once set"));
    }
    let balanced = |service: &Value| kind(service) == "LoadBalancer";
    let (class, was) = (field(new, "loadBalancerClass"), field(old, "loadBalancerClass"));
    if balanced(new) && balanced(old) && class != was {
        errors.push(FieldError::invalid(&path.child("loadBalancerClass"), class, "may not change once set"));
    }
    let health =
        |service: &Value| service.pointer("/spec/healthCheckNodePort").and_then(Value::as_i64).unwrap_or(0);
    let checks = |service: &Value| balanced(service) && field(service, "externalTrafficPolicy") == "Local";
    if checks(new) && checks(old) && health(new) != health(old) {
        errors.push(FieldError::forbidden(&path.child("healthCheckNodePort"), "field is immutable"));
    }
    errors
}
