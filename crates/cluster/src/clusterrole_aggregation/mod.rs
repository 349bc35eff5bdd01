//! ClusterRole aggregation: the rules of a ClusterRole with an `aggregationRule` are those of every ClusterRole that its
//! selectors select.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use std::sync::Arc;
use windlass::{Controller, Manager, Reconcile, ReconcileError, Relation, Requeue, Selector};

pub(crate) fn add(manager: Manager) -> Manager {
    let controller = Controller::reconciling(reconcile)
        .named("clusterrole-aggregation-controller")
        .filter(|role: &ClusterRole| role.aggregation_rule.is_some())
        .watches::<ClusterRole>(|_| Relation::all());
    manager.controller(controller)
}

async fn reconcile(role: Arc<ClusterRole>, ctx: Reconcile<ClusterRole>) -> Result<Requeue, ReconcileError> {
    let all = ctx.observed().list::<ClusterRole>().map_err(ReconcileError::terminal)?;
    let rules = rules(&role, &all);
    if role.rules.as_deref().unwrap_or_default() != rules {
        ctx.replace(&ClusterRole { rules: Some(rules), ..(*role).clone() }).await?;
    }
    Ok(Requeue::on_change())
}

/// The rules of every selected ClusterRole, by selector and by name, without duplicates. An invalid selector selects nothing.
fn rules(role: &ClusterRole, all: &[Arc<ClusterRole>]) -> Vec<PolicyRule> {
    let mut others: Vec<&Arc<ClusterRole>> =
        all.iter().filter(|other| other.metadata.name != role.metadata.name).collect();
    others.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    let rule = role.aggregation_rule.as_ref();
    let selectors = rule.into_iter().flat_map(|rule| rule.cluster_role_selectors.iter().flatten());
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in selectors.filter_map(|selector| Selector::of(selector).ok()) {
        for other in others.iter().filter(|other| selector.matches(other.metadata.labels.as_ref())) {
            for rule in other.rules.iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn role(name: &str, label: &str, resources: &[&str]) -> Arc<ClusterRole> {
        let rules: Vec<Value> = resources
            .iter()
            .map(|it| json!({"verbs": ["get"], "apiGroups": [""], "resources": [it]}))
            .collect();
        let role = json!({"metadata": {"name": name, "labels": {"to": label}}, "rules": rules});
        Arc::new(serde_json::from_value(role).unwrap())
    }

    #[test]
    fn rules_come_from_all_that_is_selected_each_once() {
        let selectors = json!([{"matchLabels": {"to": "view"}}, {"matchLabels": {"to": "edit"}}]);
        let whole = json!({"metadata": {"name": "whole", "labels": {"to": "view"}},
            "rules": [{"verbs": ["*"], "resources": ["own"]}], "aggregationRule": {"clusterRoleSelectors": selectors}});
        let whole: Arc<ClusterRole> = Arc::new(serde_json::from_value(whole).unwrap());
        let all = [
            whole.clone(),
            role("b", "view", &["pods", "nodes"]),
            role("a", "view", &["secrets"]),
            role("c", "edit", &["pods", "events"]),
            role("d", "other", &["jobs"]),
        ];
        let resources: Vec<String> =
            rules(&whole, &all).into_iter().flat_map(|rule| rule.resources.unwrap_or_default()).collect();
        assert_eq!(resources, ["secrets", "pods", "nodes", "events"]);
    }
}
