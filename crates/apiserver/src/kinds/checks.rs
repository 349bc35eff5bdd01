//! Defaults and validation of kinds that have no file of their own, where no schema can say it.

use super::{child, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

fn entries<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.get(name).and_then(Value::as_object).into_iter().flatten()
}

/// The largest payload of a ConfigMap or a Secret.
const LARGEST: usize = 1024 * 1024;

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn default_namespace(namespace: &mut Value) {
    let name = text(namespace, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        let metadata = child(namespace, "metadata");
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(NAME_LABEL.to_owned(), Value::String(name));
        }
    }
    let status = child(namespace, "status");
    if !status.contains_key("phase") {
        status.insert("phase".to_owned(), json!("Active"));
    }
}

pub(super) fn prepare_namespace(namespace: &mut Value) {
    *child(namespace, "status") = Map::from_iter([("phase".to_owned(), json!("Active"))]);
    let finalizers = child(namespace, "spec").entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.contains(&json!("kubernetes"))
    {
        finalizers.push(json!("kubernetes"));
    }
    // A generated name is known only now.
    default_namespace(namespace);
}

pub(super) fn terminate_namespace(namespace: &mut Value, _now: &str) {
    child(namespace, "status").insert("phase".to_owned(), json!("Terminating"));
}

pub(super) fn namespace(namespace: &Value) -> Vec<FieldError> {
    let path = Path::new("spec").child("finalizers");
    let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    finalizers
        .into_iter()
        .flatten()
        .flat_map(|name| finalizer(name.as_str().unwrap_or_default(), &path))
        .collect()
}

fn finalizer(name: &str, path: &Path) -> Vec<FieldError> {
    let mut errors: Vec<_> =
        names::qualified(name).into_iter().map(|why| FieldError::invalid(path, name, why)).collect();
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, name, why));
    }
    errors
}

pub(super) fn namespace_update(new: &Value, _old: &Value, subresource: &str) -> Vec<FieldError> {
    match subresource {
        "finalize" => {
            let path = Path::new("spec").child("finalizers");
            let finalizers = new.pointer("/spec/finalizers").and_then(Value::as_array);
            let finalizers = finalizers.into_iter().flatten().enumerate();
            finalizers
                .flat_map(|(index, name)| finalizer(name.as_str().unwrap_or_default(), &path.index(index)))
                .collect()
        }
        "status" => {
            let deleted = !text(new, &["metadata", "deletionTimestamp"]).is_empty();
            let phase = text(new, &["status", "phase"]);
            let why = match (deleted, phase) {
                (false, "Active") | (true, "Terminating") => return Vec::new(),
                (false, _) => "may only be 'Active' if `deletionTimestamp` is empty",
                (true, _) => "may only be 'Terminating' if `deletionTimestamp` is not empty",
            };
            vec![FieldError::invalid(&Path::new("status").child("Phase"), phase, why)]
        }
        _ => Vec::new(),
    }
}

/// What is wrong with a key of a ConfigMap or a Secret.
pub(super) fn config_key(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if key.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
        wrong.push(rule.to_owned());
    }
    match key {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        _ if key.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

fn keys(object: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let path = Path::new(field);
    for (key, _) in entries(object, field) {
        for why in config_key(key) {
            errors.push(FieldError::invalid(&path.key(key), key.as_str(), why));
        }
    }
}

fn decoded_size(object: &Value, field: &str) -> usize {
    entries(object, field).map(|(_, value)| decode(value).map_or(0, |bytes| bytes.len())).sum()
}

fn decode(value: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(value.as_str()?).ok()
}

pub(super) fn config_map(map: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let binary = map.get("binaryData").and_then(Value::as_object);
    let path = Path::new("data");
    for (key, _) in entries(map, "data") {
        for why in config_key(key) {
            errors.push(FieldError::invalid(&path.key(key), key.as_str(), why));
        }
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            let why = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(&path.key(key), key.as_str(), why));
        }
    }
    keys(map, "binaryData", &mut errors);
    let plain: usize = entries(map, "data").map(|(_, value)| value.as_str().map_or(0, str::len)).sum();
    if plain + decoded_size(map, "binaryData") > LARGEST {
        errors.push(FieldError::too_long(&Path::new(""), LARGEST));
    }
    errors
}

