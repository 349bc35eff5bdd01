//! The requests that write, as bytes: apply, create, delete, and the live read that settles a doubt.

use crate::cache::member;
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

/// The same intent for exactly the object of this UID: without it, applying to one that was deleted meanwhile would bring a
/// ghost of it back.
pub(super) fn for_uid(intent: &Value, text: Vec<u8>, uid: &str) -> Vec<u8> {
    let says_uid = intent.pointer("/metadata/uid").is_some();
    let metadata = member(&text, 0, "metadata").filter(|found| !says_uid && text[found.value.start] == b'{');
    let Some(metadata) = metadata else {
        let mut sent = intent.clone();
        if let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), uid.into());
        }
        return body(&sent);
    };
    let (before, after) = text.split_at(metadata.value.start + 1);
    let comma = if after.first() == Some(&b'}') { "" } else { "," };
    [before, b"\"uid\":", Value::from(uid).to_string().as_bytes(), comma.as_bytes(), after].concat()
}

pub(super) fn apply(
    kind: &Kind,
    namespace: Option<&str>,
    name: &str,
    door: Door,
    manager: &str,
    force: bool,
    intent: Vec<u8>,
) -> Request {
    let path = object_path(kind, namespace, name);
    let door = match door {
        Door::Main => "",
        Door::Status => "/status",
    };
    http::Request::patch(format!("{path}{door}?fieldManager={manager}&force={force}"))
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
        .header(http::header::ACCEPT, "application/json")
        .body(intent)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_names_the_object_that_it_is_for() {
        for intent in [
            json!({"data": {"metadata": {}}, "metadata": {"name": "n"}}),
            json!({"kind": "X", "metadata": {}}),
            json!({"metadata": {"name": "n", "uid": "older"}}),
        ] {
            let mut wanted = intent.clone();
            wanted["metadata"]["uid"] = "u\"1".into();
            let sent = for_uid(&intent, intent.to_string().into_bytes(), "u\"1");
            assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), wanted);
        }
        let without = json!({"data": 1});
        assert_eq!(
            for_uid(&without, without.to_string().into_bytes(), "u"),
            without.to_string().into_bytes()
        );
    }
}
