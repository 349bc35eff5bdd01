//! Which nodes a pod's node selector and required node affinity match. Pure.

use k8s_openapi::api::core::v1::{NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm};
use std::collections::BTreeMap;

/// Whether a node selector and the required node affinity match a node of this name with these labels.
pub fn matches(
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
    required.is_none_or(|required| {
        required.node_selector_terms.iter().any(|term| term_matches(term, name, labels))
    })
}

/// Whether a term matches a node: all its requirements hold. An empty term matches no node.
pub fn term_matches(term: &NodeSelectorTerm, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let label =
        |required: &NodeSelectorRequirement| holds(required, labels.get(&required.key).map(String::as_str));
    let field =
        |required: &NodeSelectorRequirement| required.key == "metadata.name" && holds(required, Some(name));
    expressions.iter().all(label) && fields.iter().all(field)
}

fn holds(required: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = required.values.as_deref().unwrap_or_default();
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
    match required.operator.as_str() {
        "In" => value.is_some_and(among),
        "NotIn" => !value.is_some_and(among),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared(true),
        "Lt" => compared(false),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_match_nodes_by_labels_and_name() {
        let labels = [("zone".to_owned(), "a".to_owned()), ("cores".to_owned(), "8".to_owned())].into();
        let selects =
            |json: serde_json::Value| term_matches(&serde_json::from_value(json).unwrap(), "n1", &labels);
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
