//! A node for one pod on which every step succeeds at once.

use super::super::backoff::Backoff;
use super::super::decide::{Decision, Step, decide};
use super::super::pod_state::{ContainerRecord, Hook, Image, PodState, Sandbox, Volumes, finished};
use crate::shim::{ContainerState, Phase};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).unwrap()
}

/// A node for one pod.
pub(super) struct Machine {
    pub(super) pod: Pod,
    pub(super) state: PodState,
    pub(super) now: i64,
    pub(super) events: Vec<String>,
    pub(super) deleted_from_api: bool,
    pub(super) started: Vec<String>,
}

impl Machine {
    pub(super) fn new(spec: Value) -> Self {
        let mut whole = json!({"containers": [{"name": "main", "image": "i"}]});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let meta = json!({"name": "p", "namespace": "d", "uid": "u", "generation": 1});
        let pod = serde_json::from_value(json!({"metadata": meta, "spec": whole})).unwrap();
        let state = PodState { host_ip: "192.0.2.1".into(), ..PodState::default() };
        Self { pod, state, now: 0, events: Vec::new(), deleted_from_api: false, started: Vec::new() }
    }

    pub(super) fn container(&mut self, name: &str) -> &mut ContainerRecord {
        self.state.containers.entry(name.to_owned()).or_default()
    }

    /// Takes all steps until there are none. Returns when to sync again, in seconds.
    pub(super) fn settle(&mut self) -> Option<i64> {
        for _ in 0..40 {
            let Decision { steps, status, events, requeue_at } = decide(&self.pod, &self.state, at(self.now));
            self.events.extend(events.into_iter().map(|event| event.message));
            let changed = status.is_some();
            if let Some(status) = status {
                self.pod.status = Some(status);
            }
            if steps.is_empty() && !changed {
                return requeue_at.map(|at| at.as_second() - self::at(0).as_second());
            }
            for step in steps {
                self.act(step);
            }
            if self.deleted_from_api {
                return None;
            }
        }
        panic!("its status never gets stable: {:?}", self.pod.status);
    }

    pub(super) fn act(&mut self, step: Step) {
        let now = at(self.now);
        let millis = now.as_millisecond();
        match step {
            Step::SetUpVolumes => self.state.volumes = Volumes::Ready,
            Step::CreateSandbox => {
                self.state.sandbox = Sandbox::Alive;
                self.state.pod_ip = Some("10.244.0.2".into());
                self.state
                    .containers
                    .values_mut()
                    .for_each(|record| record.first_attempt = record.next_attempt());
            }
            Step::PullImage(name) => self.container(&name).image = Image::Found { id: "id".into() },
            Step::Start(name, attempt) => {
                self.started.push(name.clone());
                let record = self.container(&name);
                if let Some(ended) = record.last().and_then(|last| finished(&last.phase)) {
                    record.backoff = Some(Backoff::next(record.backoff.as_ref(), ended, now));
                }
                let phase = Phase::Running { pid: 1, started: millis };
                let state = ContainerState { name, attempt, phase };
                record.states.push(state);
                (record.stop, record.started, record.ready, record.liveness_failed) =
                    (None, None, false, false);
            }
            Step::Stop(name, stop, message) => {
                self.events.push(message);
                self.container(&name).stop = Some(stop);
            }
            Step::ShortenGracePeriod(name, deadline) => {
                self.container(&name).stop.as_mut().unwrap().shorten(deadline)
            }
            Step::PreStop(name) => self.container(&name).stop.as_mut().unwrap().hook = Some(Hook::Done),
            Step::Terminate(name) => self.container(&name).stop.as_mut().unwrap().signaled = Some(now),
            Step::Kill(name) => {
                self.container(&name).stop.as_mut().unwrap().killed = Some(now);
                self.exits(&name, 137);
            }
            Step::KillSandbox => self.state.sandbox = Sandbox::Absent,
            Step::Reclaim => self.state.reclaimed = true,
            Step::DeletePod => self.deleted_from_api = true,
        }
    }

    pub(super) fn exits(&mut self, name: &str, code: i32) {
        let millis = at(self.now).as_millisecond();
        let last = self.container(name).states.last_mut().unwrap();
        let Phase::Running { started, .. } = last.phase else { panic!("{name} does not run") };
        last.phase = Phase::Exited { started, finished: millis, code, out_of_memory: false };
    }

    /// Kills everything, with its sandbox.
    pub(super) fn loses_its_sandbox(&mut self) {
        let running: Vec<String> = self
            .state
            .containers
            .iter()
            .filter(|(_, record)| record.is_running())
            .map(|(name, _)| name.clone())
            .collect();
        running.iter().for_each(|name| self.exits(name, 137));
        self.state.sandbox = Sandbox::Absent;
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
