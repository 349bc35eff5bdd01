//! ObjectMeta: decoding, and validation on create and update.

mod decode;
mod time;

pub use crate::names::NameRule;
pub use decode::decode;
pub(crate) use decode::decode_at;

use crate::field::{FieldError, Path};
use crate::{go, names};
use serde_json::{Map, Value};

/// How many bytes all annotations of an object may have together.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// Checks the metadata of a new object. `meta` is what [`decode`] left.
pub fn validate(meta: &Value, requires_namespace: bool, name_rule: NameRule, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let generate_name = text(meta, "generateName");
    if !generate_name.is_empty() {
        let wrong = name_rule.check_prefix(generate_name);
        errors.extend(invalid_each(&path.child("generateName"), generate_name, wrong));
    }
    match text(meta, "name") {
        "" => errors.push(FieldError::required(&path.child("name"), "name or generateName is required")),
        name => errors.extend(invalid_each(&path.child("name"), name, name_rule.check(name))),
    }
    let namespace_path = path.child("namespace");
    match (requires_namespace, text(meta, "namespace")) {
        (true, "") => errors.push(FieldError::required(&namespace_path, "")),
        (true, namespace) => {
            errors.extend(invalid_each(&namespace_path, namespace, names::label(namespace)));
        }
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(&namespace_path, "not allowed on this type")),
    }
    if let Some(generation) = meta.get("generation").and_then(Value::as_i64).filter(|&number| number < 0) {
        let path = path.child("generation");
        errors.push(FieldError::invalid(&path, generation, "must be greater than or equal to 0"));
    }
    errors.extend(labels_and_annotations(meta, path));
    errors.extend(owner_references(meta, &path.child("ownerReferences")));
    errors.extend(finalizers(meta, &path.child("finalizers")));
    errors
}

/// Checks what an update does to the metadata. Both are what [`decode`] left.
pub fn validate_update(new: &Value, old: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.get("deletionTimestamp").is_some() {
        let had = strings(old, "finalizers");
        let mut added: Vec<&str> =
            strings(new, "finalizers").into_iter().filter(|name| !had.contains(name)).collect();
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let quoted: Vec<String> = added.into_iter().map(go::quote).collect();
            errors.push(FieldError::forbidden(
                &path.child("finalizers"),
                format!(
                    "no new finalizers can be added if the object is being deleted, \
                     found new finalizers []string{{{}}}",
                    quoted.join(", ")
                ),
            ));
        }
    }
    if text(new, "resourceVersion").is_empty() {
        let path = path.child("resourceVersion");
        errors.push(FieldError::invalid(&path, "", "must be specified for an update"));
    }
    let generation = |meta: &Value| meta.get("generation").and_then(Value::as_i64).unwrap_or_default();
    if generation(new) < generation(old) {
        let path = path.child("generation");
        errors.push(FieldError::invalid(&path, generation(new), "must not be decremented"));
    }
    let mut immutable = |field: &str, absent: Value| {
        let (new, old) = (new.get(field).unwrap_or(&absent), old.get(field).unwrap_or(&absent));
        if new != old {
            errors.push(FieldError::invalid(&path.child(field), new.clone(), "field is immutable"));
        }
    };
    for field in ["name", "namespace", "uid"] {
        immutable(field, "".into());
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        immutable(field, Value::Null);
    }
    errors.extend(labels_and_annotations(new, path));
    errors.extend(owner_references(new, &path.child("ownerReferences")));
    errors
}

fn text<'a>(meta: &'a Value, field: &str) -> &'a str {
    meta.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn strings<'a>(meta: &'a Value, field: &str) -> Vec<&'a str> {
    let list = meta.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

fn map<'a>(meta: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let entries = meta.get(field).and_then(Value::as_object).into_iter().flat_map(Map::iter);
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

fn invalid_each(path: &Path, value: &str, wrong: Vec<String>) -> impl Iterator<Item = FieldError> {
    wrong.into_iter().map(move |why| FieldError::invalid(path, value, why))
}

/// What is wrong with the labels and annotations below a path: all that the metadata of a template has.
pub fn labels_and_annotations(meta: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let labels = path.child("labels");
    for (key, value) in map(meta, "labels") {
        errors.extend(invalid_each(&labels, key, names::qualified(key)));
        errors.extend(invalid_each(&labels, value, names::label_value(value)));
    }
    let annotations = path.child("annotations");
    let mut size = 0;
    for (key, value) in map(meta, "annotations") {
        errors.extend(invalid_each(&annotations, key, names::qualified(&key.to_lowercase())));
        size += key.len() + value.len();
    }
    if size > MAX_ANNOTATION_BYTES {
        errors.push(FieldError::too_long(&annotations, MAX_ANNOTATION_BYTES));
    }
    errors
}

/// The version in `group/version` or `version`; none if there is nothing to find.
fn version_of(api_version: &str) -> Option<&str> {
    let version = match api_version.split_once('/') {
        None => api_version,
        Some((_, version)) if !version.contains('/') => version,
        Some(_) => return None,
    };
    Some(version).filter(|version| !version.is_empty())
}

