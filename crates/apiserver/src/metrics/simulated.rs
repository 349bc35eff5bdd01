//! The usage of simulated nodes and their pods. Nothing runs there and there is no kubelet to ask, so each running container
//! uses zero: `kubectl top` lists them instead of failing because metrics are missing.

use super::summary::{Summary, node_metrics, pod_metrics};
use serde_json::{Value, json};

/// How simulated nodes begin `status.nodeInfo.containerRuntimeVersion`.
const RUNTIME: &str = "simulated://";

/// Whether a Node is simulated.
pub(super) fn is_simulated(node: &Value) -> bool {
    let runtime = node.pointer("/status/nodeInfo/containerRuntimeVersion").and_then(Value::as_str);
    runtime.is_some_and(|runtime| runtime.starts_with(RUNTIME))
}

/// The NodeMetrics of a simulated node.
pub(super) fn of_node(node: &Value, now: &str) -> Option<Value> {
    node_metrics(node, &Summary::new(zero("", now), Vec::new())?)
}

/// The PodMetrics of a pod on a simulated node; none while no container of it runs.
pub(super) fn of_pod(pod: &Value, now: &str) -> Option<Value> {
    let lists = ["containerStatuses", "initContainerStatuses"];
    let statuses = lists.iter().filter_map(|list| pod["status"].get(list)?.as_array()).flatten();
    let running = statuses.filter(|status| status.pointer("/state/running").is_some());
    let containers: Vec<Value> =
        running.filter_map(|status| Some(zero(status["name"].as_str()?, now))).collect();
    let usage = json!({
        "podRef": {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]},
        "containers": containers,
    });
    pod_metrics(pod, &Summary::new(zero("", now), vec![usage])?)
}

/// What a kubelet would say of a container that uses nothing.
fn zero(name: &str, now: &str) -> Value {
    json!({"name": name, "cpu": {"time": now, "usageNanoCores": 0}, "memory": {"workingSetBytes": 0}})
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-15T10:00:00Z";

    #[test]
    fn only_running_containers_of_simulated_pods_have_metrics() {
        let node = json!({
            "metadata": {"name": "node-1"},
            "status": {"nodeInfo": {"containerRuntimeVersion": "simulated://0.1.0"}},
        });
        assert!(is_simulated(&node));
        assert!(!is_simulated(
            &json!({"status": {"nodeInfo": {"containerRuntimeVersion": "containerd://2"}}})
        ));
        assert_eq!(of_node(&node, NOW).unwrap()["usage"], json!({"cpu": "0", "memory": "0Ki"}));
        let statuses = json!([
            {"name": "app", "state": {"running": {}}},
            {"name": "done", "state": {"terminated": {}}},
        ]);
        let mut pod = json!({
            "metadata": {"name": "web", "namespace": "n"}, "status": {"containerStatuses": statuses},
        });
        let metrics = of_pod(&pod, NOW).unwrap();
        assert_eq!(metrics["containers"], json!([{"name": "app", "usage": {"cpu": "0", "memory": "0Ki"}}]));
        pod["status"] = json!({"phase": "Pending"});
        assert_eq!(of_pod(&pod, NOW), None);
    }
}
