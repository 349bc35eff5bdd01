//! Containers that are added to look into a pod.

use super::machine::Machine;
use serde_json::json;

#[test]
fn who_looks_into_a_pod_is_started_once_and_counts_for_nothing() {
    let mut m = Machine::new(json!({"restartPolicy": "OnFailure"}));
    m.settle();
    let added = json!([{"name": "look", "image": "i"}, {"name": "stays", "image": "i"}]);
    m.pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(added).unwrap();
    m.settle();
    assert_eq!(m.started, ["main", "look", "stays"]);
    m.exits("look", 1);
    m.settle();
    m.loses_its_sandbox();
    m.settle();
    assert_eq!(m.started, ["main", "look", "stays", "main"], "only what is the pod's own is started again");
    let status = m.pod.status.clone().unwrap().ephemeral_container_statuses.unwrap();
    let codes: Vec<_> =
        status.iter().map(|status| status.state.clone().unwrap().terminated.unwrap().exit_code).collect();
    assert_eq!((codes, m.phase(), m.holds("Ready")), (vec![1, 137], "Running", true));
    m.exits("main", 0);
    m.settle();
    assert_eq!(m.phase(), "Succeeded", "whatever they ended with");
}

#[test]
fn who_looks_into_a_pod_is_stopped_with_it_and_holds_nobody_up() {
    let mut m = Machine::new(json!({"initContainers": [{"name": "side", "restartPolicy": "Always"}]}));
    m.settle();
    let added = json!([{"name": "look", "image": "i"}]);
    m.pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(added).unwrap();
    m.settle();
    m.deleted(30);
    m.settle();
    assert!(m.known.runs["look"].stop.is_some() && m.known.runs["side"].stop.is_none());
    m.exits("main", 0);
    m.settle();
    assert!(m.known.runs["side"].stop.is_some(), "it waits for the pod's own containers alone");
    m.exits("side", 0);
    assert_eq!(m.settle(), Some(30));
    assert!(!m.gone);
    m.now = 30;
    m.settle();
    assert!(m.gone);
}
