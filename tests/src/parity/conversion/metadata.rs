//! What a conversion may change about an object: labels and annotations, and no other metadata.

use super::about;
use crate::compare::Request;
use crate::parity::Behaviour;
use serde_json::{Value, json};

/// What a webhook makes of the metadata of an object.
const CHANGES: &[(&str, &str, &str)] = &[
    ("another name", "/metadata/name", r#""other""#),
    ("no name", "/metadata/name", "null"),
    ("another namespace", "/metadata/namespace", r#""other""#),
    ("another UID", "/metadata/uid", r#""other""#),
    ("no UID", "/metadata/uid", "null"),
    ("another generation", "/metadata/generation", "77"),
    ("another time of creation", "/metadata/creationTimestamp", "null"),
    ("a finalizer", "/metadata/finalizers", r#"["example.com/one"]"#),
    (
        "an owner",
        "/metadata/ownerReferences",
        r#"[{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}]"#,
    ),
    ("a time of deletion", "/metadata/deletionTimestamp", r#""2020-01-01T00:00:00Z""#),
    ("a version", "/metadata/resourceVersion", r#""12345""#),
    ("no managed fields", "/metadata/managedFields", "null"),
    ("unknown metadata", "/metadata/unknown", "1"),
    ("other labels", "/metadata/labels", r#"{"a": "b"}"#),
    ("no labels", "/metadata/labels", "null"),
    ("empty labels", "/metadata/labels", "{}"),
    ("annotations", "/metadata/annotations", r#"{"a": "b"}"#),
    ("invalid labels", "/metadata/labels", r#"{"c": "!"}"#),
    ("invalid annotations", "/metadata/annotations", r#"{"-a": "b"}"#),
    ("labels that are numbers", "/metadata/labels", r#"{"a": 1}"#),
    ("labels that are a list", "/metadata/labels", r#"["a"]"#),
    ("annotations that are a text", "/metadata/annotations", r#""a""#),
    ("no metadata", "/metadata", "null"),
    ("metadata that is a text", "/metadata", r#""a""#),
    ("another kind", "/kind", r#""Gadget""#),
    ("no kind", "/kind", "null"),
    ("the version that it had", "/apiVersion", r#""<group>/v1""#),
    ("a version that there is not", "/apiVersion", r#""<group>/v3""#),
    ("another group", "/apiVersion", r#""example.com/v2""#),
    ("no version", "/apiVersion", "null"),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let one = |(name, path, value): &(&str, &'static str, &'static str)| {
        let (path, value) = (*path, *value);
        about(&format!("an object comes back with {name}"), move |mut script, widgets| async move {
            let value: Value = serde_json::from_str(&value.replace("<group>", &widgets.group))?;
            widgets.spoil(move |objects| {
                for object in objects {
                    put(object, path, &value);
                }
            });
            // Made when its conversion is spoilt already: the reference may patch what its cache has.
            widgets.make(&mut script, &["a"]).await?;
            let mut answer = script.quiet(Request::new("GET", widgets.two("a"))).await?;
            // An object without a kind is told whole, with the times of its making.
            if let Some(told) =
                answer.body["message"].as_str().filter(|told| told.contains("'Kind' is missing"))
            {
                answer.body["message"] = json!(told.split(" in '").next());
            }
            script.note(&answer);
            script.get(widgets.one("a")).await?;
            if path == "/kind" {
                return Ok(script);
            }
            script.merge(&widgets.two("a"), json!({"spec": {"amount": 4}})).await?;
            Ok(script)
        })
    };
    CHANGES.iter().map(one).collect()
}

/// Sets what is at a path; null removes it.
fn put(object: &mut Value, path: &str, value: &Value) {
    let (place, name) = path.rsplit_once('/').unwrap_or_default();
    let Some(fields) = object.pointer_mut(place).and_then(Value::as_object_mut) else { return };
    match value {
        Value::Null => drop(fields.remove(name)),
        value => drop(fields.insert(name.to_owned(), value.clone())),
    }
}
