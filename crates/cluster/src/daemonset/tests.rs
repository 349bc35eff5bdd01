//! Tests of the DaemonSet decisions, without a cluster.

use super::decide::{Observed, Steps, manage, rolling_update, status};
use super::nodes::{Placement, node_of, place, pod_on};
use crate::history::HASH_LABEL;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn set(rolling: Value) -> DaemonSet {
    serde_json::from_value(json!({
        "metadata": { "name": "logs", "namespace": "default", "uid": "d", "generation": 1 },
        "spec": {
            "selector": { "matchLabels": { "app": "logs" } },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": rolling },
            "template": { "metadata": { "labels": { "app": "logs" } },
                          "spec": { "nodeSelector": { "disk": "ssd" }, "containers": [{ "name": "c" }] } },
        },
    }))
    .unwrap()
}

fn node(name: &str, taints: Value) -> Arc<Node> {
    let labels = json!({ "disk": "ssd" });
    let node = json!({ "metadata": { "name": name, "labels": labels }, "spec": { "taints": taints } });
    Arc::new(serde_json::from_value(node).unwrap())
}

fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

fn pod(set: &DaemonSet, hash: &str, node: &str, phase: &str, ready: bool) -> Arc<Pod> {
    let mut pod = pod_on(set, OwnerReference::default(), hash, node).unwrap();
    pod.metadata.name = Some(format!("logs-{hash}-{node}"));
    let ready = if ready { "True" } else { "False" };
    let status = json!({ "phase": phase, "conditions": [
        { "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z" }
    ] });
    pod.status = Some(serde_json::from_value(status).unwrap());
    Arc::new(pod)
}

fn observation<'a>(set: &'a DaemonSet, nodes: Vec<Arc<Node>>, pods: Vec<Arc<Pod>>) -> Observed<'a> {
    Observed::new(set, set.spec.as_ref().unwrap(), "new", nodes, pods, now())
}

fn ended(steps: &Steps) -> Vec<&str> {
    steps.delete.iter().filter_map(|deletion| deletion.pod.metadata.name.as_deref()).collect()
}

fn four() -> Vec<Arc<Node>> {
    ["a", "b", "c", "d"].map(|name| node(name, json!([]))).to_vec()
}

#[test]
fn labels_and_taints_say_where_a_daemon_runs() {
    let set = set(json!({}));
    let template = &set.spec.as_ref().unwrap().template;
    let taint = |key: &str, effect: &str| json!([{ "key": key, "effect": effect }]);
    assert_eq!(place(template, &node("a", json!([]))), Placement::Run);
    assert_eq!(
        place(template, &node("a", taint("node.kubernetes.io/not-ready", "NoExecute"))),
        Placement::Run
    );
    assert_eq!(
        place(template, &node("a", taint("node.kubernetes.io/unschedulable", "NoSchedule"))),
        Placement::Run
    );
    assert_eq!(place(template, &node("a", taint("own", "NoSchedule"))), Placement::KeepRunning);
    assert_eq!(place(template, &node("a", taint("own", "NoExecute"))), Placement::Exclude);
    assert_eq!(place(template, &node("a", taint("own", "PreferNoSchedule"))), Placement::Run);
    assert_eq!(place(template, &Node::default()), Placement::Exclude, "without the label");
}

#[test]
fn every_node_gets_one_and_other_nodes_none() {
    let set = set(json!({}));
    let mut nodes = four();
    nodes.push(node("never", json!([{ "key": "own", "effect": "NoExecute" }])));
    let pods = vec![
        pod(&set, "new", "a", "Running", true),
        pod(&set, "old", "a", "Running", true),
        pod(&set, "new", "never", "Running", true),
        pod(&set, "new", "b", "Failed", false),
        pod(&set, "new", "gone", "Pending", false),
    ];
    let observed = observation(&set, nodes, pods);
    let steps = manage(&observed, |_| Ok(()));
    assert_eq!(steps.create, ["c", "d"]);
    assert_eq!(ended(&steps), ["logs-old-a", "logs-new-b", "logs-new-never", "logs-new-gone"]);
    let waiting = manage(&observed, |_| Err(Duration::from_secs(4)));
    assert_eq!(waiting.wait, Some(Duration::from_secs(4)));
    assert!(!ended(&waiting).contains(&"logs-new-b"), "not yet");
    let status = status(&observed, 0);
    let counts =
        (status.desired_number_scheduled, status.current_number_scheduled, status.number_misscheduled);
    assert_eq!(counts, (4, 2, 1));
    assert_eq!((status.number_ready, status.number_unavailable), (1, Some(3)));
}

#[test]
fn a_pod_says_for_which_node_it_is() {
    let set = set(json!({}));
    let pod = pod_on(&set, OwnerReference::default(), "new", "a").unwrap();
    assert_eq!(node_of(&pod), Some("a"));
    assert_eq!(pod.metadata.labels.as_ref().unwrap()[HASH_LABEL], "new");
    assert_eq!(pod.spec.unwrap().tolerations.unwrap().len(), 6);
}

#[test]
fn an_update_replaces_as_many_as_may_be_unavailable() {
    let set = set(json!({ "maxUnavailable": "50%" }));
    let all = |names: &[(&str, &str, bool)]| {
        names.iter().map(|(hash, node, ready)| pod(&set, hash, node, "Running", *ready)).collect::<Vec<_>>()
    };
    let old = all(&[("old", "a", true), ("old", "b", true), ("old", "c", true), ("old", "d", true)]);
    assert_eq!(ended(&rolling_update(&observation(&set, four(), old))), ["logs-old-a", "logs-old-b"]);
    let half = all(&[("new", "a", false), ("new", "b", true), ("old", "c", true), ("old", "d", true)]);
    assert_eq!(ended(&rolling_update(&observation(&set, four(), half))), ["logs-old-c"]);
    let broken = all(&[("new", "a", false), ("new", "b", false), ("old", "c", false), ("old", "d", true)]);
    assert_eq!(
        ended(&rolling_update(&observation(&set, four(), broken))),
        ["logs-old-c"],
        "it serves nobody anyway"
    );
    let by_hand = DaemonSet {
        spec: set.spec.clone().map(|mut spec| {
            spec.update_strategy = serde_json::from_value(json!({ "type": "OnDelete" })).unwrap();
            spec
        }),
        ..set.clone()
    };
    let old = all(&[("old", "a", true)]);
    assert!(rolling_update(&observation(&by_hand, four(), old)).is_empty());
}

#[test]
fn a_surge_makes_the_new_one_first() {
    let set = set(json!({ "maxSurge": 1, "maxUnavailable": 0 }));
    let on = |hash: &str, node: &str, ready: bool| pod(&set, hash, node, "Running", ready);
    let old = vec![on("old", "a", true), on("old", "b", true), on("old", "c", true), on("old", "d", true)];
    let steps = rolling_update(&observation(&set, four(), old.clone()));
    assert_eq!((steps.create, steps.delete.len()), (vec!["a".to_owned()], 0));
    let mut both = old.clone();
    both.push(on("new", "a", false));
    let observed = observation(&set, four(), both);
    assert!(manage(&observed, |_| Ok(())).is_empty() && rolling_update(&observed).is_empty(), "it waits");
    let mut ready = old;
    ready.push(on("new", "a", true));
    assert_eq!(ended(&manage(&observation(&set, four(), ready), |_| Ok(()))), ["logs-old-a"]);
}
