//! Pods, synced step by step on a node on which every step succeeds at once.

mod ephemeral;
mod machine;

use super::pod_state::{Image, Sandbox};
use crate::eviction::{Eviction, EvictionCause};
use machine::{Machine, at};
use serde_json::json;

#[test]
fn a_pod_runs_and_is_ready() {
    let mut m = Machine::new(json!({}));
    assert_eq!(m.settle(), None);
    assert_eq!(m.phase(), "Running");
    let all = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    assert!(all.iter().all(|of| m.holds(of)));
    let status = m.pod.status.clone().unwrap();
    assert_eq!(
        (status.pod_ip.as_deref(), status.host_ip.as_deref()),
        (Some("10.244.0.2"), Some("192.0.2.1"))
    );
    assert_eq!(status.qos_class.as_deref(), Some("BestEffort"));
    m.now = 1000;
    assert_eq!(m.settle(), None, "at rest it is silent");
}

#[test]
fn the_phase_follows_from_exit_codes_and_restart_policy() {
    for (policy, code, phase) in
        [("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")]
    {
        let mut m = Machine::new(json!({"restartPolicy": policy}));
        m.settle();
        m.exits("main", code);
        m.settle();
        assert_eq!((m.phase(), m.state.sandbox.clone()), (phase, Sandbox::Absent), "{policy} {code}");
        assert!(!m.holds("Ready") && m.started.len() == 1);
    }
}

#[test]
fn a_crashing_container_is_restarted_with_back_off() {
    let mut m = Machine::new(json!({}));
    m.settle();
    m.exits("main", 1);
    m.settle();
    assert_eq!((m.status("main").restart_count, m.phase()), (1, "Running"), "at once the first time");
    m.now = 1;
    m.exits("main", 1);
    assert_eq!(m.settle(), Some(11));
    assert_eq!((m.waits("main").as_str(), m.phase()), ("CrashLoopBackOff", "Running"));
    assert!(m.events.iter().any(|event| event == "Back-off restarting failed container main in pod p_d(u)"));
    assert_eq!(m.status("main").last_state.unwrap().terminated.unwrap().exit_code, 1);
    m.now = 11;
    assert_eq!(m.settle(), None);
    assert_eq!((m.status("main").restart_count, m.holds("Ready")), (2, true));
}

#[test]
fn init_containers_run_in_order() {
    let mut m = Machine::new(json!({"initContainers": [
        {"name": "one"}, {"name": "side", "restartPolicy": "Always"}, {"name": "two"},
    ]}));
    m.settle();
    assert_eq!((m.started.as_slice(), m.phase()), (["one".to_owned()].as_slice(), "Pending"));
    assert_eq!((m.waits("two").as_str(), m.waits("main").as_str()), ("PodInitializing", "PodInitializing"));
    m.exits("one", 0);
    m.settle();
    assert_eq!(m.started, ["one", "side", "two"]);
    m.exits("two", 1);
    m.settle();
    assert_eq!(m.started, ["one", "side", "two", "two"], "until it succeeds");
    m.exits("two", 0);
    m.settle();
    assert_eq!(
        (m.started.last().map(String::as_str), m.phase(), m.holds("Ready")),
        (Some("main"), "Running", true)
    );
}

#[test]
fn a_failed_init_container_fails_a_pod_with_restart_policy_never() {
    let mut m = Machine::new(json!({"restartPolicy": "Never", "initContainers": [{"name": "one"}]}));
    m.settle();
    m.exits("one", 7);
    m.settle();
    assert_eq!((m.phase(), m.started.len()), ("Failed", 1));
}

#[test]
fn sidecars_terminate_after_the_main_containers() {
    let mut m = Machine::new(
        json!({"restartPolicy": "Never", "initContainers": [{"name": "side", "restartPolicy": "Always"}]}),
    );
    m.settle();
    m.exits("main", 0);
    m.settle();
    assert_eq!(m.phase(), "Running", "it is being stopped");
    assert!(m.state.containers["side"].stop.as_ref().unwrap().signaled.is_some());
    m.exits("side", 143);
    m.settle();
    assert_eq!((m.phase(), m.state.sandbox.clone()), ("Succeeded", Sandbox::Absent));
}

