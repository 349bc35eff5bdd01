//! Which requests belong to a FlowSchema.

use super::metrics::Counts;
use crate::authorization::{Attributes, On, ResourceAttributes};
use crate::request::Identity;
use http::HeaderValue;
use serde::Deserialize;
use std::sync::Arc;

/// A FlowSchema, as far as it decides.
pub(super) struct FlowSchema {
    pub(super) name: String,
    pub(super) uid: HeaderValue,
    /// Less comes first.
    pub(super) precedence: i64,
    /// The name of its priority level.
    pub(super) level: String,
    pub(super) counts: Arc<Counts>,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Object {
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    matching_precedence: i64,
    priority_level_configuration: Reference,
    #[serde(default)]
    rules: Option<Vec<Rule>>,
}

#[derive(Deserialize)]
struct Reference {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    subjects: Vec<Subject>,
    resource_rules: Vec<ResourceRule>,
    non_resource_rules: Vec<NonResourceRule>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    kind: String,
    user: Named,
    group: Named,
    service_account: Named,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    name: String,
    namespace: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    cluster_scope: bool,
    namespaces: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NonResourceRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
}

impl FlowSchema {
    /// From its JSON; none if that says nothing.
    pub(super) fn read(name: &str, uid: &str, json: &[u8], counts: Arc<Counts>) -> Option<Self> {
        let Object { spec } = serde_json::from_slice(json).ok()?;
        Some(Self {
            name: name.to_owned(),
            uid: HeaderValue::from_str(uid).ok()?,
            precedence: spec.matching_precedence,
            level: spec.priority_level_configuration.name,
            counts,
            rules: spec.rules.unwrap_or_default(),
        })
    }

    pub(super) fn matches(&self, asked: &Attributes<'_>) -> bool {
        self.rules.iter().any(|rule| {
            rule.subjects.iter().any(|subject| subject.matches(asked.identity))
                && match asked.on {
                    On::Resource(on) => rule.resource_rules.iter().any(|rule| rule.matches(asked.verb, &on)),
                    On::Path(path) => {
                        rule.non_resource_rules.iter().any(|rule| rule.matches(asked.verb, path))
                    }
                }
        })
    }
}

impl Subject {
    fn matches(&self, identity: &Identity) -> bool {
        match self.kind.as_str() {
            "User" => self.user.name == "*" || self.user.name == identity.user,
            "Group" => self.group.name == "*" || identity.groups.contains(&self.group.name),
            "ServiceAccount" => {
                let account = identity.user.strip_prefix("system:serviceaccount:");
                let name = account
                    .and_then(|account| account.strip_prefix(self.service_account.namespace.as_str()))
                    .and_then(|rest| rest.strip_prefix(':'));
                name.is_some_and(|name| self.service_account.name == "*" || self.service_account.name == name)
            }
            _ => false,
        }
    }
}

impl ResourceRule {
    fn matches(&self, verb: &str, on: &ResourceAttributes<'_>) -> bool {
        let of_resource = || match on.subresource {
            "" => contains(&self.resources, on.resource),
            subresource => {
                let is_it = |known: &String| {
                    let rest = known.strip_prefix(on.resource).and_then(|rest| rest.strip_prefix('/'));
                    rest == Some(subresource)
                };
                is_all(&self.resources) || self.resources.iter().any(is_it)
            }
        };
        let in_scope = || match on.namespace {
            "" => self.cluster_scope,
            namespace => contains(&self.namespaces, namespace),
        };
        contains(&self.verbs, verb) && of_resource() && contains(&self.api_groups, on.group) && in_scope()
    }
}

impl NonResourceRule {
    fn matches(&self, verb: &str, path: &str) -> bool {
        let of_path = |known: &String| {
            let prefix = known.strip_suffix('*').unwrap_or(known);
            let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
            known == "*"
                || known == path
                || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
        };
        contains(&self.verbs, verb) && self.non_resource_urls.iter().any(of_path)
    }
}

fn is_all(list: &[String]) -> bool {
    matches!(list, [all] if all == "*")
}

/// Whether a word, or all of them, are meant.
fn contains(list: &[String], word: &str) -> bool {
    is_all(list) || list.iter().any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_meant_with_all_below_them() {
        let rule =
            |url: &str| NonResourceRule { verbs: vec!["*".into()], non_resource_urls: vec![url.into()] };
        assert!(rule("*").matches("get", "/a"));
        assert!(rule("/healthz").matches("get", "/healthz"));
        assert!(rule("/healthz").matches("get", "/healthz/ping"));
        assert!(rule("/healthz/*").matches("get", "/healthz/ping"));
        assert!(!rule("/healthz").matches("get", "/healthzz"));
    }

    #[test]
    fn accounts_are_meant_by_name_or_by_namespace() {
        let subject = |namespace: &str, name: &str| Subject {
            kind: "ServiceAccount".into(),
            service_account: Named { name: name.into(), namespace: namespace.into() },
            ..Subject::default()
        };
        let robot = Identity::service_account("shop", "robot");
        assert!(subject("shop", "*").matches(&robot));
        assert!(subject("shop", "robot").matches(&robot));
        assert!(!subject("sho", "*").matches(&robot));
        assert!(!subject("shop", "robo").matches(&robot));
        assert!(!subject("shop", "*").matches(&Identity::user("shop")));
    }
}