fn owner_references(meta: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(references) = meta.get("ownerReferences").and_then(Value::as_array) else { return errors };
    let mut controller: Option<String> = None;
    for reference in references {
        let (api_version, kind) = (text(reference, "apiVersion"), text(reference, "kind"));
        if version_of(api_version).is_none() {
            let path = path.child("apiVersion");
            errors.push(FieldError::invalid(&path, api_version, "version must not be empty"));
        }
        for field in ["kind", "name", "uid"] {
            if text(reference, field).is_empty() {
                errors.push(FieldError::invalid(&path.child(field), "", "must not be empty"));
            }
        }
        if (api_version, kind) == ("v1", "Event") {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(path, reference.clone(), why));
        }
        if reference.get("controller") == Some(&Value::Bool(true)) {
            let name = format!("{kind}/{}", text(reference, "name"));
            match &controller {
                None => controller = Some(name),
                Some(first) => errors.push(FieldError::invalid(
                    path,
                    references.clone(),
                    format!(
                        "Only one reference can have Controller set to true. \
                         Found \"true\" in references for {first} and {name}"
                    ),
                )),
            }
        }
    }
    errors
}

fn finalizers(meta: &Value, path: &Path) -> Vec<FieldError> {
    let finalizers = strings(meta, "finalizers");
    let mut errors: Vec<FieldError> =
        finalizers.iter().flat_map(|name| invalid_each(path, name, names::qualified(name))).collect();
    if ["orphan", "foregroundDeletion"].iter().all(|name| finalizers.contains(name)) {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, finalizers, why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

    #[test]
    fn metadata_errors_read_as_the_real_ones() {
        for (meta, expected) in [
            (json!({"name": "a", "namespace": "n"}), vec![]),
            (json!({"namespace": "n"}), vec!["metadata.name: Required value: name or generateName is required".to_owned()]),
            (json!({"name": "a"}), vec!["metadata.namespace: Required value".to_owned()]),
            (
                json!({"name": "Ab-cvqqk", "generateName": "Ab-", "namespace": "n"}),
                vec![
                    format!("metadata.generateName: Invalid value: \"Ab-\": {SUBDOMAIN_RULE}"),
                    format!("metadata.name: Invalid value: \"Ab-cvqqk\": {SUBDOMAIN_RULE}"),
                ],
            ),
            (
                json!({"name": "a", "namespace": "n", "finalizers": ["noslash", "a/b/c", ""]}),
                vec![
                    format!("metadata.finalizers: Invalid value: \"a/b/c\": a valid label key {KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"),
                    "metadata.finalizers: Invalid value: \"\": name part must be non-empty".to_owned(),
                    format!("metadata.finalizers: Invalid value: \"\": name part {KEY_RULE}"),
                ],
            ),
            (
                json!({"name": "a", "namespace": "n", "annotations": {"a": "x".repeat(300_000)}}),
                vec!["metadata.annotations: Too long: may not be more than 262144 bytes".to_owned()],
            ),
            (
                json!({"name": "a", "namespace": "n", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "b", "controller": true},
                    {"apiVersion": "a/b/c", "kind": "", "name": "", "uid": "", "controller": true}]}),
                vec![
                    r#"metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"a","uid":"b","controller":true}: /v1, Kind=Event is disallowed from being an owner"#.to_owned(),
                    r#"metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty"#.to_owned(),
                    r#"metadata.ownerReferences.kind: Invalid value: "": must not be empty"#.to_owned(),
                    r#"metadata.ownerReferences.name: Invalid value: "": must not be empty"#.to_owned(),
                    r#"metadata.ownerReferences.uid: Invalid value: "": must not be empty"#.to_owned(),
                    r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Event","name":"a","uid":"b","controller":true},{"apiVersion":"a/b/c","kind":"","name":"","uid":"","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Event/a and /"#.to_owned(),
                ],
            ),
        ] {
            let errors = validate(&meta, true, NameRule::Subdomain, &Path::new("metadata"));
            assert_eq!(texts(&errors), expected);
        }
    }

    #[test]
    fn updates_keep_what_is_immutable() {
        let old = json!({"name": "a", "uid": "u", "resourceVersion": "1", "generation": 2,
            "creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["a/b"]});
        let new = json!({"name": "b", "uid": "u", "generation": 1, "finalizers": ["a/b", "c/d"]});
        assert_eq!(
            texts(&validate_update(&new, &old, &Path::new("metadata"))),
            [
                r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d"}"#,
                r#"metadata.resourceVersion: Invalid value: "": must be specified for an update"#,
                r#"metadata.generation: Invalid value: 1: must not be decremented"#,
                r#"metadata.name: Invalid value: "b": field is immutable"#,
                r#"metadata.creationTimestamp: Invalid value: null: field is immutable"#,
                r#"metadata.deletionTimestamp: Invalid value: null: field is immutable"#,
            ]
        );
    }
}
