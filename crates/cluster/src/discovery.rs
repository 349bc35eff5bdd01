//! Every kind that the server has, as it says itself: what controllers that work on all of them go by.

use kube::Client;
use kube::core::discovery::v2::APIGroupDiscoveryList;
use std::collections::{BTreeSet, HashMap};
use windlass::Kind;

/// A kind that is served, in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) kind: Kind,
    verbs: Vec<String>,
    /// Whether it is the version that the server would rather have used.
    preferred: bool,
    /// Whether it has a `scale`.
    pub(crate) scales: bool,
}

impl Served {
    /// Whether all of these can be done with it.
    pub(crate) fn can(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|known| known == verb))
    }
}

/// Every kind that is served, in every version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    all: Vec<Served>,
    /// By `apiVersion/Kind`.
    by_name: HashMap<String, usize>,
    /// Groups and versions of which the server knows only what was.
    pub(crate) stale: Vec<String>,
}

impl Catalog {
    /// Asks the server.
    pub(crate) async fn discover(client: &Client) -> kube::Result<Self> {
        let core = client.list_core_api_versions_aggregated().await?;
        let others = client.list_api_groups_aggregated().await?;
        Ok(Self::of([core, others]))
    }

    fn of(lists: impl IntoIterator<Item = APIGroupDiscoveryList>) -> Self {
        let mut catalog = Self::default();
        for group in lists.into_iter().flat_map(|list| list.items) {
            let name = group.metadata.and_then(|meta| meta.name).unwrap_or_default();
            let mut plurals = BTreeSet::new();
            for version in group.versions {
                let number = version.version.unwrap_or_default();
                if version.freshness.as_deref() == Some("Stale") {
                    catalog.stale.push(format!("{name}/{number}"));
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
                    catalog.by_name.insert(full_name(&kind.api_version(), &kind.kind), catalog.all.len());
                    let scales =
                        resource.subresources.iter().any(|it| it.subresource.as_deref() == Some("scale"));
                    // Versions come in the order of preference.
                    let preferred = plurals.insert(plural);
                    catalog.all.push(Served { kind, verbs: resource.verbs, preferred, scales });
                }
            }
        }
        catalog
    }

    /// A kind by what objects say of themselves.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> Option<&Served> {
        self.by_name.get(&full_name(api_version, kind)).map(|at| &self.all[*at])
    }

    /// Every version of every kind.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Served> {
        self.all.iter()
    }

    /// Every kind once, in the version that the server prefers.
    pub(crate) fn preferred(&self) -> impl Iterator<Item = &Served> {
        self.all.iter().filter(|served| served.preferred)
    }
}

/// One word for a kind in a version.
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
        let catalog = Catalog::of([serde_json::from_value(list).unwrap()]);
        let preferred: Vec<&str> = catalog.preferred().map(|served| &*served.kind.version).collect();
        assert_eq!(preferred, ["v2"]);
        assert_eq!(catalog.iter().count(), 2);
        let old = catalog.find("a.b/v1", "Widget").unwrap();
        assert!(old.can(&["list"]) && !old.can(&["list", "delete"]) && old.scales);
        assert!(catalog.find("a.b/v3", "Widget").is_none());
        assert_eq!(catalog.stale, ["a.b/v1"]);
        assert_eq!((group_of("a.b/v1"), group_of("v1")), ("a.b", ""));
    }
}
