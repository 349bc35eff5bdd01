//! Which pods are deleted first when a set is scaled down: those whose loss is felt least, in Kubernetes' order.

use crate::pods;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// The annotation with the deletion cost of a pod, a number.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The `count` pods to delete. `related` are the pods of all sets with the same owner: of otherwise equal pods, those on the
/// node with the most related pods are deleted first.
pub(super) fn pods_to_delete(
    mut pods: Vec<Arc<Pod>>,
    related: &[Arc<Pod>],
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    if count < pods.len() {
        let mut on_node: HashMap<&str, usize> = HashMap::new();
        for pod in related.iter().filter(|pod| pods::is_active(pod)) {
            *on_node.entry(node(pod)).or_default() += 1;
        }
        pods.sort_by_cached_key(|pod| rank(pod, on_node.get(node(pod)).copied().unwrap_or_default(), now));
        pods.truncate(count);
    }
    pods
}

fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// Compared field by field: the lowest is deleted first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_assigned: bool,
    phase: u8,
    is_ready: bool,
    deletion_cost: i32,
    most_related_on_node: Reverse<usize>,
    ready_for: Bucket,
    most_restarts: Reverse<(i32, i32)>,
    age: Bucket,
    /// Among those of one age by UID, which is random: the choice is even.
    uid: String,
}

fn rank(pod: &Pod, related_on_node: usize, now: Timestamp) -> Rank {
    let phase = match pods::phase(pod) {
        "Unknown" => 1,
        "Running" => 2,
        _ => 0,
    };
    let ready = pods::condition(pod, "Ready").filter(|ready| ready.status == "True");
    let cost = pod.metadata.annotations.as_ref().and_then(|all| all.get(DELETION_COST));
    Rank {
        is_assigned: !node(pod).is_empty(),
        phase,
        is_ready: ready.is_some(),
        deletion_cost: cost.and_then(|cost| cost.parse().ok()).unwrap_or_default(),
        most_related_on_node: Reverse(related_on_node),
        ready_for: Bucket::since(ready.and_then(|ready| ready.last_transition_time.as_ref()), now),
        most_restarts: Reverse(restarts(pod)),
        age: Bucket::since(pod.metadata.creation_timestamp.as_ref(), now),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
    }
}

/// The most restarts of one container, and of one sidecar.
fn restarts(pod: &Pod) -> (i32, i32) {
    let Some(status) = &pod.status else { return (0, 0) };
    let containers = status.container_statuses.iter().flatten().map(|status| status.restart_count);
    let inits = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars: Vec<&str> = inits
        .filter(|init| init.restart_policy.as_deref() == Some("Always"))
        .map(|init| init.name.as_str())
        .collect();
    let of_sidecars = status.init_container_statuses.iter().flatten();
    let of_sidecars = of_sidecars.filter(|status| sidecars.contains(&status.name.as_str()));
    (
        containers.max().unwrap_or_default(),
        of_sidecars.map(|status| status.restart_count).max().unwrap_or_default(),
    )
}

/// A duration by its order of magnitude: pods of about one age are equal, or always the newest would be deleted, which would
/// leave all old ones on the nodes that existed first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bucket(i64);

impl Bucket {
    fn since(time: Option<&Time>, now: Timestamp) -> Self {
        let Some(time) = time else { return Self(-2) };
        let nanoseconds = now.as_nanosecond() - time.0.as_nanosecond();
        match u128::try_from(nanoseconds) {
            Ok(positive) if positive > 0 => Self(positive.ilog2().into()),
            _ => Self(-1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, more: Value) -> Arc<Pod> {
        let mut value = json!({
            "metadata": { "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "nodeName": "n1", "containers": [] },
            "status": { "phase": "Running", "conditions": [
                { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }
            ] },
        });
        merge(&mut value, more);
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn merge(into: &mut Value, more: Value) {
        match (into, more) {
            (Value::Object(into), Value::Object(more)) => {
                more.into_iter()
                    .for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
            }
            (into, more) => *into = more,
        }
    }

    fn first(pods: Vec<Arc<Pod>>, count: usize) -> Vec<String> {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        let related = pods.clone();
        let gone = pods_to_delete(pods, &related, count, now);
        gone.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
    }

    #[test]
    fn the_least_useful_goes_first() {
        let not_ready = json!({ "status": { "conditions": [] } });
        let restarts = |count| {
            json!({ "status": { "containerStatuses": [
            { "name": "c", "image": "", "imageID": "", "ready": true, "restartCount": count }
        ] } })
        };
        let ready_at = |at: &str| {
            json!({ "status": { "conditions": [
            { "type": "Ready", "status": "True", "lastTransitionTime": at }
        ] } })
        };
        let all = vec![
            pod("h-old", json!({})),
            pod("g-restarted", restarts(3)),
            pod("f-new", ready_at("2026-01-01T23:00:00Z")),
            pod("d-cheap", json!({ "metadata": { "annotations": { DELETION_COST: "-5" } } })),
            pod("i-dear", json!({ "metadata": { "annotations": { DELETION_COST: "5" } } })),
            pod("c-not-ready", not_ready.clone()),
            pod("b-pending", json!({ "status": { "phase": "Pending", "conditions": [] } })),
            pod("a-unassigned", json!({ "spec": { "nodeName": null }, "status": { "conditions": [] } })),
        ];
        let gone = first(all, 7);
        assert_eq!(
            gone,
            ["a-unassigned", "b-pending", "c-not-ready", "d-cheap", "f-new", "g-restarted", "h-old"]
        );
    }

    #[test]
    fn those_with_company_on_their_node_go_before_the_lonely() {
        let on = |name: &str, node: &str| pod(name, json!({ "spec": { "nodeName": node } }));
        let all = vec![on("a", "n2"), on("b", "n1"), on("c", "n1")];
        let gone = first(all, 1);
        assert_eq!(gone, ["b"], "of two equals by UID");
    }

    #[test]
    fn pods_of_about_one_age_are_equals() {
        let ready_at = |name: &str, at: &str| {
            pod(
                name,
                json!({ "status": { "conditions": [
                    { "type": "Ready", "status": "True", "lastTransitionTime": at }
                ] } }),
            )
        };
        let all = vec![ready_at("b", "2026-01-01T12:00:02Z"), ready_at("a", "2026-01-01T12:00:01Z")];
        assert_eq!(first(all, 1), ["a"], "by UID, though b is newer");
    }
}
