//! Which nodes a pod may go to by their labels and taints, and which pods are meant by an affinity term. Pure.

use super::facts::{NodeFacts, PodFacts};
use k8s_openapi::api::core::v1::{
    NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, Taint, Toleration,
};
use std::collections::BTreeMap;
use windlass::Selector;

/// The labels of namespaces, for terms that select them by label.
pub(super) type Namespaces = BTreeMap<String, BTreeMap<String, String>>;

/// Whether a pod's selector and its required affinity allow a node.
pub(super) fn allows(pod: &PodFacts, node: &NodeFacts) -> bool {
    allow(&pod.selector, pod.node_affinity(), &node.name, &node.labels)
}

/// Whether a selector and the required affinity allow a node of this name with these labels.
pub(crate) fn allow(
    selector: &BTreeMap<String, String>,
    affinity: Option<&NodeAffinity>,
    name: &str,
    labels: &BTreeMap<String, String>,
) -> bool {
    if selector.iter().any(|(key, value)| labels.get(key) != Some(value)) {
        return false;
    }
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    required
        .is_none_or(|required| required.node_selector_terms.iter().any(|term| fits_one(term, name, labels)))
}

/// Whether a term selects a node: all that it says holds. One that says nothing selects none.
pub(super) fn fits(term: &NodeSelectorTerm, node: &NodeFacts) -> bool {
    fits_one(term, &node.name, &node.labels)
}

fn fits_one(term: &NodeSelectorTerm, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let label = |wanted: &NodeSelectorRequirement| holds(wanted, labels.get(&wanted.key).map(String::as_str));
    let field = |wanted: &NodeSelectorRequirement| wanted.key == "metadata.name" && holds(wanted, Some(name));
    expressions.iter().all(label) && fields.iter().all(field)
}

fn holds(wanted: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let among = |value: &str| values.iter().any(|known| known == value);
    let compared = |greater: bool| {
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = values.first().and_then(|bound| number(bound));
        match (value.and_then(number), bound) {
            (Some(value), Some(bound)) => {
                if greater {
                    value > bound
                } else {
                    value < bound
                }
            }
            _ => false,
        }
    };
    match wanted.operator.as_str() {
        "In" => value.is_some_and(among),
        "NotIn" => !value.is_some_and(among),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared(true),
        "Lt" => compared(false),
        _ => false,
    }
}

/// Whether one of the tolerations covers a taint.
pub(super) fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| covers(toleration, taint))
}

/// Whether a toleration covers a taint.
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

/// An affinity term, ready to be asked.
pub(super) struct Term {
    pub(super) topology: String,
    selector: Option<Selector>,
    namespaces: Vec<String>,
}

impl Term {
    /// The term of a pod in this namespace. One whose selector cannot be read selects nothing.
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

    pub(super) fn means(&self, pod: &PodFacts) -> bool {
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

    #[test]
    fn terms_select_nodes_by_labels_and_name() {
        let node = NodeFacts {
            name: "n1".into(),
            labels: [("zone".to_owned(), "a".to_owned()), ("cores".to_owned(), "8".to_owned())].into(),
            ..NodeFacts::default()
        };
        let selects = |json: serde_json::Value| fits(&serde_json::from_value(json).unwrap(), &node);
        let said = |key: &str, operator: &str, values: &[&str]| serde_json::json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        assert!(selects(said("zone", "In", &["a", "b"])) && !selects(said("zone", "NotIn", &["a"])));
        assert!(selects(said("cores", "Gt", &["4"])) && !selects(said("cores", "Lt", &["4"])));
        assert!(selects(said("disk", "DoesNotExist", &[])) && !selects(said("disk", "Exists", &[])));
        assert!(selects(
            serde_json::json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]})
        ));
        assert!(!selects(serde_json::json!({})));
    }
}
