//! Lives of pods, decided step by step on a machine that does at once what it is told.

use super::backoff::Backoff;
use super::decide::{Decision, Step, decide};
use super::known::{Hook, Image, Known, Run, Sandbox, Volumes, finished};
use crate::shim::{ContainerState, Phase};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).unwrap()
}

/// A machine for one pod.
struct Machine {
    pod: Pod,
    known: Known,
    now: i64,
    told: Vec<String>,
    gone: bool,
    started: Vec<String>,
}

impl Machine {
    fn new(spec: Value) -> Self {
        let mut whole = json!({"containers": [{"name": "main", "image": "i"}]});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let meta = json!({"name": "p", "namespace": "d", "uid": "u", "generation": 1});
        let pod = serde_json::from_value(json!({"metadata": meta, "spec": whole})).unwrap();
        let known = Known { host_ip: "192.0.2.1".into(), ..Known::default() };
        Self { pod, known, now: 0, told: Vec::new(), gone: false, started: Vec::new() }
    }

    fn run(&mut self, name: &str) -> &mut Run {
        self.known.runs.entry(name.to_owned()).or_default()
    }

    /// Does what is decided until nothing more is. Answers when to look again, in seconds.
    fn settle(&mut self) -> Option<i64> {
        for _ in 0..40 {
            let Decision { steps, status, told, wake } = decide(&self.pod, &self.known, at(self.now));
            self.told.extend(told.into_iter().map(|told| told.message));
            let news = status.is_some();
            if let Some(status) = status {
                self.pod.status = Some(status);
            }
            if steps.is_empty() && !news {
                return wake.map(|wake| wake.as_second() - at(0).as_second());
            }
            for step in steps {
                self.carry_out(step);
            }
            if self.gone {
                return None;
            }
        }
        panic!("it never comes to rest: {:?}", self.pod.status);
    }

    fn carry_out(&mut self, step: Step) {
        let now = at(self.now);
        let millis = now.as_millisecond();
        match step {
            Step::Prepare => self.known.volumes = Volumes::Ready,
            Step::Launch => {
                self.known.sandbox = Sandbox::Alive;
                self.known.pod_ip = Some("10.244.0.2".into());
                self.known.runs.values_mut().for_each(|run| run.floor = run.next_attempt());
            }
            Step::Find(name) => self.run(&name).image = Image::Found { id: "id".into() },
            Step::Start(name, attempt) => {
                self.started.push(name.clone());
                let run = self.run(&name);
                if let Some(ended) = run.last().and_then(|last| finished(&last.phase)) {
                    run.backoff = Some(Backoff::next(run.backoff.as_ref(), ended, now));
                }
                let phase = Phase::Running { pid: 1, started: millis };
                let state = ContainerState { name, attempt, phase };
                run.states.push(state);
                (run.stop, run.started, run.ready, run.dead) = (None, None, false, false);
            }
            Step::Stop(name, stop, message) => {
                self.told.push(message);
                self.run(&name).stop = Some(stop);
            }
            Step::Hasten(name, deadline) => self.run(&name).stop.as_mut().unwrap().hasten(deadline),
            Step::PreStop(name) => self.run(&name).stop.as_mut().unwrap().hook = Some(Hook::Done),
            Step::Ask(name) => self.run(&name).stop.as_mut().unwrap().told = Some(now),
            Step::Kill(name) => {
                self.run(&name).stop.as_mut().unwrap().killed = Some(now);
                self.exits(&name, 137);
            }
            Step::End => self.known.sandbox = Sandbox::Absent,
            Step::Remove => self.gone = true,
        }
    }

    fn exits(&mut self, name: &str, code: i32) {
        let millis = at(self.now).as_millisecond();
        let last = self.run(name).states.last_mut().unwrap();
        let Phase::Running { started, .. } = last.phase else { panic!("{name} does not run") };
        last.phase = Phase::Exited { started, finished: millis, code, out_of_memory: false };
    }

    /// All that ran is dead, with its namespaces.
    fn loses_its_sandbox(&mut self) {
        let running: Vec<String> = self
            .known
            .runs
            .iter()
            .filter(|(_, run)| run.is_running())
            .map(|(name, _)| name.clone())
            .collect();
        running.iter().for_each(|name| self.exits(name, 137));
        self.known.sandbox = Sandbox::Absent;
    }

    fn phase(&self) -> &str {
        self.pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }

    fn status(&self, name: &str) -> ContainerStatus {
        let status = self.pod.status.as_ref().unwrap();
        let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        all.into_iter().find(|status| status.name == name).cloned().unwrap()
    }

    fn waits(&self, name: &str) -> String {
        self.status(name).state.and_then(|state| state.waiting?.reason).unwrap_or_default()
    }

    fn holds(&self, of: &str) -> bool {
        let conditions = self.pod.status.as_ref().unwrap().conditions.clone().unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == of && condition.status == "True")
    }

    fn deleted(&mut self, grace: i64) {
        self.pod.metadata.deletion_timestamp = Some(Time(at(self.now + grace)));
        self.pod.metadata.deletion_grace_period_seconds = Some(grace);
    }
}

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
fn it_ends_by_its_exit_codes() {
    for (policy, code, phase) in
        [("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")]
    {
        let mut m = Machine::new(json!({"restartPolicy": policy}));
        m.settle();
        m.exits("main", code);
        m.settle();
        assert_eq!((m.phase(), m.known.sandbox.clone()), (phase, Sandbox::Absent), "{policy} {code}");
        assert!(!m.holds("Ready") && m.started.len() == 1);
    }
}

