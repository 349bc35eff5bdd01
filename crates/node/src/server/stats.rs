//! What the node and its pods use: as `/stats/summary` says it, and as `/metrics/resource` does.

use jiff::Timestamp;
use serde::Serialize;
use std::fmt::Write as _;

/// What a node and its pods use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The node as a whole.
    pub node: NodeStats,
    /// Each pod that runs.
    pub pods: Vec<PodStats>,
}

/// What a node uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStats {
    /// Its name.
    pub node_name: String,
    /// Since when it counts.
    pub start_time: Timestamp,
    /// Its processors.
    pub cpu: Cpu,
    /// Its memory.
    pub memory: Memory,
}

/// What a pod uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStats {
    /// Which pod.
    pub pod_ref: PodName,
    /// Since when it runs.
    pub start_time: Timestamp,
    /// Its containers that run.
    pub containers: Vec<ContainerStats>,
    /// All of it together.
    pub cpu: Cpu,
    /// All of it together.
    pub memory: Memory,
}

/// A pod by name and identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PodName {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its UID.
    pub uid: String,
}

/// What a container uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStats {
    /// Its name.
    pub name: String,
    /// Since when it runs.
    pub start_time: Timestamp,
    /// Its share of the processors.
    pub cpu: Cpu,
    /// Its memory.
    pub memory: Memory,
}

/// Use of processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    /// When this was looked at.
    pub time: Timestamp,
    /// Billionths of a processor, over the last while.
    pub usage_nano_cores: u64,
    /// All there was since the start.
    pub usage_core_nano_seconds: u64,
}

/// Use of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// When this was looked at.
    pub time: Timestamp,
    /// What could still be had, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// All of it, caches too.
    pub usage_bytes: u64,
    /// What cannot be taken away without harm.
    pub working_set_bytes: u64,
}

impl Summary {
    /// The same as metrics that Prometheus and metrics-server read.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        let node = &self.node;
        let pods = || self.pods.iter();
        let containers =
            || pods().flat_map(|pod| pod.containers.iter().map(move |container| (pod, container)));
        let of_pod =
            |pod: &PodStats| format!("namespace={:?},pod={:?}", pod.pod_ref.namespace, pod.pod_ref.name);
        let of_container = |pod: &PodStats, container: &ContainerStats| {
            format!("container={:?},{}", container.name, of_pod(pod))
        };
        family(
            &mut text,
            CONTAINER_CPU,
            containers().map(|(pod, container)| {
                (
                    of_container(pod, container),
                    seconds(container.cpu.usage_core_nano_seconds),
                    Some(container.cpu.time),
                )
            }),
        );
        family(
            &mut text,
            CONTAINER_MEMORY,
            containers().map(|(pod, container)| {
                let memory = container.memory;
                (of_container(pod, container), memory.working_set_bytes.to_string(), Some(memory.time))
            }),
        );
        family(
            &mut text,
            CONTAINER_START,
            containers()
                .map(|(pod, container)| (of_container(pod, container), started(container.start_time), None)),
        );
        let cpu = (String::new(), seconds(node.cpu.usage_core_nano_seconds), Some(node.cpu.time));
        family(&mut text, NODE_CPU, [cpu].into_iter());
        let memory = (String::new(), node.memory.working_set_bytes.to_string(), Some(node.memory.time));
        family(&mut text, NODE_MEMORY, [memory].into_iter());
        family(
            &mut text,
            POD_CPU,
            pods().map(|pod| (of_pod(pod), seconds(pod.cpu.usage_core_nano_seconds), Some(pod.cpu.time))),
        );
        family(
            &mut text,
            POD_MEMORY,
            pods().map(|pod| (of_pod(pod), pod.memory.working_set_bytes.to_string(), Some(pod.memory.time))),
        );
        family(&mut text, SCRAPE_ERROR, [(String::new(), "0".to_owned(), None)].into_iter());
        text
    }
}

/// A name, what it means and its type.
type Family = (&'static str, &'static str, &'static str);

const CONTAINER_CPU: Family = (
    "container_cpu_usage_seconds_total",
    "Time of processors that the container has used, in core-seconds",
    "counter",
);
const CONTAINER_MEMORY: Family =
    ("container_memory_working_set_bytes", "Working set of the container, in bytes", "gauge");
const CONTAINER_START: Family =
    ("container_start_time_seconds", "Start of the container, in seconds since the epoch", "gauge");
const NODE_CPU: Family =
    ("node_cpu_usage_seconds_total", "Time of processors that the node has used, in core-seconds", "counter");
const NODE_MEMORY: Family = ("node_memory_working_set_bytes", "Working set of the node, in bytes", "gauge");
const POD_CPU: Family =
    ("pod_cpu_usage_seconds_total", "Time of processors that the pod has used, in core-seconds", "counter");
const POD_MEMORY: Family = ("pod_memory_working_set_bytes", "Working set of the pod, in bytes", "gauge");
const SCRAPE_ERROR: Family = (
    "resource_scrape_error",
    "1 if there was an error while the figures were collected, 0 otherwise",
    "gauge",
);

fn family(
    text: &mut String,
    (name, help, kind): Family,
    samples: impl Iterator<Item = (String, String, Option<Timestamp>)>,
) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value, time) in samples {
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        let time = time.map(|time| format!(" {}", time.as_millisecond())).unwrap_or_default();
        let _ = writeln!(text, "{name}{labels} {value}{time}");
    }
}

/// Nanoseconds as seconds, exactly.
fn seconds(nanoseconds: u64) -> String {
    format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
}

fn started(time: Timestamp) -> String {
    format!("{}.{:03}", time.as_second(), time.as_millisecond().rem_euclid(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        let time: Timestamp = "2026-11-15T10:00:00.5Z".parse().unwrap();
        let cpu = Cpu { time, usage_nano_cores: 250_000_000, usage_core_nano_seconds: 1_500_000_000 };
        let memory = Memory { time, available_bytes: None, usage_bytes: 4096, working_set_bytes: 2048 };
        let container = ContainerStats { name: "web".into(), start_time: time, cpu, memory };
        let pod_ref = PodName { name: "a".into(), namespace: "n".into(), uid: "u".into() };
        let pod = PodStats { pod_ref, start_time: time, containers: vec![container], cpu, memory };
        Summary {
            node: NodeStats { node_name: "one".into(), start_time: time, cpu, memory },
            pods: vec![pod],
        }
    }

    #[test]
    fn metrics_have_a_line_for_each_of_the_node_the_pod_and_the_container() {
        let text = summary().metrics();
        for line in [
            r#"container_cpu_usage_seconds_total{container="web",namespace="n",pod="a"} 1.500000000 1794736800500"#,
            r#"container_memory_working_set_bytes{container="web",namespace="n",pod="a"} 2048 1794736800500"#,
            r#"container_start_time_seconds{container="web",namespace="n",pod="a"} 1794736800.500"#,
            "node_cpu_usage_seconds_total 1.500000000 1794736800500",
            r#"pod_memory_working_set_bytes{namespace="n",pod="a"} 2048 1794736800500"#,
            "resource_scrape_error 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_summary_is_named_as_a_kubelet_does() {
        let value = serde_json::to_value(summary()).unwrap();
        assert_eq!(value["node"]["cpu"]["usageNanoCores"], 250_000_000);
        assert_eq!(value["pods"][0]["podRef"]["namespace"], "n");
        assert_eq!(value["pods"][0]["containers"][0]["memory"]["workingSetBytes"], 2048);
    }
}
