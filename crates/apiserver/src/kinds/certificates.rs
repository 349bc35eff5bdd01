//! CertificateSigningRequests: who asks, what may be asked for, and who may say yes or no through which subresource.

use super::{RuleContext, child, text};
use crate::x509::CertificateRequest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::parse_x509_pem;

/// What only the path of the approval adds.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];
/// What nobody takes back.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

/// What nobody owns who writes by these paths.
pub(super) const RESETS: &[(&str, &[&[&str]])] = &[
    ("", &[&["spec"], &["status"]]),
    ("status", &[&["spec"], &["status", "conditions"]]),
    ("approval", &[&["spec"], &["status", "certificate"]]),
];

const SUBDOMAIN_LENGTH: usize = 253;
const LABEL_LENGTH: usize = 63;
/// A domain, a slash, and a label and a subdomain with a dot between them.
const SIGNER_LENGTH: usize = SUBDOMAIN_LENGTH + 1 + SUBDOMAIN_LENGTH + LABEL_LENGTH + 1;

/// Who asks for a certificate is not for them to say.
pub(super) fn prepare_create(context: &RuleContext<'_>, request: &mut Value) {
    let spec = child(request, "spec");
    spec.remove("extra");
    spec.remove("uid");
    if !context.identity.uid.is_empty() {
        spec.insert("uid".to_owned(), json!(context.identity.uid));
    }
    if !context.identity.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(context.identity.extra));
    }
    spec.insert("username".to_owned(), json!(context.identity.user));
    spec.insert("groups".to_owned(), json!(context.identity.groups));
}

/// Conditions get their times; the path of the status keeps decisions, and that of the approval all else.
pub(super) fn prepare_status(context: &RuleContext<'_>, new: &mut Value, old: &Value) {
    if context.subresource == "status" {
        DECISIONS.into_iter().for_each(|kind| keep(kind, new, old));
    }
    let now = context.now();
    let before = conditions(old);
    for condition in conditions_mut(new) {
        let same = before.iter().find(|other| {
            ["type", "status"].iter().all(|field| text(other, &[field]) == text(condition, &[field]))
                && !text(other, &["lastTransitionTime"]).is_empty()
        });
        let Some(condition) = condition.as_object_mut() else { continue };
        set_missing(condition, "lastUpdateTime", &now);
        let since = same.map_or(now.as_str(), |same| text(same, &["lastTransitionTime"]));
        set_missing(condition, "lastTransitionTime", since);
    }
    if context.subresource == "approval" {
        let decided = child(new, "status").remove("conditions");
        let mut status = old.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
        status.remove("conditions");
        status.extend(decided.map(|decided| ("conditions".to_owned(), decided)));
        if let Some(new) = new.as_object_mut() {
            new.insert("status".to_owned(), Value::Object(status));
        }
    }
}

fn set_missing(condition: &mut Map<String, Value>, field: &str, time: &str) {
    if condition.get(field).is_none_or(Value::is_null) {
        condition.insert(field.to_owned(), json!(time));
    }
}

/// Keeps the conditions of a type as they were, unless some came or went: then the change is refused.
fn keep(kind: &str, new: &mut Value, old: &Value) {
    let before: Vec<Value> = of_type(old, kind).cloned().collect();
    let places: Vec<usize> = conditions(new)
        .iter()
        .enumerate()
        .filter(|(_, it)| text(it, &["type"]) == kind)
        .map(|it| it.0)
        .collect();
    if places.len() != before.len() {
        return;
    }
    let conditions = conditions_mut(new);
    for (place, before) in places.into_iter().zip(before) {
        if let Some(condition) = conditions.get_mut(place) {
            *condition = before;
        }
    }
}

fn conditions(request: &Value) -> &[Value] {
    request.pointer("/status/conditions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn conditions_mut(request: &mut Value) -> &mut [Value] {
    request.pointer_mut("/status/conditions").and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

fn of_type<'a>(request: &'a Value, kind: &str) -> impl Iterator<Item = &'a Value> {
    conditions(request).iter().filter(move |condition| text(condition, &["type"]) == kind)
}

/// What the request itself says.
pub(super) fn validate(request: &Value) -> Vec<FieldError> {
    let path = Path::new("spec");
    let mut errors = Vec::new();
    if let Err(why) = CertificateRequest::from_base64(text(request, &["spec", "request"])) {
        let given = request.pointer("/spec/request").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.child("request"), given, why.to_string()));
    }
    let usages = request.pointer("/spec/usages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let at = path.child("usages");
    if usages.is_empty() {
        errors.push(FieldError::required(&at, ""));
    }
    let known = crate::x509::KEY_USAGES;
    for (index, usage) in usages.iter().enumerate() {
        if !usage.as_str().is_some_and(|usage| known.contains(&usage)) {
            errors.push(FieldError::not_supported(&at.index(index), usage.clone(), known));
        }
    }
    for (index, usage) in usages.iter().enumerate() {
        if usages.get(..index).is_some_and(|before| before.contains(usage)) {
            errors.push(FieldError::duplicate(&at.index(index), usage.clone()));
        }
    }
    errors.extend(signer_name(text(request, &["spec", "signerName"]), &path.child("signerName")));
    let seconds = request.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    if let Some(seconds) = seconds.filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, why));
    }
    errors
}

