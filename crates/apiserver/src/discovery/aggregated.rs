//! Aggregated discovery: every group, version and resource in one document, with a tag that changes when it does.

use crate::aggregation::{Aggregation, GROUP, built_in_priority};
use crate::registry::{Served, rank};
use crate::resource::{Resource, Subresource};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The media type of the document.
pub(crate) const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// How groups and versions are preferred that say nothing of it: those of CRDs.
const USUAL: (i64, i64) = (1000, 100);

/// The document of `/api` (the core group alone) or of `/apis` (all the others).
pub(crate) fn document(served: &Served, aggregation: &Aggregation, core: bool) -> Value {
    let mut groups: BTreeMap<String, Vec<Version>> = BTreeMap::new();
    for (group, version, shown) in extensions(aggregation) {
        groups.entry(group).or_default().push(Version { shown: Some(shown), ..version });
    }
    for group in served.group_names().into_iter().chain([String::new()]) {
        for name in served.versions(&group) {
            let versions = groups.entry(group.clone()).or_default();
            // What an extension API server serves is served by that one.
            if !versions.iter().any(|known| known.name == name) {
                let priority = built_in_priority(&group, &name).unwrap_or(USUAL);
                versions.push(Version { name, priority, shown: None });
            }
        }
    }
    groups.retain(|group, _| group.is_empty() == core);
    let mut groups: Vec<(String, Vec<Version>)> = groups.into_iter().collect();
    let priority = |(group, versions): &(String, Vec<Version>)| {
        let highest = versions.iter().map(|version| version.priority.0).max();
        (group == GROUP, highest)
    };
    groups.sort_by_key(|known| Reverse(priority(known)));
    let items: Vec<Value> =
        groups.into_iter().map(|(group, versions)| group_of(served, &group, versions)).collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

/// A version of a group.
struct Version {
    name: String,
    /// Of the group, and of the version in it.
    priority: (i64, i64),
    /// What an extension API server says of it.
    shown: Option<Value>,
}

/// What extension API servers say of their groups and versions, those that were asked.
fn extensions(aggregation: &Aggregation) -> Vec<(String, Version, Value)> {
    let services = aggregation.services();
    let known = services.remotes().filter_map(|registered| {
        let shown = aggregation.documents(&registered.name).discovery?;
        let priority = (registered.group_priority, registered.version_priority);
        let version = Version { name: registered.version.clone(), priority, shown: None };
        Some((registered.group.clone(), version, (*shown).clone()))
    });
    known.collect()
}

fn group_of(served: &Served, group: &str, mut versions: Vec<Version>) -> Value {
    versions.sort_by_key(|version| Reverse((version.priority.1, rank(&version.name))));
    let version = |version: Version| match version.shown {
        Some(shown) => shown,
        None => {
            let known = served.all().filter(|known| known.group == group && known.version == version.name);
            let resources: Vec<Value> = known.map(resource).collect();
            json!({"version": version.name, "resources": resources, "freshness": "Current"})
        }
    };
    let versions: Vec<Value> = versions.into_iter().map(version).collect();
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
