//! What an extension API server says that it serves, as aggregated discovery shows it: pure, and no more of it than discovery has.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What is asked for: all of discovery at once, in the version that the server knows.
pub(crate) const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;\
                                 g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// Whether an answer of this media type is all of discovery at once.
pub(crate) fn is_aggregated(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let parameters: BTreeMap<&str, &str> =
        parts.by_ref().skip(1).filter_map(|parameter| parameter.split_once('=')).collect();
    let is = |name, value| parameters.get(name) == Some(&value);
    is("g", "apidiscovery.k8s.io")
        && is("as", "APIGroupDiscoveryList")
        && (is("v", "v2") || is("v", "v2beta1"))
}

#[derive(Debug, Deserialize)]
struct Groups {
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct Version {
    #[serde(default)]
    version: String,
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Resource {
    resource: String,
    response_kind: ResponseKind,
    scope: String,
    singular_resource: String,
    verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<Subresource>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Subresource {
    subresource: String,
    response_kind: ResponseKind,
    verbs: Vec<String>,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
struct ResponseKind {
    group: String,
    version: String,
    kind: String,
}

#[derive(Debug, Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<Listed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Listed {
    name: String,
    singular_name: String,
    namespaced: bool,
    group: String,
    version: String,
    kind: String,
    verbs: Vec<String>,
    short_names: Vec<String>,
    categories: Vec<String>,
}

/// What is written as a JSON object. A list would pass for one, its items for the fields in their order.
fn object<T: serde::de::DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let fields: Map<String, Value> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
}

/// The entry of one group and version in all of discovery at once; one without resources if the server has none of it.
///
/// # Errors
/// For what is no discovery.
pub(crate) fn all_of(answered: &[u8], group: &str, version: &str) -> Result<Value, String> {
    // Who says nothing says that there is nothing.
    let answered = if answered.is_empty() { b"{}" } else { answered };
    let all: Groups = object(answered)?;
    let of_group = all.items.into_iter().filter(|known| known.metadata.name == group);
    // The last of several counts.
    let mut versions = of_group.flat_map(|known| known.versions);
    let found = versions.rfind(|known| known.version == version);
    entry(found.unwrap_or_default(), version)
}

/// The same, of the older list of the resources of one group and version.
///
/// # Errors
/// For what is no list of resources.
pub(crate) fn legacy(answered: &[u8], version: &str) -> Result<Value, String> {
    let list: ResourceList = object(answered)?;
    let mut resources: Vec<Resource> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let (subresources, whole): (Vec<Listed>, Vec<Listed>) =
        list.resources.into_iter().partition(|listed| listed.name.contains('/'));
    for listed in whole {
        places.insert(listed.name.clone(), resources.len());
        resources.push(Resource {
            response_kind: listed.response_kind(),
            scope: listed.scope(),
            resource: listed.name,
            singular_resource: listed.singular_name,
            verbs: listed.verbs,
            short_names: listed.short_names,
            categories: listed.categories,
            subresources: Vec::new(),
        });
    }
    for listed in subresources {
        let (of, name) = listed.name.split_once('/').unwrap_or_default();
        // One without its resource gets one of which nothing is known.
        let place = *places.entry(of.to_owned()).or_insert_with(|| {
            resources.push(Resource {
                resource: of.to_owned(),
                scope: listed.scope(),
                ..Resource::default()
            });
            resources.len() - 1
        });
        resources[place].subresources.push(Subresource {
            subresource: name.to_owned(),
            response_kind: listed.response_kind(),
            verbs: listed.verbs.clone(),
        });
    }
    entry(Version { version: String::new(), resources }, version)
}

impl Listed {
    fn response_kind(&self) -> ResponseKind {
        ResponseKind { group: self.group.clone(), version: self.version.clone(), kind: self.kind.clone() }
    }

    fn scope(&self) -> String {
        if self.namespaced { "Namespaced" } else { "Cluster" }.to_owned()
    }
}

fn entry(found: Version, version: &str) -> Result<Value, String> {
    let found = Version { version: version.to_owned(), ..found };
    let mut value = serde_json::to_value(found).map_err(|error| error.to_string())?;
    if value["resources"].as_array().is_some_and(Vec::is_empty) {
        value.as_object_mut().and_then(|fields| fields.remove("resources"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn subresources_are_listed_below_their_resources() {
        let list = json!({"resources": [
            {"name": "gadgets/status", "kind": "Gadget", "verbs": ["get"]},
            {"name": "gadgets", "singularName": "gadget", "namespaced": true, "kind": "Gadget", "verbs": ["list"],
                "shortNames": ["g"], "unknown": {"deep": []}},
            {"name": "lost/scale", "kind": "Scale", "group": "autoscaling", "version": "v1", "verbs": []},
        ]});
        assert_eq!(
            legacy(list.to_string().as_bytes(), "v1").unwrap(),
            json!({"version": "v1", "resources": [
                {"resource": "gadgets", "responseKind": {"group": "", "version": "", "kind": "Gadget"},
                    "scope": "Namespaced", "singularResource": "gadget", "verbs": ["list"], "shortNames": ["g"],
                    "subresources": [{"subresource": "status",
                        "responseKind": {"group": "", "version": "", "kind": "Gadget"}, "verbs": ["get"]}]},
                {"resource": "lost", "responseKind": {"group": "", "version": "", "kind": ""}, "scope": "Cluster",
                    "singularResource": "", "verbs": [], "subresources": [{"subresource": "scale",
                        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}, "verbs": []}]},
            ]})
        );
    }

    #[test]
    fn only_its_own_group_and_version_is_taken() {
        let all = json!({"items": [
            {"metadata": {"name": "other"}, "versions": [{"version": "v1", "resources": [{"resource": "pods"}]}]},
            {"metadata": {"name": "mine"}, "versions": [{"version": "v2", "resources": [{"resource": "x"}]}]},
        ]});
        let text = all.to_string();
        let v2 = all_of(text.as_bytes(), "mine", "v2").unwrap();
        assert_eq!(v2["resources"][0]["resource"], "x");
        assert_eq!(all_of(text.as_bytes(), "mine", "v1").unwrap(), json!({"version": "v1"}));
        assert_eq!(all_of(b"", "mine", "v1").unwrap(), json!({"version": "v1"}));
        for wrong in ["{", "[]", r#"{"items": [{"versions": 1}]}"#] {
            assert!(all_of(wrong.as_bytes(), "mine", "v1").is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_at_once_is_known_by_its_media_type() {
        for kind in ACCEPT.split(',') {
            assert!(is_aggregated(kind), "{kind}");
        }
        for kind in
            ["application/json", "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList", ""]
        {
            assert!(!is_aggregated(kind), "{kind}");
        }
    }
}
