//! From the kubelet's summary API to `metrics.k8s.io`.

use serde::Deserialize;
use serde_json::{Value, json};

/// Over which time a kubelet counts.
const WINDOW: &str = "10s";

/// What a kubelet says of its node and of its pods, as far as it matters here.
#[derive(Debug, Deserialize)]
pub(super) struct Summary {
    node: Used,
    #[serde(default)]
    pods: Vec<PodUsed>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodUsed {
    pod_ref: PodRef,
    #[serde(default)]
    containers: Vec<Used>,
}

#[derive(Debug, Deserialize)]
struct PodRef {
    name: String,
    namespace: String,
}

#[derive(Debug, Deserialize)]
struct Used {
    #[serde(default)]
    name: String,
    cpu: Cpu,
    memory: Memory,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cpu {
    time: String,
    usage_nano_cores: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Memory {
    working_set_bytes: u64,
}

impl Summary {
    /// Of JSON as a kubelet would send it.
    pub(super) fn new(node: Value, pods: Vec<Value>) -> Option<Self> {
        serde_json::from_value(json!({"node": node, "pods": pods})).ok()
    }
}

impl Used {
    fn quantities(&self) -> Value {
        let cpu = match self.cpu.usage_nano_cores {
            0 => "0".to_owned(),
            nanos => format!("{nanos}n"),
        };
        json!({"cpu": cpu, "memory": format!("{}Ki", self.memory.working_set_bytes / 1024)})
    }
}

pub(super) fn node_metrics(node: &Value, summary: &Summary) -> Option<Value> {
    let used = &summary.node;
    let mut metrics = metrics("NodeMetrics", node, &used.cpu.time);
    metrics["usage"] = used.quantities();
    Some(metrics)
}

/// None while nothing of the pod runs.
pub(super) fn pod_metrics(pod: &Value, summary: &Summary) -> Option<Value> {
    let (name, namespace) = (pod["metadata"]["name"].as_str()?, pod["metadata"]["namespace"].as_str()?);
    let used =
        summary.pods.iter().find(|used| used.pod_ref.name == name && used.pod_ref.namespace == namespace)?;
    let time = &used.containers.first()?.cpu.time;
    let containers = used.containers.iter();
    let containers: Vec<Value> = containers
        .map(|container| json!({"name": container.name, "usage": container.quantities()}))
        .collect();
    let mut metrics = metrics("PodMetrics", pod, time);
    metrics["containers"] = containers.into();
    Some(metrics)
}

fn metrics(kind: &str, of: &Value, time: &str) -> Value {
    let time = whole_seconds(time);
    let mut metadata = json!({"name": of["metadata"]["name"], "creationTimestamp": time});
    for field in ["namespace", "labels"] {
        if let Some(value) = of["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    json!({
        "kind": kind, "apiVersion": "metrics.k8s.io/v1beta1", "metadata": metadata, "timestamp": time,
        "window": WINDOW,
    })
}

/// Times of the API have no fractions.
fn whole_seconds(time: &str) -> String {
    let read = time.parse::<jiff::Timestamp>();
    let whole = read.ok().and_then(|time| jiff::Timestamp::from_second(time.as_second()).ok());
    whole.map_or_else(|| time.to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_of_what_they_are_about() {
        let used = json!({
            "name": "app",
            "cpu": {"time": "2026-11-15T10:00:00.5Z", "usageNanoCores": 1_500},
            "memory": {"workingSetBytes": 4096, "usageBytes": 9000},
        });
        let summary: Summary = serde_json::from_value(json!({
            "node": used,
            "pods": [{"podRef": {"name": "web", "namespace": "n", "uid": "u"}, "containers": [used]}],
        }))
        .unwrap();
        let node = json!({"metadata": {"name": "one", "labels": {"a": "b"}}});
        let metrics = node_metrics(&node, &summary).unwrap();
        assert_eq!(metrics["usage"], json!({"cpu": "1500n", "memory": "4Ki"}));
        assert_eq!(metrics["timestamp"], "2026-11-15T10:00:00Z");
        assert_eq!(metrics["metadata"]["labels"]["a"], "b");
        let pod = json!({"metadata": {"name": "web", "namespace": "n"}});
        assert_eq!(pod_metrics(&pod, &summary).unwrap()["containers"][0]["name"], "app");
        let other = json!({"metadata": {"name": "web", "namespace": "m"}});
        assert_eq!(pod_metrics(&other, &summary), None);
    }
}
