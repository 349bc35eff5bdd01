//! Containers: variables, probes, hooks, resources.

use super::check::{Check, NEGATIVE};
use super::{Object, flag, has, invalid, list, number, part, parts, word};
use crate::kinds::resources::quantity;
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

/// Keys of ConfigMaps and Secrets.
pub(super) fn config_key(key: &str) -> Vec<String> {
    crate::kinds::config_key(key)
}

pub(super) fn container(container: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let name = word(container, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else {
        invalid(errors, &path.child("name"), name, names::label(name));
    }
    let image = word(container, "image");
    if image.trim() != image {
        errors.push(FieldError::invalid(
            &path.child("image"),
            image,
            "must not have leading or trailing whitespace",
        ));
    }
    for (field, known) in [
        ("imagePullPolicy", &["Always", "IfNotPresent", "Never"][..]),
        ("terminationMessagePolicy", &["File", "FallbackToLogsOnError"][..]),
    ] {
        Check::OneOf(known).judge(container.get(field).unwrap_or(&Value::Null), &path.child(field), errors);
    }
    restarts(container, path, errors);
    sources(container, path, errors);
    ports(container, path, errors);
    for (policy, _) in parts(container, "resizePolicy", path) {
        let path = path.child("resizePolicy");
        for (field, known) in
            [("resourceName", &["cpu", "memory"]), ("restartPolicy", &["NotRequired", "RestartContainer"])]
        {
            Check::OneOf(known).judge(policy.get(field).unwrap_or(&Value::Null), &path, errors);
        }
    }
    for (field, succeeds_once) in [("livenessProbe", true), ("startupProbe", true), ("readinessProbe", false)]
    {
        if let Some(probe) = part(container, field) {
            let path = path.child(field);
            if let Some(times) =
                number(probe, "successThreshold").filter(|times| succeeds_once && *times != 1)
            {
                errors.push(FieldError::invalid(&path.child("successThreshold"), times, "must be 1"));
            }
            if let Some(seconds) = number(probe, "terminationGracePeriodSeconds") {
                let path = path.child("terminationGracePeriodSeconds");
                if !succeeds_once {
                    errors.push(FieldError::invalid(&path, seconds, "must not be set for readinessProbes"));
                } else if seconds <= 0 {
                    errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
                }
            }
        }
    }
    if let Some(resources) = part(container, "resources") {
        self::resources(resources, &path.child("resources"), errors);
    }
}

fn sources(container: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for (source, _) in parts(container, "envFrom", path) {
        let path = path.child("envFrom");
        match (has(source, "configMapRef"), has(source, "secretRef")) {
            (false, false) => {
                let why = "must specify one of: `configMapRef` or `secretRef`";
                errors.push(FieldError::invalid(&path, "", why));
            }
            (true, true) => {
                errors.push(FieldError::invalid(
                    &path,
                    "",
                    "may not have more than one field specified at a time",
                ));
            }
            _ => {}
        }
    }
}

fn ports(container: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (port, path) in parts(container, "ports", path) {
        let name = word(port, "name");
        if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
}

pub(super) fn port(port: &Object, above: &Path, errors: &mut Vec<FieldError>) {
    let path = above.child("containerPort");
    match number(port, "containerPort").unwrap_or(0) {
        0 => errors.push(FieldError::required(&path, "")),
        given => Check::Range(1, 65535).judge(&given.into(), &path, errors),
    }
    if let Some(host) = number(port, "hostPort").filter(|host| *host != 0) {
        Check::Range(1, 65535).judge(&host.into(), &above.child("hostPort"), errors);
    }
}

pub(super) fn variable(variable: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let name = word(variable, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else if name.contains('=') || !name.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        errors.push(FieldError::invalid(&path.child("name"), name, why));
    }
    let Some(from) = part(variable, "valueFrom") else { return };
    const SOURCES: [&str; 5] =
        ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let count = SOURCES.iter().filter(|source| has(from, source)).count();
    let why = if count == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    } else if !word(variable, "value").is_empty() {
        "may not be specified when `value` is not empty"
    } else if count > 1 {
        "may not have more than one field specified at a time"
    } else {
        return of_field(from, path, errors);
    };
    errors.push(FieldError::invalid(&path.child("valueFrom"), "", why));
}

/// Fields that a variable can show.
const FIELDS: [&str; 12] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.restartPolicy",
];

