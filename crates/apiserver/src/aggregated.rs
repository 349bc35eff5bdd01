//! Aggregated discovery: every group, version and resource in one document, with a tag that changes when it does.

use crate::accept::clauses;
use crate::discovery::group_names;
use crate::registry::Served;
use crate::resource::{Resource, Subresource};
use serde_json::{Value, json};
use std::sync::Arc;

/// The media type of the document.
pub(crate) const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// How a client wants to discover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Groups first, resources later.
    Legacy,
    /// All at once.
    Aggregated,
    /// Something else.
    Nothing,
}

/// What an Accept header asks for: the first of its clauses that there is.
pub(crate) fn wanted(accept: &str) -> Wanted {
    if accept.trim().is_empty() {
        return Wanted::Legacy;
    }
    let clauses = clauses(accept);
    let found = clauses.iter().filter(|clause| clause.takes_json()).find_map(|clause| {
        match (clause.parameter("as"), clause.parameter("g"), clause.parameter("v")) {
            ("", _, _) => Some(Wanted::Legacy),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Wanted::Aggregated),
            _ => None,
        }
    });
    found.unwrap_or(Wanted::Nothing)
}

/// The document of `/api` (the core group alone) or of `/apis` (all the others).
pub(crate) fn document(served: &Served, core: bool) -> Value {
    let groups = if core { vec![String::new()] } else { group_names(served) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_way_of_discovery_that_is_served_wins() {
        assert_eq!(wanted(""), Wanted::Legacy);
        assert_eq!(wanted(MEDIA_TYPE), Wanted::Aggregated);
        let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        assert_eq!(wanted(old), Wanted::Nothing);
        assert_eq!(wanted(&format!("{old},application/json")), Wanted::Legacy);
        assert_eq!(wanted(&format!("{MEDIA_TYPE},{old},application/json")), Wanted::Aggregated);
    }
}