/// Forbids changes of `fields` once `immutable` is set, and of that itself.
pub(super) fn immutable(new: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    let is_set = |object: &Value| object.get("immutable").and_then(Value::as_bool).unwrap_or(false);
    if !is_set(old) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let mut errors = Vec::new();
    if !is_set(new) {
        errors.push(FieldError::forbidden(&Path::new("immutable"), why));
    }
    for field in fields {
        if new.get(field) != old.get(field) {
            errors.push(FieldError::forbidden(&Path::new(field), why));
        }
    }
    errors
}

/// `stringData` is for writing only: it goes into `data` before anything looks at the object.
pub(super) fn default_secret(secret: &mut Value) {
    let plain = secret.as_object_mut().and_then(|secret| secret.remove("stringData"));
    if let Some(Value::Object(plain)) = plain {
        let data = child(secret, "data");
        for (key, value) in plain {
            let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
            data.insert(key, Value::String(encoded));
        }
    }
    if text(secret, &["type"]).is_empty()
        && let Some(secret) = secret.as_object_mut()
    {
        secret.insert("type".to_owned(), json!("Opaque"));
    }
}

pub(super) fn prepare_secret_update(new: &mut Value, old: &Value) {
    if text(new, &["type"]).is_empty()
        && let (Some(new), Some(kind)) = (new.as_object_mut(), old.get("type"))
    {
        new.insert("type".to_owned(), kind.clone());
    }
}

pub(super) fn secret(secret: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    keys(secret, "data", &mut errors);
    let data = Path::new("data");
    if decoded_size(secret, "data") > LARGEST {
        errors.push(FieldError::too_long(&data, LARGEST));
    }
    let value = |key: &str| secret.get("data").and_then(|data| data.get(key));
    let mut require = |keys: &[&str]| {
        errors.extend(keys.iter().map(|key| FieldError::required(&data.key(key), "")));
    };
    match text(secret, &["type"]) {
        "kubernetes.io/service-account-token" => {
            const ACCOUNT: &str = "kubernetes.io/service-account.name";
            if text(secret, &["metadata", "annotations", ACCOUNT]).is_empty() {
                let path = Path::new("metadata").child("annotations").key(ACCOUNT);
                errors.push(FieldError::required(&path, ""));
            }
        }
        kind @ ("kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson") => {
            let key = if kind == "kubernetes.io/dockercfg" { ".dockercfg" } else { ".dockerconfigjson" };
            match value(key) {
                None => require(&[key]),
                Some(value) => {
                    if let Some(why) = not_an_object(&decode(value).unwrap_or_default()) {
                        let shown = "<secret contents redacted>";
                        errors.push(FieldError::invalid(&data.key(key), shown, why));
                    }
                }
            }
        }
        "kubernetes.io/basic-auth" if value("username").is_none() && value("password").is_none() => {
            require(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth"
            if value("ssh-privatekey").and_then(decode).is_none_or(|key| key.is_empty()) =>
        {
            require(&["ssh-privatekey"]);
        }
        "kubernetes.io/tls" => {
            let missing: Vec<_> =
                ["tls.crt", "tls.key"].into_iter().filter(|key| value(key).is_none()).collect();
            require(&missing);
        }
        _ => {}
    }
    errors
}

fn not_an_object(bytes: &[u8]) -> Option<String> {
    let shape = match windlass_schema::json::read(bytes) {
        Err(error) => return Some(error.to_string()),
        Ok(document) => match document.value {
            Value::Object(_) | Value::Null => return None,
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
        },
    };
    Some(format!("json: cannot unmarshal {shape} into Go value of type map[string]interface {{}}"))
}

pub(super) fn secret_update(new: &Value, old: &Value, _subresource: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if new.get("type") != old.get("type") {
        errors.push(FieldError::invalid(&Path::new("type"), text(new, &["type"]), "field is immutable"));
    }
    errors.extend(immutable(new, old, &["data"]));
    errors
}

/// Fields of coordinated leader election, which is off by default.
pub(super) fn prepare_lease(lease: &mut Value) {
    let spec = child(lease, "spec");
    spec.remove("strategy");
    spec.remove("preferredHolder");
}

pub(super) fn lease(lease: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = Path::new("spec");
    let number = |name: &str| lease.pointer(&format!("/spec/{name}")).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid(
            &spec.child("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        ));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&spec.child("leaseTransitions"), count, why));
    }
    errors
}