fn of_field(from: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(field) = part(from, "fieldRef") else { return };
    let path = path.child("valueFrom").child("fieldRef").child("fieldPath");
    let given = word(field, "fieldPath");
    let plain = given.split('[').next().unwrap_or_default();
    let why = if word(field, "apiVersion") != "v1" {
        format!("error converting fieldPath: unsupported pod version: {}", word(field, "apiVersion"))
    } else if !given.is_empty() && !FIELDS.contains(&plain) {
        format!("error converting fieldPath: field label not supported: {given}")
    } else {
        return;
    };
    errors.push(FieldError::invalid(&path, given, why));
}

pub(super) fn field_selector(selector: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if word(selector, "fieldPath").is_empty() {
        errors.push(FieldError::required(&path.child("fieldPath"), ""));
    }
}

pub(super) fn resource_selector(selector: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let resource = word(selector, "resource");
    if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
        return;
    }
    if !KNOWN.contains(&resource) && !resource.contains("hugepages-") {
        errors.push(FieldError::not_supported(&path.child("resource"), resource, &KNOWN));
        return;
    }
    let divisor = word(selector, "divisor");
    if matches!(divisor, "" | "0") {
        return;
    }
    let (known, shown): (&[&str], &str) = if resource.ends_with("cpu") {
        (&["1m", "1"], "only divisor's values 1m and 1 are supported with the cpu resource")
    } else {
        const BYTES: &[&str] =
            &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
        let why = if resource.ends_with("memory") {
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory \
             resource"
        } else {
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the local \
             ephemeral storage resource"
        };
        (BYTES, why)
    };
    if !known.contains(&divisor) {
        errors.push(FieldError::invalid(&path.child("divisor"), resource, shown));
    }
}

/// What is done in a probe or a hook: one thing.
fn handler(handler: &Object, kinds: &[&str], path: &Path, errors: &mut Vec<FieldError>) {
    let mut given = kinds.iter().filter(|kind| has(handler, kind));
    if given.next().is_none() {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
    for more in given {
        errors.push(FieldError::forbidden(&path.child(more), "may not specify more than 1 handler type"));
    }
}

pub(super) fn probe(probe: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], path, errors);
}

pub(super) fn lifecycle(lifecycle: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for field in ["postStart", "preStop"] {
        if let Some(hook) = part(lifecycle, field) {
            handler(hook, &["exec", "httpGet", "tcpSocket", "sleep"], &path.child(field), errors);
        }
    }
}

pub(super) fn http_get(get: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for header in list(get, "httpHeaders").iter().filter_map(Value::as_object) {
        let name = word(header, "name");
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            let why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used \
                       for validation is '[-A-Za-z0-9]+')";
            errors.push(FieldError::invalid(&path.child("httpHeaders"), name, why));
        }
    }
}

/// Resources that containers have without anyone defining them.
pub(super) fn is_standard(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-")
}

/// Is it an extended resource, or a counted one such as `count/jobs.batch`, which Kubernetes takes for one?
pub(super) fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

/// What is wrong with the name of a resource, where only those for containers or for `what` are known.
pub(crate) fn names_resource(name: &str, is_known: bool, what: &str) -> Vec<String> {
    let mut wrong = names::qualified(name);
    if !wrong.is_empty() {
        return wrong;
    }
    if !name.contains('/') && !is_known {
        wrong.push("must be a standard resource type or fully qualified".to_owned());
        wrong.push(format!("must be a standard resource for {what}"));
    }
    wrong
}

