//! The resources that a CRD defines: one per served version.

use crate::conversion_webhook::ConversionWebhook;
use crate::crd::{flag, is_true, scale, validate, versions};
use crate::kinds::field_selectors::Absent;
use crate::object::text;
use crate::resource::{Resource, Selectable, Subresource};
use crate::table;
use base64::Engine;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_schema::Schema;
use windlass_schema::rules::Rules;

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn owned(items: &[&str]) -> Vec<String> {
    items.iter().map(|&item| item.to_owned()).collect()
}

/// One resource per served version; none before the definition is established. `stamp` tells them from earlier ones.
pub(crate) fn resources(crd: &Value, stamp: u64) -> Vec<Resource> {
    if !is_true(crd, "Established") {
        return Vec::new();
    }
    let group = text(crd, &["spec", "group"]);
    let name = |field: &str| text(crd, &["status", "acceptedNames", field]).to_owned();
    let stored = versions(crd).iter().find(|version| flag(version, "storage"));
    let stored_as = stored.map(|version| format!("{group}/{}", text(version, &["name"]))).unwrap_or_default();
    let untouched =
        crd.pointer("/metadata/generation").and_then(Value::as_i64) == Some(1) && versions(crd).len() == 1;
    let schemas = Arc::new(schemas(crd, group));
    let storage_hash = storage_hash(crd, group);
    let stored_selectable: Arc<[Selectable]> = stored.map(selectable).unwrap_or_default().into();
    let api_versions: Arc<[String]> =
        versions(crd).iter().map(|version| format!("{group}/{}", text(version, &["name"]))).collect();
    let conversion = crd.pointer("/spec/conversion").and_then(ConversionWebhook::new).map(Arc::new);
    let served = versions(crd).iter().filter(|version| flag(version, "served"));
    served
        .map(|version| {
            let schema = schemas.get(&format!("{group}/{}", text(version, &["name"]))).cloned();
            let validations = schema.as_deref().and_then(Rules::compile).map(Arc::new);
            Resource {
                group: group.to_owned(),
                version: text(version, &["name"]).to_owned(),
                kind: name("kind"),
                list_kind: name("listKind"),
                plural: name("plural"),
                singular: name("singular"),
                namespaced: text(crd, &["spec", "scope"]) == "Namespaced",
                short_names: strings(crd.pointer("/status/acceptedNames/shortNames")),
                categories: strings(crd.pointer("/status/acceptedNames/categories")),
                verbs: owned(&[
                    "delete",
                    "deletecollection",
                    "get",
                    "list",
                    "patch",
                    "create",
                    "update",
                    "watch",
                ]),
                subresources: subresources(crd, version),
                schema,
                validations,
                scale: scale::paths(version, group, versions(crd)).map(Arc::new),
                conversion: conversion.clone(),
                api_versions: api_versions.clone(),
                storage_hash: storage_hash.clone(),
                selectable: selectable(version),
                stored_selectable: stored_selectable.clone(),
                custom: true,
                stored_as: stored_as.clone(),
                schemas: schemas.clone(),
                definition: text(crd, &["metadata", "name"]).to_owned(),
                stamp,
                pristine: untouched,
                terminating: !text(crd, &["metadata", "deletionTimestamp"]).is_empty(),
                deprecation: deprecation(crd, version),
                columns: table::custom_columns(version).into(),
                ..Resource::default()
            }
        })
        .collect()
}

fn schemas(crd: &Value, group: &str) -> BTreeMap<String, Arc<Schema>> {
    let schema =
        |version| Some((format!("{group}/{}", text(version, &["name"])), validate::schema_of(version)?));
    versions(crd).iter().filter_map(schema).collect()
}

fn subresources(crd: &Value, version: &Value) -> Vec<Subresource> {
    let has = |name: &str| version.pointer("/subresources")?.get(name).filter(|found| !found.is_null());
    let kind = text(crd, &["status", "acceptedNames", "kind"]);
    let group = text(crd, &["spec", "group"]);
    let all = [("status", group, text(version, &["name"]), kind), ("scale", "autoscaling", "v1", "Scale")];
    let subresource = |(name, group, version, kind): (&str, &str, &str, &str)| Subresource {
        name: name.to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        verbs: owned(&["get", "patch", "update"]),
    };
    all.into_iter().filter(|(name, ..)| has(name).is_some()).map(subresource).collect()
}

/// What discovery tells of the version that objects are stored in: enough to see that it changed.
fn storage_hash(crd: &Value, group: &str) -> String {
    let stored = versions(crd).iter().find(|version| flag(version, "storage") && flag(version, "served"));
    let Some(stored) = stored else { return String::new() };
    let name = format!("{group}/{}/{}", text(stored, &["name"]), text(crd, &["spec", "names", "kind"]));
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&digest.as_ref()[..8])
}

fn selectable(version: &Value) -> Vec<Selectable> {
    let fields = version.get("selectableFields").and_then(Value::as_array).into_iter().flatten();
    fields
        .map(|field| {
            let label = text(field, &["jsonPath"]).trim_start_matches('.').to_owned();
            let path = label.split('.').map(str::to_owned).collect();
            Selectable { label, path, absent: Absent::Text("") }
        })
        .collect()
}

fn deprecation(crd: &Value, version: &Value) -> Option<String> {
    if !flag(version, "deprecated") {
        return None;
    }
    let group_version = format!("{}/{}", text(crd, &["spec", "group"]), text(version, &["name"]));
    let kind = text(crd, &["status", "acceptedNames", "kind"]);
    match version.get("deprecationWarning").and_then(Value::as_str) {
        Some(warning) => Some(warning.to_owned()),
        None => Some(format!("{group_version} {kind} is deprecated")),
    }
}
