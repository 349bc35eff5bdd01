//! What a definition may say of the conversion between its versions.

use crate::object::text;
use serde_json::Value;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::meta::NameRule;
use windlass_schema::names;

/// What is wrong with `spec.conversion`, told of the fields that the reference keeps it in.
pub(super) fn validate(crd: &Value, path: &Path) -> Vec<FieldError> {
    let strategy = text(crd, &["spec", "conversion", "strategy"]);
    let client = crd.pointer("/spec/conversion/webhook/clientConfig").filter(|client| !client.is_null());
    let versions = crd.pointer("/spec/conversion/webhook/conversionReviewVersions");
    let mut errors = match strategy {
        "" => vec![FieldError::required(&path.child("strategy"), "")],
        "None" | "Webhook" => Vec::new(),
        other => vec![FieldError::not_supported(&path.child("strategy"), other, &["None", "Webhook"])],
    };
    let (client_path, versions_path) =
        (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    if strategy == "Webhook" {
        match client {
            None => {
                errors.push(FieldError::required(&client_path, "required when strategy is set to Webhook"));
            }
            Some(client) => errors.extend(client_config(client, &client_path)),
        }
        errors.extend(review_versions(versions, &versions_path));
    } else {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(FieldError::forbidden(&client_path, why));
        }
        if versions.and_then(Value::as_array).is_some_and(|versions| !versions.is_empty()) {
            errors.push(FieldError::forbidden(&versions_path, why));
        }
    }
    errors
}

fn client_config(client: &Value, path: &Path) -> Vec<FieldError> {
    let url = client.get("url").and_then(Value::as_str);
    let service = client.get("service").filter(|service| !service.is_null());
    match (url, service) {
        (Some(url), None) => webhook_url(url, &path.child("url")),
        (None, Some(service)) => webhook_service(service, &path.child("service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

fn webhook_url(url: &str, path: &Path) -> Vec<FieldError> {
    let form = "; desired format: https://host[/path]";
    let mut errors = Vec::new();
    let mut wrong = |value: &str, why: String| errors.push(FieldError::invalid(path, value, why));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if scheme != "https" {
        wrong(scheme, format!("'https' is the only allowed URL scheme{form}"));
    }
    if host.is_empty() {
        wrong(host, format!("host must be specified{form}"));
    }
    if let Some(user) = user {
        wrong(user, "user information is not permitted in the URL".to_owned());
    }
    if !fragment.is_empty() {
        wrong(fragment, "fragments are not permitted in the URL".to_owned());
    }
    if !query.is_empty() {
        wrong(query, "query parameters are not permitted in the URL".to_owned());
    }
    errors
}

fn webhook_service(service: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["name", "namespace"] {
        if text(service, &[field]).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), port, why));
    }
    let Some(place) = service.get("path").and_then(Value::as_str) else { return errors };
    let path = path.child("path");
    let mut wrong = |why: String| errors.push(FieldError::invalid(&path, place, why));
    if place == "/" || place.is_empty() {
        return errors;
    }
    if place == "//" {
        wrong("segment[0] may not be empty".to_owned());
        return errors;
    }
    if !place.starts_with('/') {
        wrong("must start with a '/'".to_owned());
    }
    let steps: Vec<&str> = place.get(1..).unwrap_or_default().split('/').collect();
    let last = steps.len() - 1;
    for (index, step) in steps.iter().enumerate() {
        if step.is_empty() && index == last {
            break;
        }
        if step.is_empty() {
            wrong(format!("segment[{index}] may not be empty"));
            continue;
        }
        for why in names::subdomain(step) {
            wrong(format!("segment[{index}]: {why}"));
        }
    }
    errors
}

fn review_versions(versions: Option<&Value>, path: &Path) -> Vec<FieldError> {
    let listed: Vec<&str> =
        versions.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if listed.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    for (index, version) in listed.iter().enumerate() {
        let wrong = NameRule::Label1035.check(version);
        if listed[..index].contains(version) {
            errors.push(FieldError::invalid(&path.index(index), *version, "duplicate version"));
        }
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&path.index(index), *version, wrong.join(",")));
        }
    }
    if !listed.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        let why = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, versions.cloned().unwrap_or_default(), why));
    }
    errors
}
