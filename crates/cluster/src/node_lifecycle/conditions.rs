//! The conditions of a node without heartbeats, and the taints that follow from conditions. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

const READY: &str = "Ready";
pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The taint for each condition and status.
const TAINTS: [(&str, &str, &str); 6] = [
    (READY, "False", NOT_READY),
    (READY, "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

/// The conditions that the kubelet reports, and that are unknown without heartbeats.
const KUBELET_CONDITIONS: [&str; 4] = [READY, "MemoryPressure", "DiskPressure", "PIDPressure"];

fn condition<'a>(node: &'a Node, of: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == of)
}

/// The last heartbeat in the node's status.
pub(super) fn heartbeat_time(node: &Node) -> Option<Timestamp> {
    condition(node, READY)?.last_heartbeat_time.as_ref().map(|time| time.0)
}

/// The conditions of a node whose heartbeats have stopped, if they differ from what it has.
pub(super) fn unreachable(node: &Node, now: Timestamp) -> Option<Vec<NodeCondition>> {
    let stamp = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let mut conditions = node.status.as_ref()?.conditions.clone().unwrap_or_default();
    let mut changed = false;
    for of in KUBELET_CONDITIONS {
        match conditions.iter_mut().find(|condition| condition.type_ == of) {
            Some(condition) if condition.status == "Unknown" => {}
            Some(condition) => {
                condition.status = "Unknown".to_owned();
                condition.reason = Some("NodeStatusUnknown".to_owned());
                condition.message = Some("Kubelet stopped posting node status.".to_owned());
                condition.last_transition_time = Some(stamp.clone());
                changed = true;
            }
            None => {
                conditions.push(NodeCondition {
                    type_: of.to_owned(),
                    status: "Unknown".to_owned(),
                    reason: Some("NodeStatusNeverUpdated".to_owned()),
                    message: Some("Kubelet never posted node status.".to_owned()),
                    last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                    last_transition_time: Some(stamp.clone()),
                });
                changed = true;
            }
        }
    }
    changed.then_some(conditions)
}

/// The taints that a node should have, if they differ from what it has: those of its conditions, and everyone else's.
pub(super) fn taints(node: &Node, now: Timestamp) -> Option<Vec<Taint>> {
    let none = NodeSpec::default();
    let spec = node.spec.as_ref().unwrap_or(&none);
    let before = spec.taints.clone().unwrap_or_default();
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for (of, status, taint) in TAINTS {
        if condition(node, of).is_some_and(|condition| condition.status == status) {
            wanted.push((taint, "NoSchedule"));
            if of == READY {
                wanted.push((taint, "NoExecute"));
            }
        }
    }
    // A node that never reported whether it is ready gets no new pods.
    if condition(node, READY).is_none() {
        wanted.push((NOT_READY, "NoSchedule"));
    }
    if spec.unschedulable == Some(true) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let executes =
        |taint: &Taint| taint.effect == "NoExecute" && [NOT_READY, UNREACHABLE].contains(&&*taint.key);
    let schedules = |taint: &Taint| {
        let known = taint.key == UNSCHEDULABLE || TAINTS.iter().any(|(_, _, key)| taint.key == *key);
        taint.effect == "NoSchedule" && known
    };
    let is_wanted = |taint: &Taint| wanted.contains(&(taint.key.as_str(), taint.effect.as_str()));
    let mut after: Vec<Taint> = before
        .iter()
        .filter(|taint| is_wanted(taint) || !(executes(taint) || schedules(taint)))
        .cloned()
        .collect();
    let stamp = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    for (key, effect) in &wanted {
        if !after.iter().any(|taint| taint.key == *key && taint.effect == *effect) {
            after.push(Taint {
                key: (*key).to_owned(),
                effect: (*effect).to_owned(),
                value: None,
                time_added: (*effect == "NoExecute").then(|| stamp.clone()),
            });
        }
    }
    (after != before).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(conditions: Value, spec: Value) -> Node {
        serde_json::from_value(
            json!({"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": conditions}}),
        )
        .unwrap()
    }

    fn keys(taints: &[Taint]) -> Vec<(&str, &str)> {
        taints.iter().map(|taint| (taint.key.as_str(), taint.effect.as_str())).collect()
    }

    #[test]
    fn a_ready_node_has_no_taints_and_an_unreachable_one_has() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let closed = json!({"taints": [{"key": NOT_READY, "effect": "NoSchedule"}, {"key": "mine", "effect": "NoExecute"}]});
        let ready = node(json!([{"type": "Ready", "status": "True"}]), closed);
        let open = taints(&ready, now).unwrap();
        assert_eq!(keys(&open), [("mine", "NoExecute")], "others' taints are theirs");
        let mut ready = ready;
        ready.spec.as_mut().unwrap().taints = Some(open);
        assert_eq!(taints(&ready, now), None);
        let conditions = unreachable(&ready, now).unwrap();
        assert_eq!(conditions.len(), 4);
        assert!(conditions.iter().all(|condition| condition.status == "Unknown"));
        ready.status.as_mut().unwrap().conditions = Some(conditions);
        assert_eq!(unreachable(&ready, now), None);
        let closed = taints(&ready, now).unwrap();
        assert_eq!(
            keys(&closed),
            [("mine", "NoExecute"), (UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]
        );
        assert!(closed[2].time_added.is_some());
    }

    #[test]
    fn a_cordoned_node_has_a_taint() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let node = node(json!([{"type": "Ready", "status": "True"}]), json!({"unschedulable": true}));
        assert_eq!(keys(&taints(&node, now).unwrap()), [(UNSCHEDULABLE, "NoSchedule")]);
    }
}
