//! Admission policies and their bindings: what they are about, and that their expressions compile.

use super::check::is_empty;
use super::{Object, has, invalid, list, part, parts, webhooks, word};
use crate::kinds::policy_expressions::{Compiler, Wanted};
use serde_json::Value;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;
use windlass_schema::{Composition, is_cel_identifier};

/// The number of audit annotations that a policy may have, and how long the expression of one may be.
const MOST_ANNOTATIONS: usize = 20;
const LONGEST_ANNOTATION: usize = 5 * 1024;

/// What a policy is about must be known.
fn constraints(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let path = path.child("matchConstraints");
    match part(spec, "matchConstraints") {
        None => errors.push(FieldError::required(&path, "")),
        Some(matched) if list(matched, "resourceRules").is_empty() => {
            errors.push(FieldError::required(&path.child("resourceRules"), ""));
        }
        Some(_) => {}
    }
}

pub(super) fn mutating_policy(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    constraints(spec, path, errors);
    let matched = part(spec, "matchConstraints").map_or(&[][..], |matched| list(matched, "resourceRules"));
    operations(matched, &path.child("matchConstraints"), errors);
    expressions(spec, path, true, errors);
    if list(spec, "mutations").is_empty() {
        let why = "mutations must contain at least one item";
        errors.push(FieldError::required(&path.child("mutations"), why));
    }
    match word(spec, "reinvocationPolicy") {
        "" => errors.push(FieldError::required(&path.child("reinvocationPolicy"), "")),
        "IfNeeded" | "Never" => {}
        other => {
            let path = path.child("reinvocationPolicy");
            errors.push(FieldError::not_supported(&path, other, &["IfNeeded", "Never"]));
        }
    }
}

pub(super) fn mutation(mutation: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let kinds = [("JSONPatch", "jsonPatch"), ("ApplyConfiguration", "applyConfiguration")];
    let given = word(mutation, "patchType");
    let at = path.child("patchType");
    if given.is_empty() {
        errors.push(FieldError::required(&at, ""));
        return;
    }
    if !kinds.iter().any(|(kind, _)| *kind == given) {
        errors.push(FieldError::not_supported(&at, given, &["ApplyConfiguration", "JSONPatch"]));
        return;
    }
    for (kind, field) in kinds {
        match (kind == given, has(mutation, field)) {
            (true, false) => {
                let why = format!("must be specified when patchType is {given}");
                errors.push(FieldError::required(&path.child(field), why));
            }
            (false, true) => {
                let why = format!("must not be specified when patchType is {given}");
                errors.push(FieldError::invalid(&path.child(field), format!("{{{field}}}"), why));
            }
            _ => {}
        }
    }
}

pub(super) fn admission_policy(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    constraints(spec, path, errors);
    let missing = |field: &str| is_empty(spec.get(field).unwrap_or(&Value::Null));
    if missing("validations") && missing("auditAnnotations") {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.extend(
            ["validations", "auditAnnotations"].map(|field| FieldError::required(&path.child(field), why)),
        );
    }
}

pub(super) fn admission_binding(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let actions = list(spec, "validationActions");
    for (index, action) in actions.iter().enumerate() {
        if actions[..index].contains(action) {
            let path = path.child("validationActions").index(index);
            errors.push(FieldError::duplicate(&path, action.clone()));
        }
    }
    let has = |action: &str| actions.iter().any(|given| given.as_str() == Some(action));
    if has("Deny") && has("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response \
                   and headers serves no purpose)";
        errors.push(FieldError::invalid(&path.child("validationActions"), actions.to_vec(), why));
    }
}

/// The match conditions, variables and mutations of a policy; a validating one has its own beside them. Without variables a
/// policy that validates knows of none.
fn expressions(spec: &Object, path: &Path, composes: bool, errors: &mut Vec<FieldError>) -> Compiler {
    let params = has(spec, "paramKind");
    let plain = Compiler { params, variables: None };
    let check = |expression: &str| plain.compile(expression, Wanted::Bool, true).map(drop);
    webhooks::conditions(spec, &path.child("matchConditions"), check, errors);
    let composes = composes || !list(spec, "variables").is_empty();
    let mut compiler = Compiler { params, variables: composes.then(Composition::default) };
    for (variable, path) in parts(spec, "variables", path) {
        let (name, at) = (word(variable, "name"), path.child("name"));
        if name.trim().is_empty() {
            errors.push(FieldError::required(&at, "name is not specified"));
        } else if !is_cel_identifier(name) {
            errors.push(FieldError::invalid(&at, name, "must be a valid CEL identifier"));
        }
        let (expression, at) = (word(variable, "expression"), path.child("expression"));
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&at, "expression is not specified"));
        } else if let Err(why) = compiler.add_variable(name, expression) {
            errors.push(FieldError::invalid(&at, expression, why));
        }
    }
    for (mutation, path) in parts(spec, "mutations", path) {
        let (field, wanted) = match word(mutation, "patchType") {
            "JSONPatch" => ("jsonPatch", Wanted::Patches),
            "ApplyConfiguration" => ("applyConfiguration", Wanted::Object),
            _ => continue,
        };
        let Some(patch) = part(mutation, field) else { continue };
        let (expression, at) = (word(patch, "expression").trim(), path.child(field).child("expression"));
        if expression.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if let Err(why) = compiler.compile(expression, wanted, true) {
            errors.push(FieldError::invalid(&at, expression, why));
        }
    }
    compiler
}

