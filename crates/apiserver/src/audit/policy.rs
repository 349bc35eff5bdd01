//! The policy: which requests are audited, at which level, and which stages are left out. The first rule that matches counts.

use crate::authorization::{Attributes, On};
use serde::Deserialize;
use std::str::FromStr;

/// How much of a request is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum Level {
    /// Nothing at all.
    None,
    /// Who, what, when, and the status.
    Metadata,
    /// And the object that was sent.
    Request,
    /// And the object that was answered.
    RequestResponse,
}

/// When an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Stage {
    RequestReceived,
    /// Of watches and other requests that go on.
    ResponseStarted,
    ResponseComplete,
    /// Requests do not panic here; policies may name it.
    Panic,
}

/// An audit policy, as `--audit-policy-file` has it: YAML or JSON of the kind `Policy` of `audit.k8s.io/v1`.
#[derive(Debug, Clone)]
pub struct AuditPolicy(Policy);

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Policy {
    api_version: String,
    kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: serde_json::Value,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    level: Level,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    resources: Vec<GroupResources>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GroupResources {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// What the policy says of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestRule {
    pub(super) level: Level,
    pub(super) omits_managed_fields: bool,
    omitted: u8,
}

impl RequestRule {
    pub(super) fn omits(&self, stage: Stage) -> bool {
        self.omitted & (1 << stage as u8) != 0
    }
}

/// Why a text is no audit policy.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAuditPolicy {
    /// It cannot be read.
    #[error("{0}")]
    Syntax(String),
    /// It is of another kind.
    #[error("it is of kind {kind:?} and version {version:?}, not Policy of audit.k8s.io/v1")]
    Kind {
        /// Its kind.
        kind: String,
        /// Its version.
        version: String,
    },
    /// It has no rules.
    #[error("it has no rules")]
    NoRules,
    /// A rule cannot be.
    #[error("rules[{index}]: {why}")]
    Rule {
        /// Which one, from 0.
        index: usize,
        /// What is wrong.
        why: String,
    },
}

impl FromStr for AuditPolicy {
    type Err = InvalidAuditPolicy;

    fn from_str(text: &str) -> Result<Self, InvalidAuditPolicy> {
        let policy: Policy = serde_saphyr::from_str(text).map_err(|error| {
            InvalidAuditPolicy::Syntax(error.to_string().lines().next().unwrap_or_default().to_owned())
        })?;
        if policy.kind != "Policy" || policy.api_version != "audit.k8s.io/v1" {
            return Err(InvalidAuditPolicy::Kind { kind: policy.kind, version: policy.api_version });
        }
        if policy.rules.is_empty() {
            return Err(InvalidAuditPolicy::NoRules);
        }
        for (index, rule) in policy.rules.iter().enumerate() {
            if let Some(why) = wrong(rule) {
                return Err(InvalidAuditPolicy::Rule { index, why });
            }
        }
        Ok(Self(policy))
    }
}

fn wrong(rule: &Rule) -> Option<String> {
    let of_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
    if of_resources && !rule.non_resource_urls.is_empty() {
        return Some("rules cannot apply to both regular resources and non-resource URLs".to_owned());
    }
    for url in &rule.non_resource_urls {
        if url == "*" {
            continue;
        }
        if !url.starts_with('/') {
            return Some(format!("nonResourceURLs: {url:?} must begin with a slash"));
        }
        if url.find('*').is_some_and(|at| at + 1 != url.len()) {
            return Some(format!("nonResourceURLs: {url:?} may have a '*' only at its end"));
        }
    }
    let named = rule.resources.iter().find(|one| !one.resource_names.is_empty() && one.resources.is_empty());
    named.map(|_| "resources: using resourceNames requires at least one resource".to_owned())
}

impl AuditPolicy {
    /// How a request is audited; none if it is not.
    pub(super) fn rule_for(&self, asked: &Attributes<'_>) -> Option<RequestRule> {
        let Self(policy) = self;
        let rule = policy.rules.iter().find(|rule| rule.matches(asked))?;
        let stages = policy.omit_stages.iter().chain(&rule.omit_stages);
        (rule.level > Level::None).then(|| RequestRule {
            level: rule.level,
            omits_managed_fields: rule.omit_managed_fields.unwrap_or(policy.omit_managed_fields),
            omitted: stages.fold(0, |bits, stage| bits | (1 << *stage as u8)),
        })
    }
}

impl Rule {
    fn matches(&self, asked: &Attributes<'_>) -> bool {
        let has = |list: &[String], text: &str| list.is_empty() || list.iter().any(|one| one == text);
        let in_group = || asked.identity.groups.iter().any(|group| self.user_groups.contains(group));
        if !has(&self.users, &asked.identity.user)
            || !(self.user_groups.is_empty() || in_group())
            || !has(&self.verbs, asked.verb)
        {
            return false;
        }
        let of_resources = !(self.namespaces.is_empty() && self.resources.is_empty());
        match &asked.on {
            On::Path(_) if of_resources => false,
            On::Path(path) => {
                self.non_resource_urls.is_empty()
                    || self.non_resource_urls.iter().any(|url| match url.strip_suffix('*') {
                        Some(prefix) => path.starts_with(prefix),
                        None => path == url,
                    })
            }
            On::Resource(_) if !of_resources => self.non_resource_urls.is_empty(),
            On::Resource(on) => {
                has(&self.namespaces, on.namespace)
                    && (self.resources.is_empty()
                        || self.resources.iter().any(|one| {
                            one.group == on.group
                                && one.matches(on.resource, on.subresource)
                                && has(&one.resource_names, on.name)
                        }))
            }
        }
    }
}