fn signer_name(name: &str, path: &Path) -> Vec<FieldError> {
    if name == "kubernetes.io/legacy-unknown" {
        let why = "the legacy signerName is not allowed via this API version";
        return vec![FieldError::invalid(path, name, why)];
    }
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let parts: Vec<&str> = name.split('/').collect();
    let &[domain, rest] = parts.as_slice() else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![FieldError::invalid(path, name, why)];
    };
    let mut errors = Vec::new();
    if domain.len() > SUBDOMAIN_LENGTH {
        errors.push(FieldError::too_long(path, SUBDOMAIN_LENGTH));
    }
    errors.extend(labels(domain, names::label, path));
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, why));
    }
    errors.extend(labels(rest, names::subdomain, path));
    if name.len() > SIGNER_LENGTH {
        errors.push(FieldError::too_long(path, SIGNER_LENGTH));
    }
    errors
}

/// What is wrong with the labels of a name: the first that is says enough.
fn labels(name: &str, check: fn(&str) -> Vec<String>, path: &Path) -> Vec<FieldError> {
    let wrong = name.split('.').map(|label| (label, check(label))).find(|(_, wrong)| !wrong.is_empty());
    let Some((label, wrong)) = wrong else { return Vec::new() };
    let error = |why: String| FieldError::invalid(path, name, format!("validating label {label:?}: {why}"));
    wrong.into_iter().map(error).collect()
}

/// What the subresources may do to the status.
pub(super) fn validate_update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    let path = Path::new("status").child("conditions");
    let mut errors = validate_conditions(new, old, &path);
    let certificate = |request: &Value| text(request, &["status", "certificate"]).to_owned();
    let (after, before) = (certificate(new), certificate(old));
    let at = Path::new("status").child("certificate");
    if after != before
        && let Err(why) = validate_certificate(&after)
    {
        errors.push(FieldError::invalid(&at, "<certificate data>", why));
    }
    for kind in FINAL {
        if of_type(new, kind).count() < of_type(old, kind).count() {
            let why = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden(&path, why));
        }
    }
    if subresource != "approval" {
        for kind in DECISIONS {
            if of_type(new, kind).count() > of_type(old, kind).count() {
                let why = format!("updates may not add a condition of type {kind:?}");
                errors.push(FieldError::forbidden(&path, why));
            }
        }
    }
    if after != before {
        if subresource != "status" {
            errors.push(FieldError::forbidden(&at, "updates may not set certificate content"));
        } else if !before.is_empty() {
            errors.push(FieldError::forbidden(&at, "updates may not modify existing certificate content"));
        }
    }
    errors
}

fn validate_conditions(new: &Value, old: &Value, path: &Path) -> Vec<FieldError> {
    let has = |request: &Value, kind: &str| of_type(request, kind).next().is_some();
    let had_both = DECISIONS.iter().all(|kind| has(old, kind));
    let mut seen: Vec<&str> = Vec::new();
    let mut errors = Vec::new();
    for (index, condition) in conditions(new).iter().enumerate() {
        let at = path.index(index);
        let kind = text(condition, &["type"]);
        if kind.is_empty() {
            errors.push(FieldError::required(&at.child("type"), ""));
        }
        let known: &[&str] = if FINAL.contains(&kind) { &["True"] } else { &["False", "True", "Unknown"] };
        match text(condition, &["status"]) {
            "" => errors.push(FieldError::required(&at.child("status"), "")),
            status if !known.contains(&status) => {
                errors.push(FieldError::not_supported(&at.child("status"), status, known));
            }
            _ => {}
        }
        let other =
            DECISIONS.iter().find(|decision| **decision != kind).filter(|_| DECISIONS.contains(&kind));
        if !had_both && other.is_some_and(|other| seen.contains(other)) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(path, kind, why));
        }
        if seen.contains(&kind) {
            errors.push(FieldError::duplicate(&at.child("type"), kind));
        }
        seen.push(kind);
    }
    errors
}

/// Certificates as PEM, and nothing else.
fn validate_certificate(encoded: &str) -> Result<(), String> {
    let pem = STANDARD.decode(encoded).unwrap_or_default();
    if pem.is_empty() {
        return Ok(());
    }
    let mut rest = pem.as_slice();
    let mut blocks = 0;
    while let Ok((after, block)) = parse_x509_pem(rest) {
        if block.label != "CERTIFICATE" {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label));
        }
        parse_x509_certificate(&block.contents).map_err(|_| "x509: malformed certificate")?;
        blocks += 1;
        rest = after;
    }
    match blocks {
        0 => Err("must contain at least one CERTIFICATE PEM block".to_owned()),
        _ => Ok(()),
    }
}