/// The validations and audit annotations of a policy.
pub(super) fn validating_policy(policy: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(spec) = part(policy, "spec") else { return };
    let name = part(policy, "metadata").map_or("", |metadata| word(metadata, "name"));
    let path = path.child("spec");
    let compiler = expressions(spec, &path, false, errors);
    for (validation, path) in parts(spec, "validations", &path) {
        let (expression, at) = (word(validation, "expression"), path.child("expression"));
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&at, "expression is not specified"));
        } else if let Err(why) = compiler.compile(expression, Wanted::Bool, true) {
            errors.push(FieldError::invalid(&at, expression, why));
        }
        let (made, at) = (word(validation, "messageExpression"), path.child("messageExpression"));
        if !made.is_empty() && made.trim().is_empty() {
            errors.push(FieldError::invalid(&at, made, "must be non-empty if specified"));
        } else if !made.is_empty()
            && let Err(why) = compiler.compile(made, Wanted::String, false)
        {
            errors.push(FieldError::invalid(&at, made, why));
        }
        let (message, at) = (word(validation, "message"), path.child("message"));
        if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(&at, message, "must be non-empty if specified"));
        } else if message.trim().contains(['\n', '\r']) {
            errors.push(FieldError::invalid(&at, message, "must not contain line breaks"));
        }
    }
    let annotations = list(spec, "auditAnnotations");
    if annotations.len() > MOST_ANNOTATIONS {
        let why = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        errors.push(FieldError::invalid(&path.child("auditAnnotations"), annotations.to_vec(), why));
    }
    let mut seen = Vec::new();
    for (annotation, path) in parts(spec, "auditAnnotations", &path) {
        let (key, at) = (word(annotation, "key"), path.child("key"));
        if name.is_empty() {
            errors.push(FieldError::invalid(&at, key, "requires metadata.name be non-empty"));
        } else {
            let qualified = format!("{name}/{key}");
            invalid(errors, &at, qualified.as_str(), names::qualified(&qualified));
        }
        if seen.contains(&key) {
            errors.push(FieldError::duplicate(&at, key));
        }
        seen.push(key);
        let (written, at) = (word(annotation, "valueExpression"), path.child("valueExpression"));
        let expression = written.trim();
        if expression.is_empty() {
            errors.push(FieldError::required(&at, "valueExpression is not specified"));
        } else if expression.len() > LONGEST_ANNOTATION {
            let why = format!("must not exceed {LONGEST_ANNOTATION} bytes in length");
            errors.push(FieldError::required(&at, why));
        } else if let Err(why) = compiler.compile(expression, Wanted::StringOrNull, true) {
            errors.push(FieldError::invalid(&at, written, why));
        }
    }
}

pub(super) fn param_kind(kind: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (written, at) = (word(kind, "apiVersion"), path.child("apiVersion"));
    match written.split('/').collect::<Vec<_>>().as_slice() {
        _ if written.is_empty() => {}
        [_] | [_, _] if written != "/" => {
            let (group, version) = written.split_once('/').unwrap_or(("", written));
            if !group.is_empty() && !names::subdomain(group).is_empty() {
                errors.push(FieldError::invalid(&at, group, names::subdomain(group).join(",")));
            }
            if version.is_empty() {
                errors.push(FieldError::invalid(&at, written, "version must be specified"));
            } else if !names::label_1035(version).is_empty() {
                errors.push(FieldError::invalid(&at, version, names::label_1035(version).join(",")));
            }
        }
        [_, _] => errors.push(FieldError::invalid(&at, written, "version must be specified")),
        _ => {
            let why = format!("unexpected GroupVersion string: {written}");
            errors.push(FieldError::invalid(&at, written, why));
        }
    }
    let named = word(kind, "kind");
    let wrong = names::label_1035(&named.to_lowercase());
    if !named.is_empty() && !wrong.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
        errors.push(FieldError::invalid(&path.child("kind"), named, why));
    }
}

pub(super) fn param_ref(chosen: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (name, selects) = (word(chosen, "name"), has(chosen, "selector"));
    if !name.is_empty() {
        invalid(errors, &path.child("name"), name, names::path_segment(name, false));
        if selects {
            for field in ["name", "selector"] {
                let why = "name and selector are mutually exclusive";
                errors.push(FieldError::forbidden(&path.child(field), why));
            }
        }
    } else if !selects {
        errors.push(FieldError::required(path, "one of name or selector must be specified"));
    }
    let (action, at) = (word(chosen, "parameterNotFoundAction"), path.child("parameterNotFoundAction"));
    if action.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else if !["Deny", "Allow"].contains(&action) {
        errors.push(FieldError::not_supported(&at, action, &["Deny", "Allow"]));
    }
}

pub(super) fn named_rule(rule: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let mut seen = Vec::new();
    for (index, name) in list(rule, "resourceNames").iter().filter_map(Value::as_str).enumerate() {
        let at = path.child("resourceNames").index(index);
        invalid(errors, &at, name, names::path_segment(name, false));
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&at, name));
        }
        seen.push(name);
    }
}

pub(super) fn mutating_binding(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let matched = part(spec, "matchResources").map_or(&[][..], |matched| list(matched, "resourceRules"));
    operations(matched, &path.child("matchResources"), errors);
}

/// Only what is written can be mutated.
fn operations(rules: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    for operation in rules.iter().filter_map(Value::as_object).flat_map(|rule| list(rule, "operations")) {
        let text = operation.as_str().unwrap_or_default();
        if !KNOWN.contains(&text) {
            let path = path.child("resourceRules").child("operations");
            errors.push(FieldError::not_supported(&path, text, &KNOWN));
        }
    }
}
