//! Nobody grants what they do not have themselves.

use super::rule::PolicyRule;
use super::{Rbac, Unresolved};
use crate::request::Identity;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use windlass_schema::field::aggregate;

/// A role or a binding that somebody writes, and what it would give.
pub(crate) struct Grant<'a> {
    pub(crate) identity: &'a Identity,
    /// The namespace in which it counts; empty for the whole cluster.
    pub(crate) namespace: &'a str,
}

impl Grant<'_> {
    /// Refuses rules that whoever grants them does not hold.
    pub(crate) fn check(&self, rbac: &Rbac, rules: &[PolicyRule]) -> Result<(), String> {
        let (held, unresolved) = rbac.rules_for(self.identity, self.namespace);
        let missing = missing(&held, rules);
        if missing.is_empty() {
            return Ok(());
        }
        Err(self.refusal(&missing, &unresolved))
    }

    fn refusal(&self, missing: &[PolicyRule], unresolved: &[Unresolved]) -> String {
        let described: BTreeSet<String> = compact(missing).iter().map(describe).collect();
        let described: Vec<String> = described.into_iter().collect();
        let mut text = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.identity.user,
            quoted(&self.identity.groups),
            described.join("\n"),
        );
        if !unresolved.is_empty() {
            let all = aggregate(unresolved);
            let _ = write!(text, "; resolution errors: [{all}]");
        }
        text
    }
}

/// What of `wanted` is not covered by what is held, broken down.
fn missing(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let parts = wanted.iter().flat_map(PolicyRule::broken_down);
    parts.filter(|part| !held.iter().any(|rule| rule.covers(part))).collect()
}

/// Puts together the rules that differ in their verb alone.
fn compact(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut by_resource: BTreeMap<PolicyRule, Vec<String>> = BTreeMap::new();
    let mut compacted = Vec::new();
    for rule in rules {
        if rule.non_resource_urls.is_empty() {
            let but_the_verb = PolicyRule { verbs: Vec::new(), ..rule.clone() };
            by_resource.entry(but_the_verb).or_default().extend(rule.verbs.iter().cloned());
        } else {
            compacted.push(rule.clone());
        }
    }
    compacted.extend(by_resource.into_iter().map(|(rule, verbs)| PolicyRule { verbs, ..rule }));
    compacted
}

fn describe(rule: &PolicyRule) -> String {
    let lists = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let said = lists.iter().filter(|(_, list)| !list.is_empty());
    let said: Vec<String> = said.map(|(name, list)| format!("{name}:{}", quoted(list))).collect();
    format!("{{{}}}", said.join(", "))
}

/// As Go prints a list of strings.
fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", quoted.join(" "))
}
