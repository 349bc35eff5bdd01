//! What a kind is asked beside what its structs are: selectors that find pods again, and what may not change.

use super::text;
use super::validate::{self, matches};
use super::workload_status;
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

/// Does an expression say nothing that can be asked of labels?
fn is_no_requirement(expression: &Value) -> bool {
    let values = items(expression, "values").count();
    let fits = match text(expression, &["operator"]) {
        "In" | "NotIn" => values > 0,
        "Exists" | "DoesNotExist" => values == 0,
        _ => false,
    };
    !fits || !windlass_schema::names::qualified(text(expression, &["key"])).is_empty()
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
    let is_odd = selector.is_some_and(|selector| items(selector, "matchExpressions").any(is_no_requirement));
    let selects = match selector {
        Some(selector) if is_odd => {
            let part = |field: &str| selector.get(field).map(|value| format!("\"{field}\":{value}"));
            let shown: Vec<String> =
                ["matchLabels", "matchExpressions"].into_iter().filter_map(part).collect();
            let why = match kind {
                "statefulset" => "",
                _ => "invalid label selector",
            };
            if kind != "daemonset" {
                let error = FieldError::invalid(&path.child("selector"), "", why);
                errors.push(error.showing(format!("{{{}}}", shown.join(","))));
            }
            true
        }
        None => {
            if kind != "daemonset" {
                errors.push(FieldError::required(&path.child("selector"), ""));
            }
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

/// What an update asks again, or what it asks of the status.
pub(super) fn deployment_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    if subresource == "status" { workload_status::DEPLOYMENT.check(new, old) } else { deployment(new) }
}

pub(super) fn replica_set_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    if subresource == "status" { workload_status::CONTROLLER.check(new, old) } else { replica_set(new) }
}

pub(super) fn daemon_set_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    if subresource == "status" { workload_status::DAEMON_SET.check(new, old) } else { daemon_set(new) }
}

pub(super) fn replication_controller_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    if subresource == "status" { workload_status::CONTROLLER.check(new, old) } else { Vec::new() }
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
        return workload_status::STATEFUL_SET.check(new, old);
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
    let mut errors = generated_selector(job);
    errors.extend(job_pods(job));
    errors
}

/// The labels and the selector that a job was given are its own, unless it was told another way.
fn generated_selector(job: &Value) -> Vec<FieldError> {
    let selector = job.pointer("/spec/selector").filter(|selector| !selector.is_null());
    let Some(selector) = selector.filter(|_| job.pointer("/spec/manualSelector") != Some(&json!(true)))
    else {
        return Vec::new();
    };
    let (uid, name) = (text(job, &["metadata", "uid"]), text(job, &["metadata", "name"]));
    let empty = Map::new();
    let labels = job.pointer("/spec/template/metadata/labels").and_then(Value::as_object).unwrap_or(&empty);
    let path = Path::new("spec").child("template").child("metadata").child("labels");
    let (mut errors, mut expected) = (Vec::new(), Map::new());
    for (label, wanted) in [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ] {
        let why = format!("must be '{wanted}'");
        match labels.get(label).and_then(Value::as_str) {
            None => errors.push(FieldError::required(&path.key(label), why)),
            Some(given) if given != wanted => {
                errors.push(FieldError::invalid(&path.key(label), json!(labels), why));
            }
            Some(_) => {}
        }
        expected.insert(label.to_owned(), json!(wanted));
    }
    if !items(selector, "matchExpressions").any(is_no_requirement) && !matches(selector, &expected) {
        let path = Path::new("spec").child("selector");
        let error = FieldError::invalid(&path, selector.clone(), "`selector` not auto-generated");
        errors.push(error.showing(super::go_format::selector(selector)));
    }
    errors
}

fn job_pods(job: &Value) -> Vec<FieldError> {
    let spec = job.get("spec").unwrap_or(&Value::Null);
    let mut errors = job_spec(spec, &Path::new("spec"));
    let labels = spec.pointer("/template/metadata/labels").cloned().unwrap_or_default();
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    if selector.is_none() {
        errors.push(FieldError::required(&Path::new("spec").child("selector"), ""));
    }
    if !selector.is_some_and(|selector| matches(selector, labels.as_object().unwrap_or(&Map::new()))) {
        let path = Path::new("spec").child("template").child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, labels, "`selector` does not match template `labels`"));
    }
    errors
}

/// How many pods a job completes changes only together with how many run at once.
pub(super) fn job_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    if subresource == "status" {
        return workload_status::job(new, old);
    }
    // The reference looks at its pods twice.
    let mut errors = generated_selector(new);
    errors.extend(job_pods(new));
    errors.extend(job_pods(new));
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
    let spec = cron.pointer("/spec/jobTemplate/spec").unwrap_or(&Value::Null);
    let mut errors = job_spec(spec, &template);
    if let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) {
        let why = "`selector` will be auto-generated";
        let error = FieldError::invalid(&template.child("selector"), selector.clone(), why);
        errors.push(error.showing(super::go_format::selector(selector)));
    }
    if spec.get("manualSelector") == Some(&json!(true)) {
        let path = template.child("manualSelector");
        errors.push(FieldError::not_supported(&path, true, &["nil", "false"]));
    }
    errors
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

/// The addresses of a Service agree with each other, and with its families; there is one family.
fn service_addresses(service: &Value, old: &Value) -> Vec<FieldError> {
    let path = Path::new("spec");
    let (list, shown) = (path.child("clusterIPs"), service["spec"]["clusterIPs"].clone());
    let texts = |field: &str| -> Vec<&str> {
        let values = service["spec"].get(field).and_then(Value::as_array).into_iter().flatten();
        values.filter_map(Value::as_str).collect()
    };
    let (addresses, families) = (texts("clusterIPs"), texts("ipFamilies"));
    let mut errors = Vec::new();
    let headless = text(service, &["spec", "clusterIP"]) == "None" || addresses.contains(&"None");
    if !headless && text(service, &["spec", "ipFamilyPolicy"]) == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(&path.child("ipFamilyPolicy"), "RequireDualStack", why));
    }
    for (index, family) in
        families.iter().enumerate().filter(|(index, family)| families[..*index].contains(family))
    {
        errors.push(FieldError::duplicate(&path.child("ipFamilies").index(index), *family));
    }
    // The address that has a field of its own is taken into a list that stays as it was.
    if service["spec"].get("clusterIPs") != old["spec"].get("clusterIPs")
        && addresses.first().is_some_and(|first| *first != text(service, &["spec", "clusterIP"]))
    {
        errors.push(FieldError::invalid(&list, shown.clone(), "first value must match `clusterIP`"));
    }
    if addresses.contains(&"None") {
        if addresses.len() > 1 {
            let why = "'None' must be the first and only value";
            errors.push(FieldError::invalid(&list, shown, why));
        }
        return errors;
    }
    let of_v6 = addresses.iter().filter(|address| address.contains(':')).count();
    if addresses.len() > 1 && (addresses.len() > 2 || of_v6 != 1) {
        let why = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(&list, shown, why));
    }
    for (index, (address, family)) in addresses.iter().zip(&families).enumerate() {
        if address.contains(':') != (*family == "IPv6") {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.push(FieldError::invalid(&list.index(index), *address, why));
        }
    }
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
    if !external(new) {
        errors.extend(service_addresses(new, old));
    }
    let balanced = |service: &Value| kind(service) == "LoadBalancer";
    if !balanced(new) && !field(new, "loadBalancerClass").is_empty() {
        // Looked at a second time.
        let why = "may only be used when `type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden(&path.child("loadBalancerClass"), why));
    }
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