#[test]
fn a_deletion_terminates_kills_and_deletes() {
    let mut m = Machine::new(json!({"containers": [
        {"name": "main", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}},
    ]}));
    m.settle();
    m.deleted(30);
    assert_eq!(m.settle(), Some(30));
    assert!(m.events.contains(&"Stopping container main".to_owned()) && !m.deleted_from_api);
    assert_eq!(m.phase(), "Running");
    m.now = 30;
    m.settle();
    assert!(m.deleted_from_api);
    assert_eq!((m.phase(), m.status("main").state.unwrap().terminated.unwrap().exit_code), ("Failed", 137));
    assert_eq!(m.state.sandbox, Sandbox::Absent);
}

#[test]
fn a_shortened_grace_period_applies() {
    let mut m = Machine::new(json!({}));
    m.settle();
    m.deleted(300);
    assert_eq!(m.settle(), Some(300));
    m.now = 5;
    m.deleted(1);
    assert_eq!(m.settle(), Some(6));
    m.now = 6;
    m.settle();
    assert!(m.deleted_from_api);
}

#[test]
fn a_pod_that_never_started_is_deleted_at_once() {
    let mut m = Machine::new(json!({}));
    m.container("main").image =
        Image::Missing { message: "no recipe".into(), tried: at(0), retry_at: at(20) };
    assert_eq!(m.settle(), Some(10));
    assert_eq!((m.waits("main").as_str(), m.phase()), ("ErrImagePull", "Pending"));
    m.now = 10;
    assert_eq!(m.settle(), Some(20));
    assert_eq!(m.waits("main"), "ImagePullBackOff");
    m.deleted(30);
    m.settle();
    assert!(m.deleted_from_api);
    assert_eq!(
        m.status("main").state.unwrap().terminated.unwrap().reason.as_deref(),
        Some("ContainerStatusUnknown")
    );
    let mut m = Machine::new(json!({}));
    m.container("main").image =
        Image::Missing { message: "no recipe".into(), tried: at(0), retry_at: at(20) };
    m.settle();
    m.now = 20;
    m.settle();
    assert_eq!(m.phase(), "Running", "it came after all");
    let never = json!([{"name": "main", "image": "i", "imagePullPolicy": "Never"}]);
    let mut m = Machine::new(json!({"containers": never}));
    m.container("main").image =
        Image::Missing { message: "no recipe".into(), tried: at(0), retry_at: at(20) };
    assert_eq!((m.settle(), m.waits("main").as_str()), (Some(20), "ErrImageNeverPull"));
    assert_eq!(m.events, ["Container image \"i\" is not present with pull policy of Never"]);
}

#[test]
fn a_pod_past_its_active_deadline_fails() {
    let mut m = Machine::new(json!({"activeDeadlineSeconds": 60, "terminationGracePeriodSeconds": 5}));
    assert_eq!(m.settle(), Some(60));
    m.now = 60;
    m.settle();
    m.exits("main", 143);
    m.settle();
    let status = m.pod.status.clone().unwrap();
    assert_eq!((m.phase(), status.reason.as_deref()), ("Failed", Some("DeadlineExceeded")));
    m.now = 100;
    assert_eq!(m.settle(), None);
}