fn resources(resources: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let side = |side: &str| part(resources, side);
    for field in ["limits", "requests"] {
        let path = path.child(field);
        for (name, amount) in side(field).into_iter().flatten() {
            let path = path.key(name);
            let wrong = names_resource(name, is_standard(name), "containers");
            if name.contains('/') && !wrong.is_empty() {
                let why = "doesn't follow extended resource name standard";
                errors.push(FieldError::invalid(&path, name.as_str(), why));
            }
            invalid(errors, &path, name.as_str(), wrong);
            let Some(given) = quantity(amount) else { continue };
            if given.is_negative() {
                errors.push(FieldError::invalid(&path, amount.clone(), NEGATIVE));
            }
            if is_extended(name) && !given.is_integer() {
                errors.push(FieldError::invalid(&path, amount.clone(), "must be an integer"));
            }
        }
    }
    let get = |field: &str, name: &str| side(field).and_then(|amounts| amounts.get(name));
    for (name, request) in side("requests").into_iter().flatten() {
        let fixed = name.contains('/') || name.starts_with("hugepages-");
        let limit = get("limits", name);
        let (Some(asked), Some(most)) = (quantity(request), limit.and_then(quantity)) else {
            if fixed && limit.is_none() {
                let why = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(&path.child("limits"), why));
            }
            continue;
        };
        let path = path.child("requests");
        if fixed && asked != most {
            let why = format!("must be equal to {name} limit of {most}");
            errors.push(FieldError::invalid(&path, request.clone(), why));
        } else if !fixed && asked > most {
            let why = format!("must be less than or equal to {name} limit of {most}");
            errors.push(FieldError::invalid(&path, request.clone(), why));
        }
    }
    let any = |wanted: &dyn Fn(&str) -> bool| {
        ["limits", "requests"]
            .iter()
            .any(|field| side(field).is_some_and(|map| map.keys().any(|name| wanted(name))))
    };
    if any(&|name| name.starts_with("hugepages-")) && !any(&|name| matches!(name, "cpu" | "memory")) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}

/// When a container is started again.
fn restarts(container: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let rules = list(container, "restartPolicyRules");
    let at = path.child("restartPolicy");
    match container.get("restartPolicy").and_then(Value::as_str) {
        None if !rules.is_empty() => {
            let why = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(&at, why));
        }
        Some(policy) => {
            Check::OneOf(&["Always", "Never", "OnFailure"]).judge(&policy.into(), &at, errors);
        }
        None => {}
    }
    for (rule, path) in parts(container, "restartPolicyRules", path) {
        let action = rule.get("action").cloned().unwrap_or_else(|| "".into());
        Check::OneOf(&["Restart", "RestartAllContainers"]).judge(&action, &path.child("action"), errors);
        let path = path.child("exitCodes");
        match part(rule, "exitCodes") {
            None => errors.push(FieldError::required(&path, "must be specified")),
            Some(codes) => {
                let operator = codes.get("operator").cloned().unwrap_or_else(|| "".into());
                Check::OneOf(&["In", "NotIn"]).judge(&operator, &path.child("operator"), errors);
            }
        }
    }
}

/// What a pod uses beside its containers.
pub(super) fn overhead(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(overhead) = spec.get("overhead") {
        let limits = Object::from_iter([("limits".to_owned(), overhead.clone())]);
        resources(&limits, &path.child("overhead"), errors);
    }
}

/// Containers that prepare a pod are done before it runs.
pub(super) fn prepares(container: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if word(container, "restartPolicy") == "Always" {
        return;
    }
    let why = "may not be set for init containers without restartPolicy=Always";
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if has(container, field) {
            errors.push(FieldError::forbidden(&path.child(field), why));
        }
    }
}

/// A hook that sleeps wakes before the pod is killed.
pub(super) fn sleeps(container: &Object, grace: i64, path: &Path, errors: &mut Vec<FieldError>) {
    for field in ["postStart", "preStop"] {
        let hook = part(container, "lifecycle").and_then(|lifecycle| part(lifecycle, field));
        if let Some(sleep) = hook.and_then(|hook| part(hook, "sleep")) {
            let seconds = number(sleep, "seconds").unwrap_or(0);
            if seconds < 0 || seconds > grace {
                let path = path.child("lifecycle").child(field).child("sleep");
                let why =
                    format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                errors.push(FieldError::invalid(&path, seconds, why));
            }
        }
    }
}

/// The host's network has one port of each number.
pub(super) fn shares_network(container: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for (port, path) in parts(container, "ports", path) {
        let (own, host) = (number(port, "containerPort"), number(port, "hostPort"));
        if let Some(host) = host.filter(|host| *host != 0 && Some(*host) != own) {
            let why = "must match `containerPort` when `hostNetwork` is true";
            errors.push(FieldError::invalid(&path.child("hostPort"), host, why));
        }
    }
}

/// Does it ask for what only the privileged may?
pub(super) fn is_privileged(container: &Object) -> bool {
    part(container, "securityContext").is_some_and(|context| flag(context, "privileged"))
}
