//! Node selectors, node affinity, taints and tolerations, and the terms of pod affinity. Pure.

use super::info::{NodeInfo, PodInfo};
use k8s_openapi::api::core::v1::{NodeSelectorTerm, PodAffinityTerm, Taint, Toleration};
use std::collections::BTreeMap;
use windlass::Selector;
use windlass_component_helpers::node_affinity;

/// The labels of namespaces, for terms that select them by label.
pub(super) type Namespaces = BTreeMap<String, BTreeMap<String, String>>;

/// Whether the node selector and the required node affinity of a pod match a node.
pub(super) fn pod_matches_node(pod: &PodInfo, node: &NodeInfo) -> bool {
    node_affinity::matches(&pod.selector, pod.node_affinity(), &node.name, &node.labels)
}

/// Whether a node selector term matches a node. An empty term matches none.
pub(super) fn fits(term: &NodeSelectorTerm, node: &NodeInfo) -> bool {
    node_affinity::term_matches(term, &node.name, &node.labels)
}

/// Whether a taint is tolerated.
pub(super) fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| covers(toleration, taint))
}

/// Whether a toleration tolerates a taint.
pub(crate) fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    if (!effect.is_empty() && effect != taint.effect) || (!key.is_empty() && key != taint.key) {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => true,
        "Equal" | "" => {
            toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
        }
        _ => false,
    }
}

/// A parsed pod affinity term.
pub(super) struct Term {
    pub(super) topology: String,
    selector: Option<Selector>,
    namespaces: Vec<String>,
}

impl Term {
    /// The term of a pod in this namespace. An invalid selector selects nothing.
    pub(super) fn of(term: &PodAffinityTerm, namespace: &str, known: &Namespaces) -> Self {
        let mut namespaces = term.namespaces.clone().unwrap_or_default();
        if let Some(selector) = &term.namespace_selector
            && let Ok(selector) = Selector::of(selector)
        {
            let selected = known.iter().filter(|(_, labels)| selector.matches(Some(labels)));
            namespaces.extend(selected.map(|(name, _)| name.clone()));
        } else if namespaces.is_empty() {
            namespaces.push(namespace.to_owned());
        }
        let selector = term.label_selector.as_ref().and_then(|selector| Selector::of(selector).ok());
        Self { topology: term.topology_key.clone(), selector, namespaces }
    }

    pub(super) fn matches(&self, pod: &PodInfo) -> bool {
        self.namespaces.contains(&pod.namespace)
            && self.selector.as_ref().is_some_and(|selector| selector.matches(Some(&pod.labels)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: &str) -> Taint {
        Taint { key: key.into(), value: Some(value.into()), effect: effect.into(), time_added: None }
    }

    #[test]
    fn tolerations_cover_by_key_value_and_effect() {
        let toleration = |json: serde_json::Value| serde_json::from_value::<Toleration>(json).unwrap();
        let gpu = taint("gpu", "a", "NoSchedule");
        assert!(covers(&toleration(serde_json::json!({"operator": "Exists"})), &gpu));
        assert!(covers(&toleration(serde_json::json!({"key": "gpu", "value": "a"})), &gpu));
        assert!(!covers(&toleration(serde_json::json!({"key": "gpu", "value": "b"})), &gpu));
        assert!(!covers(
            &toleration(serde_json::json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"})),
            &gpu
        ));
    }
}
