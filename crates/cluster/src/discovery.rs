//! Every kind that the API server serves, from aggregated discovery: for the controllers that work on all of them.

use kube::Client;
use kube::core::discovery::v2::APIGroupDiscoveryList;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use windlass::Kind;

/// Where CRDs are.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A kind that is served, in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServedKind {
    pub(crate) kind: Kind,
    verbs: Vec<String>,
    /// Whether it is the version that the API prefers, or [that is stored](Discovery::discover_stored).
    preferred: bool,
    /// Whether it has the scale subresource.
    pub(crate) has_scale: bool,
}

impl ServedKind {
    /// Whether it supports all of these verbs.
    pub(crate) fn supports(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|known| known == verb))
    }
}

/// Every kind that is served, in every version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Discovery {
    all: Vec<ServedKind>,
    /// By `apiVersion/Kind`.
    by_name: HashMap<String, usize>,
    /// Groups and versions whose discovery is stale.
    pub(crate) stale: Vec<String>,
}

impl Discovery {
    /// Reads discovery.
    pub(crate) async fn discover(client: &Client) -> kube::Result<Self> {
        let core = client.list_core_api_versions_aggregated().await?;
        let others = client.list_api_groups_aggregated().await?;
        Ok(Self::of([core, others]))
    }

    /// The same, but prefers the version that a custom resource is stored in where a webhook converts it: to read and delete it must not
    /// depend on a webhook that may be gone.
    pub(crate) async fn discover_stored(client: &Client) -> kube::Result<Self> {
        let mut discovery = Self::discover(client).await?;
        // Groups of CRDs have a domain; most have one version, and then there is nothing to choose.
        let several = |served: &ServedKind| !served.preferred && served.kind.group.contains('.');
        if discovery.all.iter().any(several) {
            let request = http::Request::get(format!("{DEFINITIONS}?resourceVersion=0")).body(Vec::new());
            let definitions: Value = client.request(request.map_err(kube::Error::HttpError)?).await?;
            discovery.prefer_stored(&definitions);
        }
        Ok(discovery)
    }

    fn prefer_stored(&mut self, definitions: &Value) {
        for definition in definitions["items"].as_array().into_iter().flatten() {
            let spec = &definition["spec"];
            if spec["conversion"]["strategy"] != "Webhook" {
                continue;
            }
            let (group, plural) = (spec["group"].as_str(), spec["names"]["plural"].as_str());
            let versions = spec["versions"].as_array().into_iter().flatten();
            let stored =
                versions.filter(|version| version["storage"] == true).find_map(|it| it["name"].as_str());
            let same = |served: &&mut ServedKind| {
                Some(&*served.kind.group) == group && Some(&*served.kind.plural) == plural
            };
            // One that is stored and not served is read as the API prefers.
            if self.all.iter_mut().filter(same).any(|served| Some(&*served.kind.version) == stored) {
                for served in self.all.iter_mut().filter(same) {
                    served.preferred = Some(&*served.kind.version) == stored;
                }
            }
        }
    }

    fn of(lists: impl IntoIterator<Item = APIGroupDiscoveryList>) -> Self {
        let mut discovery = Self::default();
        for group in lists.into_iter().flat_map(|list| list.items) {
            let name = group.metadata.and_then(|meta| meta.name).unwrap_or_default();
            let mut plurals = BTreeSet::new();
            for version in group.versions {
                let number = version.version.unwrap_or_default();
                if version.freshness.as_deref() == Some("Stale") {
                    discovery.stale.push(format!("{name}/{number}"));
                }
                for resource in version.resources {
                    let (Some(plural), Some(kind)) =
                        (resource.resource, resource.response_kind.and_then(|kind| kind.kind))
                    else {
                        continue;
                    };
                    let kind = Kind {
                        group: name.clone().into(),
                        version: number.clone().into(),
                        kind: kind.into(),
                        namespaced: resource.scope.as_deref() == Some("Namespaced"),
                        plural: plural.clone().into(),
                    };
                    discovery.by_name.insert(full_name(&kind.api_version(), &kind.kind), discovery.all.len());
                    let has_scale =
                        resource.subresources.iter().any(|it| it.subresource.as_deref() == Some("scale"));
                    // Versions come in the order of preference.
                    let preferred = plurals.insert(plural);
                    discovery.all.push(ServedKind { kind, verbs: resource.verbs, preferred, has_scale });
                }
            }
        }
        discovery
    }

    /// A kind by the `apiVersion` and `kind` of an object.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> Option<&ServedKind> {
        self.by_name.get(&full_name(api_version, kind)).map(|at| &self.all[*at])
    }

    /// Every version of every kind.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ServedKind> {
        self.all.iter()
    }

    /// Every kind once, in the version that the API prefers.
    pub(crate) fn preferred(&self) -> impl Iterator<Item = &ServedKind> {
        self.all.iter().filter(|served| served.preferred)
    }
}

/// The key of a kind in a version.
pub(crate) fn full_name(api_version: &str, kind: &str) -> String {
    format!("{api_version}/{kind}")
}

/// The group in `group/version`; the core group's is empty.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_kind_is_known_in_every_version_and_preferred_in_one() {
        let resource = |verbs: &[&str]| {
            json!({"resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Namespaced", "verbs": verbs,
                "subresources": [{"subresource": "scale"}]})
        };
        let list = json!({"items": [{"metadata": {"name": "a.b"}, "versions": [
            {"version": "v2", "resources": [resource(&["list", "delete"])], "freshness": "Current"},
            {"version": "v1", "resources": [resource(&["list"])], "freshness": "Stale"},
        ]}]});
        let discovery = Discovery::of([serde_json::from_value(list).unwrap()]);
        let preferred: Vec<&str> = discovery.preferred().map(|served| &*served.kind.version).collect();
        assert_eq!(preferred, ["v2"]);
        assert_eq!(discovery.iter().count(), 2);
        let old = discovery.find("a.b/v1", "Widget").unwrap();
        assert!(old.supports(&["list"]) && !old.supports(&["list", "delete"]) && old.has_scale);
        assert!(discovery.find("a.b/v3", "Widget").is_none());
        assert_eq!(discovery.stale, ["a.b/v1"]);
        assert_eq!((group_of("a.b/v1"), group_of("v1")), ("a.b", ""));
    }

    #[test]
    fn what_a_webhook_converts_is_preferred_as_it_is_stored() {
        let resource = json!({"resource": "widgets", "responseKind": {"kind": "Widget"}, "verbs": ["list"]});
        let list = json!({"items": [{"metadata": {"name": "a.b"}, "versions": [
            {"version": "v2", "resources": [resource]}, {"version": "v1", "resources": [resource]},
        ]}]});
        let preferred = |stored: &str, strategy: &str| {
            let mut discovery = Discovery::of([serde_json::from_value(list.clone()).unwrap()]);
            discovery.prefer_stored(&json!({"items": [{"spec": {
                "group": "a.b", "names": {"plural": "widgets"}, "conversion": {"strategy": strategy},
                "versions": [{"name": "v2", "storage": false}, {"name": stored, "storage": true}],
            }}]}));
            discovery.preferred().map(|served| served.kind.version.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(preferred("v1", "Webhook"), ["v1"]);
        assert_eq!(preferred("v1", "None"), ["v2"]);
        assert_eq!(preferred("v0", "Webhook"), ["v2"]);
    }
}
