//! The requests that write, as bytes: apply, create, delete, and the live read that settles a doubt.

use crate::key::Key;
use crate::kind::Kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// Which door of an object a write goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Door {
    /// The object itself.
    Main,
    /// Its status.
    Status,
}

impl Door {
    /// As `managedFields` calls it.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
        }
    }
}

type Request = Result<http::Request<Vec<u8>>, kube::Error>;

fn object_path(kind: &Kind, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{name}", kind.collection_path(namespace))
}

fn part_path(kind: &Kind, key: &Key, subresource: &str) -> String {
    let path = object_path(kind, key.namespace(), key.name());
    if subresource.is_empty() { path } else { format!("{path}/{subresource}") }
}

fn body(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

pub(super) fn apply(
    kind: &Kind,
    namespace: Option<&str>,
    name: &str,
    door: Door,
    manager: &str,
    force: bool,
    intent: &Value,
) -> Request {
    let path = object_path(kind, namespace, name);
    let door = match door {
        Door::Main => "",
        Door::Status => "/status",
    };
    http::Request::patch(format!("{path}{door}?fieldManager={manager}&force={force}"))
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
        .header(http::header::ACCEPT, "application/json")
        .body(body(intent))
        .map_err(kube::Error::HttpError)
}

pub(super) fn create(kind: &Kind, namespace: Option<&str>, manager: &str, object: &Value) -> Request {
    http::Request::post(format!("{}?fieldManager={manager}", kind.collection_path(namespace)))
        .header(http::header::CONTENT_TYPE, "application/json")
        .header(http::header::ACCEPT, "application/json")
        .body(body(object))
        .map_err(kube::Error::HttpError)
}

/// Writes all of it, or all of a subresource, if the version in it is still the live one.
pub(super) fn put(kind: &Kind, key: &Key, subresource: &str, manager: &str, object: &Value) -> Request {
    http::Request::put(format!("{}?fieldManager={manager}", part_path(kind, key, subresource)))
        .header(http::header::CONTENT_TYPE, "application/json")
        .header(http::header::ACCEPT, "application/json")
        .body(body(object))
        .map_err(kube::Error::HttpError)
}

pub(super) fn merge(kind: &Kind, key: &Key, subresource: &str, manager: &str, patch: &Value) -> Request {
    http::Request::patch(format!("{}?fieldManager={manager}", part_path(kind, key, subresource)))
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .header(http::header::ACCEPT, "application/json")
        .body(body(patch))
        .map_err(kube::Error::HttpError)
}

pub(super) fn delete_with(kind: &Kind, key: &Key, options: &Value) -> Request {
    http::Request::delete(object_path(kind, key.namespace(), key.name()))
        .header(http::header::CONTENT_TYPE, "application/json")
        .header(http::header::ACCEPT, "application/json")
        .body(body(options))
        .map_err(kube::Error::HttpError)
}

pub(super) fn set_finalizers(
    kind: &Kind,
    namespace: Option<&str>,
    name: &str,
    manager: &str,
    meta: &ObjectMeta,
    finalizers: &[String],
) -> Request {
    let patch = json!({ "metadata": {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "finalizers": finalizers,
    } });
    http::Request::patch(format!("{}?fieldManager={manager}", object_path(kind, namespace, name)))
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .header(http::header::ACCEPT, "application/json")
        .body(body(&patch))
        .map_err(kube::Error::HttpError)
}

pub(super) fn get(kind: &Kind, namespace: Option<&str>, name: &str) -> Request {
    http::Request::get(object_path(kind, namespace, name))
        .header(http::header::ACCEPT, "application/json")
        .body(Vec::new())
        .map_err(kube::Error::HttpError)
}

pub(super) fn list_labelled(kind: &Kind, namespace: Option<&str>, label: &str, value: &str) -> Request {
    let label = label.replace('/', "%2F");
    http::Request::get(format!("{}?labelSelector={label}%3D{value}", kind.collection_path(namespace)))
        .header(http::header::ACCEPT, "application/json")
        .body(Vec::new())
        .map_err(kube::Error::HttpError)
}

/// Whether an answer to a write says that the object is no more: the last finalizer is gone, or nothing held it.
pub(super) fn is_gone(answer: &Value) -> bool {
    if answer.get("kind").and_then(Value::as_str) == Some("Status") {
        return true;
    }
    let meta = |field: &str| answer.pointer(&format!("/metadata/{field}"));
    let some = |list: Option<&Value>| list.and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    // Namespaces have finalizers of two sorts.
    let namespace = answer.get("kind").and_then(Value::as_str) == Some("Namespace");
    let held = some(meta("finalizers")) || (namespace && some(answer.pointer("/spec/finalizers")));
    let lingers = meta("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default() > 0;
    meta("deletionTimestamp").is_some() && !held && !lingers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_whether_the_object_lives_on() {
        assert!(is_gone(&json!({"kind": "Status", "status": "Success"})));
        let deleting = |finalizers: Value, grace: i64| {
            json!({"kind": "X", "metadata": {
                "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers, "deletionGracePeriodSeconds": grace,
            }})
        };
        assert!(is_gone(&deleting(json!([]), 0)));
        assert!(!is_gone(&deleting(json!(["a/b"]), 0)));
        assert!(!is_gone(&deleting(json!([]), 30)));
        let mut namespace = deleting(json!([]), 0);
        namespace["spec"] = json!({"finalizers": ["kubernetes"]});
        assert!(is_gone(&namespace));
        namespace["kind"] = json!("Namespace");
        assert!(!is_gone(&namespace));
        assert!(!is_gone(&json!({"kind": "X", "metadata": {}})));
    }
}
