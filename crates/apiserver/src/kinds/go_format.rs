//! Values as Go formats them in errors: structs by the names of their Go fields, in their order.

use super::text;
use serde_json::{Value, json};

/// Members that are there, in this order.
fn ordered(value: &Value, fields: &[&str]) -> String {
    let members = fields.iter().filter_map(|field| Some(format!("\"{field}\":{}", value.get(field)?)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Texts, which are empty if they are not there.
fn texts(value: &Value, fields: &[(&str, &str)]) -> String {
    let members = fields.iter().map(|(go, field)| format!("\"{go}\":{}", json!(text(value, &[field]))));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

pub(super) fn selector(selector: &Value) -> String {
    if selector.is_null() {
        "null".to_owned()
    } else {
        ordered(selector, &["matchLabels", "matchExpressions"])
    }
}

pub(super) fn role(role: &Value) -> String {
    texts(role, &[("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name")])
}

pub(super) fn parent(parent: &Value) -> String {
    texts(
        parent,
        &[("Group", "group"), ("Resource", "resource"), ("Namespace", "namespace"), ("Name", "name")],
    )
}

pub(super) fn attachment(spec: &Value) -> String {
    let null = Value::Null;
    let source = |field: &str| spec.get("source").and_then(|source| source.get(field)).unwrap_or(&null);
    format!(
        "{{\"Attacher\":{},\"Source\":{{\"PersistentVolumeName\":{},\"InlineVolumeSpec\":{}}},\"NodeName\":{}}}",
        json!(text(spec, &["attacher"])),
        source("persistentVolumeName"),
        source("inlineVolumeSpec"),
        json!(text(spec, &["nodeName"])),
    )
}
