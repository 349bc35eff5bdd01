//! A rule of a role: which actions it allows, and which other rules it covers.

use crate::authorization::{Attributes, On};
use serde::Deserialize;

const ALL: &str = "*";

/// One rule of a Role or a ClusterRole.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PolicyRule {
    #[serde(deserialize_with = "or_empty")]
    pub(crate) verbs: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(deserialize_with = "or_empty", rename = "nonResourceURLs")]
    pub(crate) non_resource_urls: Vec<String>,
}

/// A list that is null is an empty one.
fn or_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl PolicyRule {
    /// Everything on every resource, and on every path.
    pub(crate) fn full_authority() -> [Self; 2] {
        let all = || vec![ALL.to_owned()];
        [
            Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), non_resource_urls: all(), ..Self::default() },
        ]
    }

    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        let has = |list: &[String], one: &str| list.iter().any(|known| known == ALL || known == one);
        match asked.on {
            On::Resource(on) => {
                has(&self.verbs, asked.verb)
                    && has(&self.api_groups, on.group)
                    && self.resources.iter().any(|known| names(known, on.resource, on.subresource))
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|name| name == on.name))
            }
            On::Path(path) => {
                has(&self.verbs, asked.verb)
                    && self.non_resource_urls.iter().any(|known| path_covers(known, path))
            }
        }
    }

    /// The rules with one verb, resource and name each that say the same.
    pub(super) fn broken_down(&self) -> Vec<Self> {
        let one = |text: &String| vec![text.clone()];
        let mut rules = Vec::new();
        let names = match self.resource_names.as_slice() {
            [] => vec![Vec::new()],
            names => names.iter().map(one).collect(),
        };
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    rules.extend(names.iter().map(|name| Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        resource_names: name.clone(),
                        non_resource_urls: Vec::new(),
                    }));
                }
            }
        }
        for url in &self.non_resource_urls {
            rules.extend(self.verbs.iter().map(|verb| Self {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..Self::default()
            }));
        }
        rules
    }

    /// Whether this allows all that a rule which was broken down does.
    pub(super) fn covers(&self, part: &Self) -> bool {
        let all = |list: &[String], wanted: &[String]| {
            list.iter().any(|known| known == ALL) || wanted.iter().all(|one| list.contains(one))
        };
        let resource = |wanted: &String| {
            self.resources.contains(wanted)
                || wanted.split_once('/').is_some_and(|(_, subresource)| {
                    self.resources.iter().any(|known| known.strip_prefix("*/") == Some(subresource))
                })
        };
        let url = |wanted: &String| self.non_resource_urls.iter().any(|known| path_covers(known, wanted));
        all(&self.verbs, &part.verbs)
            && all(&self.api_groups, &part.api_groups)
            && (self.resources.iter().any(|known| known == ALL) || part.resources.iter().all(resource))
            && part.non_resource_urls.iter().all(url)
            && (self.resource_names.is_empty()
                || !part.resource_names.is_empty()
                    && part.resource_names.iter().all(|name| self.resource_names.contains(name)))
    }
}

/// Whether a rule's resource, such as `pods`, `pods/log`, `*/scale` or `*`, names this one.
fn names(known: &str, resource: &str, subresource: &str) -> bool {
    if known == ALL {
        return true;
    }
    match known.split_once('/') {
        // What is asked for may have several slashes, and a resource that is asked about in a review may have one itself.
        _ if subresource.is_empty() => known == resource,
        Some((ALL, below)) if below == subresource => true,
        _ => known.strip_prefix(resource).and_then(|rest| rest.strip_prefix('/')) == Some(subresource),
    }
}

fn path_covers(known: &str, path: &str) -> bool {
    known == path || known.ends_with('*') && path.starts_with(known.trim_end_matches('*'))
}
