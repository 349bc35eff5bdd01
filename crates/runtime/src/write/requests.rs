//! The requests that write, as bytes: apply, create, delete, and the live read that settles a doubt.

use super::refresh::Listed;
use crate::cache::{escape, value_of};
use crate::key::Key;
use crate::kind::Kind;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Uri};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// Which subresource of an object a write goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subresource {
    /// The object itself.
    None,
    /// Its status.
    Status,
}

impl Subresource {
    /// As `managedFields` calls it.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Status => "status",
        }
    }
}

type Request = Result<http::Request<Vec<u8>>, kube::Error>;

/// A request for JSON. Without a body, what it would be in is empty.
fn request(method: Method, path: String, content_type: &'static str, body: Vec<u8>) -> Request {
    let mut request = http::Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = Uri::try_from(path).map_err(|error| kube::Error::HttpError(error.into()))?;
    let headers = request.headers_mut();
    if !content_type.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    Ok(request)
}

fn object_path(kind: &Kind, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{name}", kind.collection_path(namespace))
}

fn part_path(kind: &Kind, key: &Key, subresource: &str) -> String {
    let path = object_path(kind, key.namespace(), key.name());
    if subresource.is_empty() { path } else { format!("{path}/{subresource}") }
}

pub(super) fn body(value: &Value) -> Vec<u8> {
    // Nothing but a map with odd keys cannot be written, and a value has none.
    serde_json::to_vec(value).unwrap_or_default()
}

/// The same intent for exactly the object of this UID: without it, applying to one that was deleted meanwhile would bring a
/// ghost of it back.
pub(super) fn for_uid(intent: &Value, uid: &str) -> Vec<u8> {
    let text = body(intent);
    let says_uid = intent.get("metadata").is_some_and(|meta| meta.get("uid").is_some());
    let metadata =
        value_of(&text, 0, "metadata").filter(|start| !says_uid && text.get(*start) == Some(&b'{'));
    let Some(metadata) = metadata else {
        let mut sent = intent.clone();
        if let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), uid.into());
        }
        return body(&sent);
    };
    let (before, after) = text.split_at(metadata + 1);
    let comma = if after.first() == Some(&b'}') { "" } else { "," };
    [before, b"\"uid\":", &body(&uid.into()), comma.as_bytes(), after].concat()
}

pub(super) fn apply(
    kind: &Kind,
    namespace: Option<&str>,
    name: &str,
    subresource: Subresource,
    manager: &str,
    force: bool,
    intent: Vec<u8>,
) -> Request {
    let path = object_path(kind, namespace, name);
    let subresource = match subresource {
        Subresource::None => "",
        Subresource::Status => "/status",
    };
    let path = format!("{path}{subresource}?fieldManager={manager}&force={force}");
    request(Method::PATCH, path, "application/apply-patch+yaml", intent)
}

pub(super) fn create(kind: &Kind, namespace: Option<&str>, manager: &str, object: &Value) -> Request {
    let path = format!("{}?fieldManager={manager}", kind.collection_path(namespace));
    request(Method::POST, path, "application/json", body(object))
}

/// As [`create`], without creating it.
pub(super) fn create_for_show(
    kind: &Kind,
    namespace: Option<&str>,
    manager: &str,
    object: &Value,
) -> Request {
    let path = format!("{}?dryRun=All&fieldManager={manager}", kind.collection_path(namespace));
    request(Method::POST, path, "application/json", body(object))
}

/// Writes all of it, or all of a subresource, if the version in it is still the live one.
pub(super) fn put(kind: &Kind, key: &Key, subresource: &str, manager: &str, object: &Value) -> Request {
    let path = format!("{}?fieldManager={manager}", part_path(kind, key, subresource));
    request(Method::PUT, path, "application/json", body(object))
}

pub(super) fn merge(kind: &Kind, key: &Key, subresource: &str, manager: &str, patch: &Value) -> Request {
    let path = format!("{}?fieldManager={manager}", part_path(kind, key, subresource));
    request(Method::PATCH, path, "application/merge-patch+json", body(patch))
}

pub(super) fn delete_with(kind: &Kind, key: &Key, options: &Value) -> Request {
    let path = object_path(kind, key.namespace(), key.name());
    request(Method::DELETE, path, "application/json", body(options))
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
    let path = format!("{}?fieldManager={manager}", object_path(kind, namespace, name));
    request(Method::PATCH, path, "application/merge-patch+json", body(&patch))
}

pub(super) fn get(kind: &Kind, namespace: Option<&str>, name: &str) -> Request {
    request(Method::GET, object_path(kind, namespace, name), "", Vec::new())
}

pub(super) fn list_page(kind: &Kind, which: &Listed, limit: usize, page: &str) -> Request {
    let mut path = format!("{}?limit={limit}", kind.collection_path(which.namespace.as_deref()));
    let parameters = [
        ("labelSelector", &*which.label_selector),
        ("fieldSelector", &*which.field_selector),
        ("continue", page),
    ];
    for (name, value) in parameters.into_iter().filter(|(_, value)| !value.is_empty()) {
        path.push_str(&format!("&{name}={}", escape(value)));
    }
    request(Method::GET, path, "", Vec::new())
}

pub(super) fn list_labelled(kind: &Kind, namespace: Option<&str>, label: &str, value: &str) -> Request {
    let label = label.replace('/', "%2F");
    request(
        Method::GET,
        format!("{}?labelSelector={label}%3D{value}", kind.collection_path(namespace)),
        "",
        Vec::new(),
    )
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
            let sent = for_uid(&intent, "u\"1");
            assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), wanted);
        }
        let without = json!({"data": 1});
        assert_eq!(for_uid(&without, "u"), without.to_string().into_bytes());
    }
}
