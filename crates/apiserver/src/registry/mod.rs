//! Which resources are served: the built-in ones for ever, custom ones as their definitions come and go.

mod built_in;
mod custom;

use crate::facts::FACTS;
use crate::object::text;
use crate::resource::Resource;
use parking_lot::RwLock;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The served resources. Readers take a snapshot; a change makes a new one.
#[derive(Debug)]
pub(crate) struct Registry(RwLock<Arc<Served>>);

/// The served resources at one moment, by group, plural and version.
#[derive(Debug, Default, Clone)]
pub(crate) struct Served {
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
    /// What of a definition decides how its resources are served, by its name: a change of it makes new ones.
    definitions: BTreeMap<String, Value>,
    stamp: u64,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let mut served = Served::default();
        for resource in built_in::resources() {
            served.insert(resource);
        }
        Self(RwLock::new(Arc::new(served)))
    }

    pub(crate) fn served(&self) -> Arc<Served> {
        self.0.read().clone()
    }

    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.served().get(group, version, plural)
    }

    /// Serves a definition as it is now. Watches of what it was before end, if anything changed that they could see.
    pub(crate) fn define(&self, crd: &Value) {
        let name = text(crd, &["metadata", "name"]);
        let seen = serde_json::json!({
            "spec": crd.get("spec"),
            "names": crd.pointer("/status/acceptedNames"),
            "established": crate::crd::is_true(crd, "Established"),
            "deleted": crd.pointer("/metadata/deletionTimestamp"),
        });
        let mut guard = self.0.write();
        if guard.definitions.get(name) == Some(&seen) {
            return;
        }
        let mut next = (**guard).clone();
        next.drop_definition(name);
        next.stamp += 1;
        for resource in custom::resources(crd, next.stamp) {
            // A definition never takes the place of a built-in kind.
            if !FACTS.has(&resource.group, &resource.plural) {
                next.insert(resource);
            }
        }
        next.definitions.insert(name.to_owned(), seen);
        *guard = Arc::new(next);
    }

    /// Serves more than there is from the start, by no definition.
    pub(crate) fn add(&self, resources: impl IntoIterator<Item = Resource>) {
        let mut guard = self.0.write();
        let mut next = (**guard).clone();
        next.stamp += 1;
        for resource in resources {
            next.insert(Resource { stamp: next.stamp, ..resource });
        }
        *guard = Arc::new(next);
    }

    /// Serves a definition no more.
    pub(crate) fn forget(&self, name: &str) {
        let mut guard = self.0.write();
        let mut next = (**guard).clone();
        next.drop_definition(name);
        *guard = Arc::new(next);
    }
}

impl Served {
    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.resources.get(&(group.to_owned(), plural.to_owned(), version.to_owned())).cloned()
    }

    /// All of them, by group and plural.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// A group's versions, the preferred one first.
    pub(crate) fn versions(&self, group: &str) -> Vec<String> {
        let mut versions: Vec<String> = self
            .all()
            .filter(|resource| resource.group == group)
            .map(|resource| resource.version.clone())
            .collect();
        versions.sort_by_key(|version| std::cmp::Reverse(rank(version)));
        versions.dedup();
        versions
    }

    /// The groups beside the core group: the built-in ones first, as the reference orders them.
    pub(crate) fn group_names(&self) -> Vec<String> {
        let built_in = FACTS.groups.iter().map(|group| group.name.clone()).filter(|name| !name.is_empty());
        let mut names: Vec<String> = built_in.collect();
        let custom: BTreeSet<&str> = self
            .all()
            .filter(|resource| resource.custom)
            .map(|resource| resource.group.as_str())
            .filter(|name| !names.iter().any(|known| known == name))
            .collect();
        let custom: Vec<String> = custom.into_iter().map(str::to_owned).collect();
        names.extend(custom);
        names
    }

    fn insert(&mut self, resource: Resource) {
        let key = (resource.group.clone(), resource.plural.clone(), resource.version.clone());
        self.resources.insert(key, Arc::new(resource));
    }

    fn drop_definition(&mut self, name: &str) {
        self.definitions.remove(name);
        self.resources.retain(|_, resource| {
            let stays = !resource.custom || resource.definition != name;
            if !stays {
                resource.ended.cancel();
            }
            stays
        });
    }
}

/// How versions are preferred: stable ones, then beta, then alpha, the highest of each first; then all else by name.
pub(crate) fn rank(version: &str) -> (u8, u64, u64, String) {
    let number = |text: &str| text.parse::<u64>().ok();
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0, version.to_owned()) };
    for (word, class) in [("beta", 2), ("alpha", 1)] {
        if let Some((major, minor)) = rest.split_once(word)
            && let (Some(major), Some(minor)) = (number(major), number(minor))
        {
            return (class, major, minor, String::new());
        }
    }
    match number(rest) {
        Some(major) => (3, major, 0, String::new()),
        None => (0, 0, 0, version.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn stable_versions_come_before_beta_and_alpha() {
        let mut versions = vec!["v1", "v1beta2", "v10", "foo", "v2alpha1", "v1beta10", "v2"];
        versions.sort_by_key(|version| std::cmp::Reverse(rank(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta10", "v1beta2", "v2alpha1", "foo"]);
    }
}