#[test]
fn one_that_crashes_is_started_again_ever_later() {
    let mut m = Machine::new(json!({}));
    m.settle();
    m.exits("main", 1);
    m.settle();
    assert_eq!((m.status("main").restart_count, m.phase()), (1, "Running"), "at once the first time");
    m.now = 1;
    m.exits("main", 1);
    assert_eq!(m.settle(), Some(11));
    assert_eq!((m.waits("main").as_str(), m.phase()), ("CrashLoopBackOff", "Running"));
    assert!(m.told.iter().any(|told| told == "Back-off restarting failed container main in pod p_d(u)"));
    assert_eq!(m.status("main").last_state.unwrap().terminated.unwrap().exit_code, 1);
    m.now = 11;
    assert_eq!(m.settle(), None);
    assert_eq!((m.status("main").restart_count, m.holds("Ready")), (2, true));
}

#[test]
fn containers_that_initialize_go_one_after_the_other() {
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
fn a_failed_initialization_ends_a_pod_that_is_not_started_again() {
    let mut m = Machine::new(json!({"restartPolicy": "Never", "initContainers": [{"name": "one"}]}));
    m.settle();
    m.exits("one", 7);
    m.settle();
    assert_eq!((m.phase(), m.started.len()), ("Failed", 1));
}

#[test]
fn what_goes_on_beside_the_others_ends_after_them() {
    let mut m = Machine::new(
        json!({"restartPolicy": "Never", "initContainers": [{"name": "side", "restartPolicy": "Always"}]}),
    );
    m.settle();
    m.exits("main", 0);
    m.settle();
    assert_eq!(m.phase(), "Running", "it is being stopped");
    assert!(m.known.runs["side"].stop.as_ref().unwrap().told.is_some());
    m.exits("side", 143);
    m.settle();
    assert_eq!((m.phase(), m.known.sandbox.clone()), ("Succeeded", Sandbox::Absent));
}

#[test]
fn a_deletion_asks_waits_kills_and_takes_it_away() {
    let mut m = Machine::new(json!({"containers": [
        {"name": "main", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}},
    ]}));
    m.settle();
    m.deleted(30);
    assert_eq!(m.settle(), Some(30));
    assert!(m.told.contains(&"Stopping container main".to_owned()) && !m.gone);
    assert_eq!(m.phase(), "Running");
    m.now = 30;
    m.settle();
    assert!(m.gone);
    assert_eq!((m.phase(), m.status("main").state.unwrap().terminated.unwrap().exit_code), ("Failed", 137));
    assert_eq!(m.known.sandbox, Sandbox::Absent);
}

#[test]
fn a_hastened_deletion_waits_no_longer() {
    let mut m = Machine::new(json!({}));
    m.settle();
    m.deleted(300);
    assert_eq!(m.settle(), Some(300));
    m.now = 5;
    m.deleted(1);
    assert_eq!(m.settle(), Some(6));
    m.now = 6;
    m.settle();
    assert!(m.gone);
}

#[test]
fn one_that_never_started_goes_at_once() {
    let mut m = Machine::new(json!({}));
    m.run("main").image = Image::Missing { message: "no recipe".into(), tried: at(0), again: at(20) };
    assert_eq!(m.settle(), Some(10));
    assert_eq!((m.waits("main").as_str(), m.phase()), ("ErrImagePull", "Pending"));
    m.now = 10;
    assert_eq!(m.settle(), Some(20));
    assert_eq!(m.waits("main"), "ImagePullBackOff");
    m.deleted(30);
    m.settle();
    assert!(m.gone);
    assert_eq!(
        m.status("main").state.unwrap().terminated.unwrap().reason.as_deref(),
        Some("ContainerStatusUnknown")
    );
    let mut m = Machine::new(json!({}));
    m.run("main").image = Image::Missing { message: "no recipe".into(), tried: at(0), again: at(20) };
    m.settle();
    m.now = 20;
    m.settle();
    assert_eq!(m.phase(), "Running", "it came after all");
}

#[test]
fn one_that_runs_too_long_fails() {
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
fn probes_decide_over_start_readiness_and_life() {
    let mut m = Machine::new(json!({"containers": [{"name": "main", "image": "i",
        "startupProbe": {"tcpSocket": {"port": 1}}, "readinessProbe": {"tcpSocket": {"port": 1}},
        "livenessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 7}}]}));
    m.settle();
    assert_eq!((m.status("main").started, m.holds("Ready")), (Some(false), false));
    m.run("main").started = Some(true);
    m.settle();
    assert_eq!((m.status("main").started, m.holds("Ready")), (Some(true), false));
    m.run("main").ready = true;
    m.settle();
    assert!(m.holds("Ready"));
    m.run("main").dead = true;
    assert_eq!(m.settle(), Some(7), "it has the probe's own grace");
    assert!(m.told.contains(&"Container main failed liveness probe, will be restarted".to_owned()));
    m.exits("main", 143);
    m.settle();
    assert_eq!((m.status("main").restart_count, m.status("main").started), (1, Some(false)));
}

#[test]
fn namespaces_that_died_are_made_again_and_initialized_again() {
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
fn another_image_is_another_run() {
    let mut m = Machine::new(json!({"restartPolicy": "Never"}));
    m.settle();
    m.pod.spec.as_mut().unwrap().containers[0].image = Some("other".into());
    m.settle();
    assert!(m.told.contains(&"Container main definition changed, will be restarted".to_owned()));
    m.exits("main", 0);
    m.settle();
    assert_eq!((m.phase(), m.status("main").image.as_str(), m.started.len()), ("Running", "other", 2));
}
