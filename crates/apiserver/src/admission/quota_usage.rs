//! The usage of a ResourceQuota, counted as admission counts it: for the controller that keeps the status of quotas.

use super::resource_quota::{PLAIN, in_scope, is_of, usage};
use crate::kinds::resources::{Amounts, amounts};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use windlass_schema::Quantity;

/// What objects use of one quota.
///
/// ```
/// use serde_json::json;
/// use windlass_apiserver::QuotaUsage;
///
/// let mut tally = QuotaUsage::new(&json!({"spec": {"hard": {"pods": "4", "requests.cpu": "2"}}}));
/// let pod = json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "100m"}}}]}});
/// tally.add("", "pods", &pod);
/// tally.add("", "pods", &pod);
/// assert_eq!(json!(tally.used()), json!({"pods": "2", "requests.cpu": "200m"}));
/// ```
#[derive(Debug)]
pub struct QuotaUsage {
    quota: Value,
    used: Amounts,
}

impl QuotaUsage {
    /// A quota, of which nothing is used.
    pub fn new(quota: &Value) -> Self {
        let hard = amounts(quota.pointer("/spec/hard"));
        let used = hard.into_keys().filter(|name| kind_of(name).is_some());
        Self { quota: quota.clone(), used: used.map(|name| (name, Quantity::ZERO)).collect() }
    }

    /// Group and plural of each kind whose objects count.
    pub fn kinds(&self) -> BTreeSet<(String, String)> {
        self.used.keys().filter_map(|name| kind_of(name)).collect()
    }

    /// Whether objects of a kind count by their number alone, whatever is in them.
    pub fn counts_only(&self, group: &str, plural: &str) -> bool {
        let scoped =
            ["/spec/scopes", "/spec/scopeSelector"].iter().any(|at| self.quota.pointer(at).is_some());
        let mut of_kind = self.used.keys().filter(|name| {
            kind_of(name).is_some_and(|(known, of)| (known.as_str(), of.as_str()) == (group, plural))
        });
        !scoped && of_kind.all(|name| name.starts_with("count/") || PLAIN.contains(&name.as_str()))
    }

    /// Counts an object.
    pub fn add(&mut self, group: &str, plural: &str, object: &Value) {
        if !in_scope(&self.quota, group, plural, object) {
            return;
        }
        for (name, amount) in usage(group, plural, object) {
            if let Some(used) = self.used.get_mut(&name) {
                *used += &amount;
            }
        }
    }

    /// What is used, as `status.used` says it.
    pub fn used(&self) -> Map<String, Value> {
        self.used.iter().map(|(name, amount)| (name.clone(), json!(amount.to_string()))).collect()
    }
}

/// Group and plural of the kind whose objects count under a name.
fn kind_of(name: &str) -> Option<(String, String)> {
    let core = |plural: &str| Some((String::new(), plural.to_owned()));
    if let Some(full) = name.strip_prefix("count/") {
        let (plural, group) = full.split_once('.').unwrap_or((full, ""));
        return Some((group.to_owned(), plural.to_owned()));
    }
    if name == "requests.storage" || name.contains(".storageclass.storage.k8s.io/") {
        return core("persistentvolumeclaims");
    }
    if PLAIN.contains(&name) {
        return core(name);
    }
    if matches!(name, "services.nodeports" | "services.loadbalancers") {
        return core("services");
    }
    (is_of("", "pods", name) || name.starts_with("requests.")).then(|| core("pods")).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_counts_objects_of_one_kind() {
        let hard = json!({"count/deployments.apps": "1", "count/pods": "1", "secrets": "1", "services.nodeports": "1",
            "gold.storageclass.storage.k8s.io/requests.storage": "1Gi", "limits.memory": "1Gi",
            "requests.example.com/gpu": "1", "what": "1"});
        let tally = QuotaUsage::new(&json!({"spec": {"hard": hard}}));
        let kinds: Vec<String> =
            tally.kinds().into_iter().map(|(group, plural)| format!("{group}/{plural}")).collect();
        assert_eq!(kinds, ["/persistentvolumeclaims", "/pods", "/secrets", "/services", "apps/deployments"]);
        assert_eq!(tally.used().len(), 7, "nobody knows what `what` is");
        assert!(tally.counts_only("", "secrets") && !tally.counts_only("", "pods"));
    }

    #[test]
    fn what_is_out_of_scope_or_ended_does_not_count() {
        let mut tally = QuotaUsage::new(&json!({"spec": {"hard": {"pods": "4"}, "scopes": ["BestEffort"]}}));
        assert!(!tally.counts_only("", "pods"));
        tally.add("", "pods", &json!({"status": {"qosClass": "BestEffort"}}));
        tally.add("", "pods", &json!({"status": {"qosClass": "Burstable"}}));
        tally.add("", "pods", &json!({"status": {"qosClass": "BestEffort", "phase": "Failed"}}));
        assert_eq!(json!(tally.used()), json!({"pods": "1"}));
    }
}