impl GroupResources {
    fn matches(&self, resource: &str, subresource: &str) -> bool {
        let is = |pattern: &String| match pattern.split_once('/') {
            _ if pattern == "*" => true,
            None => subresource.is_empty() && pattern == resource,
            Some(("*", part)) => !subresource.is_empty() && part == subresource,
            Some((whole, "*")) => whole == resource,
            Some((whole, part)) => whole == resource && part == subresource,
        };
        self.resources.is_empty() || self.resources.iter().any(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorization::ResourceAttributes;
    use crate::request::Identity;

    const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ['/healthz*', /version]}
- {level: RequestResponse, resources: [{group: '', resources: [pods, pods/*], resourceNames: [a]}], verbs: [get]}
- {level: Request, users: [jane], namespaces: [n], omitManagedFields: true, omitStages: [ResponseStarted]}
- {level: None, userGroups: [system:nodes]}
- {level: Metadata, resources: [{group: apps, resources: ['*/scale']}]}
- {level: Metadata, nonResourceURLs: ['*']}
";

    fn level(user: &str, groups: &[&str], verb: &str, on: On<'_>) -> Option<Level> {
        let policy: AuditPolicy = POLICY.parse().unwrap();
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        let identity = Identity { user: user.to_owned(), groups, ..Identity::default() };
        policy.rule_for(&Attributes { identity: &identity, verb, on }).map(|rule| rule.level)
    }

    fn on(text: &'static str) -> On<'static> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [group, resource, subresource, namespace, name] = parts[..] else { panic!("{text}") };
        let rest = ResourceAttributes::default();
        On::Resource(ResourceAttributes {
            group,
            version: "v1",
            resource,
            subresource,
            namespace,
            name,
            ..rest
        })
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        assert_eq!(level("x", &[], "get", On::Path("/healthz/ping")), None);
        assert_eq!(level("x", &[], "get", On::Path("/version")), None);
        assert_eq!(level("x", &[], "get", On::Path("/versions")), Some(Level::Metadata));
        assert_eq!(level("x", &[], "get", on(" pods  n a")), Some(Level::RequestResponse));
        assert_eq!(level("x", &[], "get", on(" pods log n a")), Some(Level::RequestResponse));
        assert_eq!(level("x", &[], "get", on(" pods  n b")), None);
        assert_eq!(level("jane", &[], "list", on(" secrets  n ")), Some(Level::Request));
        assert_eq!(level("jane", &[], "list", on(" secrets  m ")), None);
        assert_eq!(level("n", &["system:nodes"], "get", On::Path("/api")), None);
        assert_eq!(level("x", &[], "get", on("apps deployments scale n d")), Some(Level::Metadata));
        assert_eq!(level("x", &[], "get", on("apps deployments  n d")), None);
    }

    #[test]
    fn stages_and_managed_fields_are_left_out_where_a_rule_or_the_policy_says_so() {
        let policy: AuditPolicy = POLICY.parse().unwrap();
        let identity = Identity::user("jane");
        let asked = Attributes { identity: &identity, verb: "list", on: on(" secrets  n ") };
        let rule = policy.rule_for(&asked).unwrap();
        assert!(rule.omits_managed_fields && rule.omits(Stage::RequestReceived));
        assert!(rule.omits(Stage::ResponseStarted) && !rule.omits(Stage::ResponseComplete));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| {
            let text = text.replace("V:", "apiVersion: audit.k8s.io/v1\nkind: Policy\n");
            text.parse::<AuditPolicy>().unwrap_err().to_string()
        };
        assert_eq!(wrong("V:rules: []"), "it has no rules");
        assert!(wrong("V:rules: [{level: Much}]").contains("Much"));
        assert!(wrong("V:rules: [{level: None, user: [a]}]").contains("user"));
        assert!(wrong("apiVersion: v1\nkind: Policy\n").contains("not Policy of audit.k8s.io/v1"));
        let both = "V:rules: [{level: None}, {level: None, namespaces: [a], nonResourceURLs: ['*']}]";
        assert_eq!(
            wrong(both),
            "rules[1]: rules cannot apply to both regular resources and non-resource URLs"
        );
        assert!(wrong("V:rules: [{level: None, nonResourceURLs: ['/*a']}]").starts_with("rules[0]: "));
        assert!(
            wrong("V:rules: [{level: None, resources: [{resourceNames: [a]}]}]").starts_with("rules[0]: ")
        );
    }
}