#[test]
fn probes_set_started_and_ready_and_restart_containers() {
    let mut m = Machine::new(json!({"containers": [{"name": "main", "image": "i",
        "startupProbe": {"tcpSocket": {"port": 1}}, "readinessProbe": {"tcpSocket": {"port": 1}},
        "livenessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 7}}]}));
    m.settle();
    assert_eq!((m.status("main").started, m.holds("Ready")), (Some(false), false));
    m.container("main").started = Some(true);
    m.settle();
    assert_eq!((m.status("main").started, m.holds("Ready")), (Some(true), false));
    m.container("main").ready = true;
    m.settle();
    assert!(m.holds("Ready"));
    m.container("main").liveness_failed = true;
    assert_eq!(m.settle(), Some(7), "it has the probe's own grace");
    assert!(m.events.contains(&"Container main failed liveness probe, will be restarted".to_owned()));
    m.exits("main", 143);
    m.settle();
    assert_eq!((m.status("main").restart_count, m.status("main").started), (1, Some(false)));
}

#[test]
fn a_lost_sandbox_is_created_again_and_init_containers_run_again() {
    let mut m = Machine::new(json!({"initContainers": [{"name": "one"}]}));
    m.settle();
    m.exits("one", 0);
    m.settle();
    assert_eq!(m.phase(), "Running");
    m.loses_its_sandbox();
    m.settle();
    assert_eq!(m.started, ["one", "main", "one"], "from the beginning");
    m.exits("one", 0);
    m.settle();
    assert_eq!((m.started.len(), m.phase(), m.status("main").restart_count), (4, "Running", 1));
    assert_eq!(m.status("main").last_state.unwrap().terminated.unwrap().exit_code, 137);

    let mut m = Machine::new(json!({"restartPolicy": "Never"}));
    m.settle();
    m.loses_its_sandbox();
    m.settle();
    assert_eq!((m.phase(), m.started.len()), ("Failed", 1));
}

#[test]
fn a_changed_image_restarts_the_container() {
    let mut m = Machine::new(json!({"restartPolicy": "Never"}));
    m.settle();
    m.pod.spec.as_mut().unwrap().containers[0].image = Some("other".into());
    m.settle();
    assert!(m.events.contains(&"Container main definition changed, will be restarted".to_owned()));
    m.exits("main", 0);
    m.settle();
    assert_eq!((m.phase(), m.status("main").image.as_str(), m.started.len()), ("Running", "other", 2));
}

#[test]
fn reported_resources_are_those_it_was_started_with() {
    let sized =
        |much: &str| json!([{"name": "main", "image": "i", "resources": {"requests": {"cpu": much}}}]);
    let mut m = Machine::new(json!({"containers": sized("1")}));
    m.settle();
    let allocated = |m: &Machine| m.status("main").allocated_resources.unwrap()["cpu"].0.clone();
    m.pod.spec.as_mut().unwrap().containers = serde_json::from_value(sized("2")).unwrap();
    m.settle();
    assert_eq!(allocated(&m), "1");
    m.exits("main", 1);
    m.settle();
    assert_eq!((allocated(&m).as_str(), m.status("main").restart_count), ("2", 1));
    assert_eq!(m.status("main").resources, m.pod.spec.as_ref().unwrap().containers[0].resources);
}

#[test]
fn an_evicted_pod_is_terminated_killed_and_its_disk_reclaimed() {
    let mut m = Machine::new(json!({}));
    m.settle();
    m.now = 10;
    m.state.eviction =
        Some(Eviction { message: "no room".into(), at: at(10), cause: EvictionCause::NodePressure });
    assert_eq!(m.settle(), Some(11), "it has a second");
    assert_eq!(m.phase(), "Running", "until it has stopped");
    m.now = 11;
    m.settle();
    let status = m.pod.status.clone().unwrap();
    assert_eq!(
        (m.phase(), status.reason.as_deref(), status.message.as_deref()),
        ("Failed", Some("Evicted"), Some("no room"))
    );
    assert_eq!((m.state.sandbox.clone(), m.state.reclaimed), (Sandbox::Absent, true));
    assert!(m.holds("DisruptionTarget"), "it is not its own failure");
    m.now = 1000;
    assert_eq!(m.settle(), None);
    assert_eq!(m.started, ["main"], "it is not started again");
}

#[test]
fn a_rejected_pod_never_runs() {
    let mut m = Machine::new(json!({}));
    m.state.eviction = Some(Eviction {
        message: "no room".into(),
        at: at(0),
        cause: EvictionCause::Rejected("Evicted".into()),
    });
    m.settle();
    let status = m.pod.status.clone().unwrap();
    assert_eq!((m.phase(), status.message.as_deref()), ("Failed", Some("Pod was rejected: no room")));
    assert!(m.started.is_empty() && m.state.sandbox == Sandbox::Absent);
}

#[test]
fn a_containers_restart_policy_and_rules_come_before_its_pods() {
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    let mut m = Machine::new(json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "i", "restartPolicy": "Never", "restartPolicyRules": rules},
    ]}));
    m.settle();
    m.exits("main", 42);
    m.settle();
    assert_eq!((m.phase(), m.started.len()), ("Running", 2));
    m.now = 1;
    m.exits("main", 42);
    assert_eq!((m.settle(), m.phase(), m.waits("main").as_str()), (Some(11), "Running", "CrashLoopBackOff"));
    m.now = 11;
    m.settle();
    m.exits("main", 1);
    m.settle();
    assert_eq!((m.phase(), m.started.len()), ("Failed", 3));

    let mut m = Machine::new(json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "i", "restartPolicy": "Always"},
    ]}));
    m.settle();
    m.exits("main", 0);
    m.settle();
    assert_eq!((m.phase(), m.started.len()), ("Running", 2));
    m.deleted(30);
    m.settle();
    assert!(m.state.containers["main"].stop.is_some(), "it is no sidecar");
}
