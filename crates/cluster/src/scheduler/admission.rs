//! Whether a node takes in a pod that it was given, by whomever: a kubelet asks once more what the scheduler asked. Pure.

use super::facts::{Amounts, NodeFacts, PodFacts, collide, takes_room};
use super::selecting::allow;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::Key;

/// Resources that are asked for, in the order in which a kubelet looks at them; what no node counts is nobody's concern here.
const COUNTED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Why a node with so much to give, which has these pods already, does not take in another: a reason and a message, in a
/// kubelet's words. `labels` are the node's, where they are known.
pub fn refusal(
    pod: &Pod,
    others: &[Arc<Pod>],
    allocatable: &BTreeMap<String, Quantity>,
    node: &str,
    labels: Option<&BTreeMap<String, String>>,
) -> Option<(String, String)> {
    let facts = |pod: &Pod| PodFacts::of(&Key::of("".into(), &pod.metadata), pod);
    let wanted = facts(pod)?;
    let mut here = NodeFacts { allocatable: Amounts::of(Some(allocatable)), ..NodeFacts::default() };
    others
        .iter()
        .filter(|other| takes_room(other))
        .filter_map(|other| facts(other))
        .for_each(|other| here.add(Arc::new(other)));
    let lacks = |name: &str, asked: i128, used: i128| {
        let has = here.allocatable.get(name);
        let known = here.allocatable.0.contains_key(name);
        (known && asked > 0 && asked + used > has).then(|| {
            let message = format!(
                "Node didn't have enough resource: {name}, requested: {asked}, used: {used}, capacity: {has}"
            );
            (format!("OutOf{name}"), message)
        })
    };
    let pods = i128::try_from(here.pods.len()).unwrap_or(i128::MAX);
    let short = lacks("pods", 1, pods).or_else(|| {
        COUNTED.iter().find_map(|name| lacks(name, wanted.requests.get(name), here.used.get(name)))
    });
    let fails = |name: &str, why: &str| Some((name.to_owned(), format!("Predicate {name} failed: {why}")));
    let elsewhere = labels
        .is_some_and(|labels| !allow(&wanted.selector, wanted.node_affinity(), node, labels))
        .then(|| fails("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"))
        .flatten();
    let taken = here.ports.iter().any(|(held, _)| wanted.ports.iter().any(|port| collide(port, held)));
    let taken = taken
        .then(|| fails("NodePorts", "node(s) didn't have free ports for the requested pod ports"))
        .flatten();
    short.or(elsewhere).or(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, spec: Value) -> Arc<Pod> {
        let mut whole = json!({"nodeName": "n", "containers": [{"name": "c"}]});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let meta = json!({"name": name, "namespace": "d", "uid": name});
        Arc::new(serde_json::from_value(json!({"metadata": meta, "spec": whole})).unwrap())
    }

    fn asks(cpu: &str) -> Value {
        json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]})
    }

    fn refused(new: Value, others: &[Arc<Pod>]) -> Option<(String, String)> {
        let allocatable =
            [("cpu", "2"), ("pods", "2")].map(|(name, much)| (name.to_owned(), Quantity(much.to_owned())));
        let labels = [("disk".to_owned(), "fast".to_owned())].into();
        refusal(&pod("new", new), others, &allocatable.into(), "n", Some(&labels))
    }

    #[test]
    fn what_the_node_has_not_is_not_promised_twice() {
        let other = [pod("a", asks("1500m"))];
        assert_eq!(refused(asks("500m"), &other), None);
        let why = "Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000";
        assert_eq!(refused(asks("501m"), &other), Some(("OutOfcpu".to_owned(), why.to_owned())));
        let two = [pod("a", json!({})), pod("b", json!({}))];
        assert_eq!(refused(json!({}), &two).unwrap().0, "OutOfpods");
        let mut ended = (*other[0]).clone();
        ended.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
        assert_eq!(refused(asks("2"), &[Arc::new(ended)]), None, "what has ended has given back");
    }

    #[test]
    fn a_port_of_the_machine_is_had_once_and_a_selector_holds_for_who_was_not_scheduled_too() {
        let port = |number: u16, ip: &str| json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": number, "hostIP": ip}]}]});
        let other = [pod("a", port(8080, "127.0.0.1"))];
        let why = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
        assert_eq!(refused(port(8080, ""), &other), Some(("NodePorts".to_owned(), why.to_owned())));
        assert_eq!(refused(port(8080, "127.0.0.2"), &other), None);
        let why = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
        let slow = json!({"nodeSelector": {"disk": "slow"}});
        assert_eq!(refused(slow, &[]), Some(("NodeAffinity".to_owned(), why.to_owned())));
    }
}
