//! A machine that does at once what it is told.

use super::super::backoff::Backoff;
use super::super::decide::{Decision, Step, decide};
use super::super::known::{Hook, Image, Known, Run, Sandbox, Volumes, finished};
use crate::shim::{ContainerState, Phase};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).unwrap()
}

/// A machine for one pod.
pub(super) struct Machine {
    pub(super) pod: Pod,
    pub(super) known: Known,
    pub(super) now: i64,
    pub(super) told: Vec<String>,
    pub(super) gone: bool,
    pub(super) started: Vec<String>,
}

impl Machine {
    pub(super) fn new(spec: Value) -> Self {
        let mut whole = json!({"containers": [{"name": "main", "image": "i"}]});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let meta = json!({"name": "p", "namespace": "d", "uid": "u", "generation": 1});
        let pod = serde_json::from_value(json!({"metadata": meta, "spec": whole})).unwrap();
        let known = Known { host_ip: "192.0.2.1".into(), ..Known::default() };
        Self { pod, known, now: 0, told: Vec::new(), gone: false, started: Vec::new() }
    }

    pub(super) fn run(&mut self, name: &str) -> &mut Run {
        self.known.runs.entry(name.to_owned()).or_default()
    }

    /// Does what is decided until nothing more is. Answers when to look again, in seconds.
    pub(super) fn settle(&mut self) -> Option<i64> {
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

    pub(super) fn carry_out(&mut self, step: Step) {
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
            Step::Reclaim => self.known.reclaimed = true,
            Step::Remove => self.gone = true,
        }
    }

    pub(super) fn exits(&mut self, name: &str, code: i32) {
        let millis = at(self.now).as_millisecond();
        let last = self.run(name).states.last_mut().unwrap();
        let Phase::Running { started, .. } = last.phase else { panic!("{name} does not run") };
        last.phase = Phase::Exited { started, finished: millis, code, out_of_memory: false };
    }

    /// All that ran is dead, with its namespaces.
    pub(super) fn loses_its_sandbox(&mut self) {
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

    pub(super) fn phase(&self) -> &str {
        self.pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }

    pub(super) fn status(&self, name: &str) -> ContainerStatus {
        let status = self.pod.status.as_ref().unwrap();
        let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        all.into_iter().find(|status| status.name == name).cloned().unwrap()
    }

    pub(super) fn waits(&self, name: &str) -> String {
        self.status(name).state.and_then(|state| state.waiting?.reason).unwrap_or_default()
    }

    pub(super) fn holds(&self, of: &str) -> bool {
        let conditions = self.pod.status.as_ref().unwrap().conditions.clone().unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == of && condition.status == "True")
    }

    pub(super) fn deleted(&mut self, grace: i64) {
        self.pod.metadata.deletion_timestamp = Some(Time(at(self.now + grace)));
        self.pod.metadata.deletion_grace_period_seconds = Some(grace);
    }
}
