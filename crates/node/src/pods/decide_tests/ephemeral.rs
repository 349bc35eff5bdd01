//! Ephemeral containers.

use super::machine::Machine;
use serde_json::json;

#[test]
fn ephemeral_containers_are_started_once_and_do_not_affect_the_phase() {
    let mut m = Machine::new(json!({"restartPolicy": "OnFailure"}));
    m.settle();
    let ephemeral = json!([{"name": "look", "image": "i"}, {"name": "stays", "image": "i"}]);
    m.pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(ephemeral).unwrap();
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
fn ephemeral_containers_are_stopped_with_the_pod_and_delay_nothing() {
    let mut m = Machine::new(json!({"initContainers": [{"name": "side", "restartPolicy": "Always"}]}));
    m.settle();
    let ephemeral = json!([{"name": "look", "image": "i"}]);
    m.pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(ephemeral).unwrap();
    m.settle();
    m.deleted(30);
    m.settle();
    assert!(m.state.containers["look"].stop.is_some() && m.state.containers["side"].stop.is_none());
    m.exits("main", 0);
    m.settle();
    assert!(m.state.containers["side"].stop.is_some(), "it waits for the pod's own containers alone");
    m.exits("side", 0);
    assert_eq!(m.settle(), Some(30));
    assert!(!m.deleted_from_api);
    m.now = 30;
    m.settle();
    assert!(m.deleted_from_api);
}
