//! Webhook configurations: whom they ask, about what, and how.

use super::check::Check;
use super::{Object, has, invalid, list, number, part, parts, word};
use crate::kinds::match_conditions::check_condition;
use serde_json::Value;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

/// The number of match conditions that a webhook may have.
const MOST_CONDITIONS: usize = 64;

pub(super) fn webhook(hook: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let name = word(hook, "name");
    let at = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        invalid(errors, &at, name, names::subdomain(name));
        if name.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(&at, name, why));
        }
    }
    let (versions, at) = (list(hook, "admissionReviewVersions"), path.child("admissionReviewVersions"));
    if versions.is_empty() {
        errors.push(FieldError::required(&at, "must specify one of v1, v1beta1"));
    } else if !versions.iter().any(|version| matches!(version.as_str(), Some("v1" | "v1beta1"))) {
        errors.push(FieldError::invalid(&at, versions.to_vec(), "must include at least one of v1, v1beta1"));
    }
    let mut seen = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        if seen.contains(&version) {
            errors.push(FieldError::invalid(&at.index(index), version.clone(), "duplicate version"));
            continue;
        }
        seen.push(version);
        let version = version.as_str().unwrap_or_default();
        invalid(errors, &at.index(index), version, names::label_1035(version));
    }
    match word(hook, "sideEffects") {
        "" => errors
            .push(FieldError::required(&path.child("sideEffects"), "must specify one of None, NoneOnDryRun")),
        effects => {
            let known = ["None", "NoneOnDryRun"];
            if !known.contains(&effects) {
                errors.push(FieldError::not_supported(&path.child("sideEffects"), effects, &known));
            }
        }
    }
    for (field, known) in [
        ("failurePolicy", &["Fail", "Ignore"]),
        ("matchPolicy", &["Equivalent", "Exact"]),
        ("reinvocationPolicy", &["IfNeeded", "Never"]),
    ] {
        Check::OneOf(known).judge(hook.get(field).unwrap_or(&Value::Null), &path.child(field), errors);
    }
    if let Some(seconds) = number(hook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, why));
    }
    let empty = Object::new();
    place(part(hook, "clientConfig").unwrap_or(&empty), &path.child("clientConfig"), errors);
    conditions(hook, &path.child("matchConditions"), check_condition, errors);
}

/// Match conditions have names of their own, and compile.
pub(super) fn conditions(
    hook: &Object,
    path: &Path,
    check: impl Fn(&str) -> Result<(), String>,
    errors: &mut Vec<FieldError>,
) {
    let given = list(hook, "matchConditions");
    if given.len() > MOST_CONDITIONS {
        errors.push(FieldError::too_many(path, given.len(), MOST_CONDITIONS));
    }
    let mut seen = Vec::new();
    for (index, condition) in given.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(index);
        let expression = word(condition, "expression").trim();
        let at = path.child("expression");
        if expression.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if let Err(why) = check(expression) {
            errors.push(FieldError::invalid(&at, expression, why));
        }
        let (name, at) = (word(condition, "name"), path.child("name"));
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        invalid(errors, &at, name, names::qualified(name));
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&at, name));
        }
        seen.push(name);
    }
}

/// Webhooks of one configuration have names of their own.
pub(super) fn webhooks(configuration: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let mut seen = Vec::new();
    for (hook, path) in parts(configuration, "webhooks", path) {
        let name = word(hook, "name");
        if !name.is_empty() && seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        seen.push(name);
    }
}

fn place(config: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if has(config, "url") == has(config, "service") {
        errors.push(FieldError::required(path, "exactly one of url or service is required"));
        return;
    }
    if let Some(given) = config.get("url").and_then(Value::as_str) {
        url(given, &path.child("url"), errors);
    }
    if let Some(given) = part(config, "service") {
        service(given, &path.child("service"), errors);
    }
}

fn url(given: &str, path: &Path, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (rest, fragment) = given.split_once('#').unwrap_or((given, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, scheme, why));
    }
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if host.is_empty() {
        errors.push(FieldError::invalid(path, "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        errors.push(FieldError::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        errors.push(FieldError::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        errors.push(FieldError::invalid(path, query, "query parameters are not permitted in the URL"));
    }
}

fn service(given: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    // The reference takes the one for the other.
    for (field, told) in [("namespace", "name"), ("name", "namespace")] {
        if word(given, field).is_empty() {
            errors.push(FieldError::required(&path.child(told), ""));
        }
    }
    if let Some(port) = number(given, "port").filter(|port| !(1..=65535).contains(port)) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), port, why));
    }
    let (given, path) = (word(given, "path"), path.child("path"));
    if matches!(given, "" | "/") {
        return;
    }
    if given == "//" {
        errors.push(FieldError::invalid(&path, given, "segment[0] may not be empty"));
        return;
    }
    if !given.starts_with('/') {
        errors.push(FieldError::invalid(&path, given, "must start with a '/'"));
    }
    let mut characters = given.chars();
    characters.next();
    let rest = characters.as_str();
    for (index, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            errors.push(FieldError::invalid(&path, given, format!("segment[{index}] may not be empty")));
            continue;
        }
        for why in names::subdomain(step) {
            errors.push(FieldError::invalid(&path, given, format!("segment[{index}]: {why}")));
        }
    }
}

fn all_or_some(rule: &Object, field: &str, what: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let given = list(rule, field);
    if given.len() > 1 && given.iter().any(|item| item.as_str() == Some("*")) {
        let why = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(&path.child(field), given.to_vec(), why));
    }
}

pub(super) fn hook_rule(rule: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    all_or_some(rule, "apiGroups", "API groups", path, errors);
    all_or_some(rule, "apiVersions", "API versions", path, errors);
    for (index, version) in list(rule, "apiVersions").iter().enumerate() {
        if version.as_str() == Some("") {
            errors.push(FieldError::required(&path.child("apiVersions").index(index), ""));
        }
    }
    resources(list(rule, "resources"), &path.child("resources"), errors);
}

/// Resources and subresources: what stands for many is not beside what it stands for.
fn resources(given: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    let (mut of, mut under) = (Vec::new(), Vec::new());
    let mut plain = false;
    for (index, item) in given.iter().enumerate() {
        let written = item.as_str().unwrap_or_default();
        let path = path.index(index);
        if written.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let Some((resource, part)) = written.split_once('/') else {
            plain = written != "*";
            continue;
        };
        if of.contains(&resource) {
            let why = format!("if '{resource}/*' is present, must not specify {written}");
            errors.push(FieldError::invalid(&path, written, why));
        }
        if under.contains(&part) {
            let why = format!("if '*/{part}' is present, must not specify {written}");
            errors.push(FieldError::invalid(&path, written, why));
        }
        if part == "*" {
            of.push(resource);
        }
        if resource == "*" {
            under.push(part);
        }
    }
    let has = |wanted: &str| given.iter().any(|item| item.as_str() == Some(wanted));
    if given.len() > 1 && has("*/*") {
        let why = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, given.to_vec(), why));
    }
    if has("*") && plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, given.to_vec(), why));
    }
}

pub(super) fn hook_operations(rule: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    all_or_some(rule, "operations", "operations", path, errors);
}
