//! Who may do what, what is admitted, and what goes first.

use super::check::in_go;
use super::{Object, flag, has, invalid, list, number, part, word};
use serde_json::Value;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn rule(rule: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let urls = list(rule, "nonResourceURLs");
    let about = |field: &str| !list(rule, field).is_empty();
    if !urls.is_empty() {
        if about("apiGroups") || about("resources") || about("resourceNames") {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(&path.child("nonResourceURLs"), urls.to_vec(), why));
        }
        return;
    }
    for (field, why) in [
        ("apiGroups", "resource rules must supply at least one api group"),
        ("resources", "resource rules must supply at least one resource"),
    ] {
        if !about(field) {
            errors.push(FieldError::required(&path.child(field), why));
        }
    }
}

pub(super) fn role(role: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for (index, rule) in list(role, "rules").iter().enumerate() {
        let urls = rule.as_object().map_or(&[][..], |rule| list(rule, "nonResourceURLs"));
        if !urls.is_empty() {
            let path = path.child("rules").index(index).child("nonResourceURLs");
            let why = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(&path, urls.to_vec(), why));
        }
    }
}

fn role_kind(binding: &Object, known: &[&str], path: &Path, errors: &mut Vec<FieldError>) {
    let kind = part(binding, "roleRef").map_or("", |role| word(role, "kind"));
    if !known.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("roleRef").child("kind"), kind, known));
    }
}

pub(super) fn binding(binding: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    role_kind(binding, &["Role", "ClusterRole"], path, errors);
}

pub(super) fn cluster_binding(binding: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    role_kind(binding, &["ClusterRole"], path, errors);
    for (index, subject) in list(binding, "subjects").iter().filter_map(Value::as_object).enumerate() {
        if word(subject, "kind") == "ServiceAccount" && word(subject, "namespace").is_empty() {
            let path = path.child("subjects").index(index).child("namespace");
            errors.push(FieldError::required(&path, ""));
        }
    }
}

pub(super) fn subject(subject: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (name, group) = (word(subject, "name"), word(subject, "apiGroup"));
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let wanted = match word(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                invalid(errors, &path.child("name"), name, names::subdomain(name));
            }
            ""
        }
        "User" | "Group" => RBAC,
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&path.child("kind"), other, &known));
            return;
        }
    };
    if group != wanted {
        errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[wanted]));
    }
}

pub(super) fn priority(class: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let name = part(class, "metadata").map_or("", |metadata| word(metadata, "name"));
    let value = number(class, "value").unwrap_or(0);
    if name.starts_with("system-") {
        let known = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
        if !known.contains(&(name, value)) {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known \
                 system priority class"
            );
            errors.push(FieldError::forbidden(&Path::new("metadata").child("name"), why));
        }
    } else if value > 1_000_000_000 {
        let why = "maximum allowed value of a user defined priority is 1000000000";
        errors.push(FieldError::forbidden(&path.child("value"), why));
    }
}

pub(super) fn level(level: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 2] = ["Exempt", "Limited"];
    let Some(spec) = part(level, "spec") else { return };
    let (kind, path) = (word(spec, "type"), path.child("spec"));
    let name = part(level, "metadata").map_or("", |metadata| word(metadata, "name"));
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), ""));
        return;
    }
    if (name == "exempt") != (kind == "Exempt") && KNOWN.contains(&kind) {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(&path.child("type"), kind, why));
    }
    match kind {
        "Exempt" if has(spec, "limited") => {
            errors.push(FieldError::forbidden(
                &path.child("limited"),
                "must be nil if the type is not Limited",
            ));
        }
        "Limited" if has(spec, "exempt") => {
            errors.push(FieldError::forbidden(&path.child("exempt"), "must be nil if the type is Limited"));
        }
        "Limited" if !has(spec, "limited") => {
            errors
                .push(FieldError::required(&path.child("limited"), "must not be empty when type is Limited"));
        }
        "Exempt" | "Limited" => {}
        other => errors.push(FieldError::not_supported(&path.child("type"), other, &KNOWN)),
    }
}

pub(super) fn queuing(queuing: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (hand, queues) = (number(queuing, "handSize").unwrap_or(0), number(queuing, "queues").unwrap_or(0));
    if hand > queues {
        let why = format!("should not be greater than queues ({queues})");
        errors.push(FieldError::invalid(&path.child("handSize"), hand, why));
    }
}

pub(super) fn limit_response(response: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    match word(response, "type") {
        "" => errors.push(FieldError::required(&path.child("type"), "")),
        "Queue" | "Reject" => {}
        other => errors.push(FieldError::not_supported(&path.child("type"), other, &["Queue", "Reject"])),
    }
}

pub(super) fn flow(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(place) = number(spec, "matchingPrecedence").filter(|place| *place > 10000) {
        errors.push(FieldError::invalid(
            &path.child("matchingPrecedence"),
            place,
            "must not be greater than 10000",
        ));
    }
    if let Some(method) = part(spec, "distinguisherMethod") {
        let kind = word(method, "type");
        if !matches!(kind, "ByNamespace" | "ByUser") {
            let path = path.child("distinguisherMethod").child("type");
            let error = FieldError::not_supported(&path, kind, &["ByNamespace", "ByUser"]);
            errors.push(error.showing(in_go(method, &[("Type", "type")])));
        }
    }
}

pub(super) fn flow_rules(rules: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if list(rules, "resourceRules").is_empty() && list(rules, "nonResourceRules").is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, why));
    }
}

pub(super) fn api_service(service: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(spec) = part(service, "spec") else { return };
    let name = part(service, "metadata").map_or("", |metadata| word(metadata, "name"));
    let wanted = format!("{}.{}", word(spec, "version"), word(spec, "group"));
    if name != wanted {
        let why = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        errors.push(FieldError::invalid(&Path::new("metadata").child("name"), name, why));
    }
    let prefix = part(service, "metadata").map_or("", |metadata| word(metadata, "generateName"));
    if !prefix.is_empty() && prefix != wanted {
        let why = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        errors.push(FieldError::invalid(&Path::new("metadata").child("generateName"), prefix, why));
    }
    let (group, version) = (word(spec, "group"), word(spec, "version"));
    let at = path.child("spec");
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&at.child("group"), why));
    }
    invalid(errors, &at.child("version"), version, names::label_1035(version));
    let skips = flag(spec, "insecureSkipTLSVerify");
    let bundled = !word(spec, "caBundle").is_empty();
    let why = match part(spec, "service") {
        None => "local APIServices may not have insecureSkipTLSVerify",
        Some(service) => {
            for field in ["namespace", "name"] {
                if word(service, field).is_empty() {
                    errors.push(FieldError::required(&at.child("service").child(field), ""));
                }
            }
            let port = number(service, "port").unwrap_or(443);
            if !(1..=65535).contains(&port) {
                let why = "port is not valid: must be between 1 and 65535, inclusive";
                errors.push(FieldError::invalid(&at.child("service").child("port"), port, why));
            }
            "may not be true if caBundle is present"
        }
    };
    if skips && (bundled || !has(spec, "service")) {
        errors.push(FieldError::invalid(&at.child("insecureSkipTLSVerify"), true, why));
    }
    for (field, most) in [("groupPriorityMinimum", 20000), ("versionPriority", 1000)] {
        let given = number(spec, field).unwrap_or(0);
        if given <= 0 || given > most {
            let why = format!("must be positive and less than {most}");
            errors.push(FieldError::invalid(&path.child("spec").child(field), given, why));
        }
    }
}
