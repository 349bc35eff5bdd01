//! Aggregated discovery: every group, version and resource in one document, with a tag that changes when it does.

use crate::registry::Served;
use crate::resource::{Resource, Subresource};
use serde_json::{Value, json};
use std::sync::Arc;

/// The media type of the document.
pub(crate) const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The document of `/api` (the core group alone) or of `/apis` (all the others).
pub(crate) fn document(served: &Served, core: bool) -> Value {
    let groups = if core { vec![String::new()] } else { served.group_names() };
    let items: Vec<Value> = groups.iter().map(|group| group_of(served, group)).collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn group_of(served: &Served, group: &str) -> Value {
    let version = |version: &String| {
        let resources = served.all().filter(|known| known.group == group && known.version == *version);
        let resources: Vec<Value> = resources.map(resource).collect();
        json!({"version": version, "resources": resources, "freshness": "Current"})
    };
    let versions: Vec<Value> = served.versions(group).iter().map(version).collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({"metadata": metadata, "versions": versions})
}

fn resource(resource: &Arc<Resource>) -> Value {
    // Built-in kinds leave out the group and version that they are listed under.
    let kind = |group: &str, version: &str, kind: &str| {
        let same = !resource.custom && (group, version) == (&*resource.group, &*resource.version);
        let (group, version) = if same { ("", "") } else { (group, version) };
        json!({"group": group, "version": version, "kind": kind})
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let subresource = |sub: &Subresource| {
        json!({
            "subresource": sub.name, "responseKind": kind(&sub.group, &sub.version, &sub.kind), "verbs": sub.verbs,
        })
    };
    if !resource.subresources.is_empty() {
        entry["subresources"] = resource.subresources.iter().map(subresource).collect();
    }
    entry
}
