//! The status of one container, from what its shim reports and its status before. Pure.

use super::pod_state::{ContainerRecord, exit_code, time};
use crate::shim::{ContainerState as Observed, Phase};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_component_helpers::restart_policy::is_sidecar;

/// Why a container is waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) reason: &'static str,
    pub(crate) message: Option<String>,
}

impl Waiting {
    pub(crate) fn for_reason(reason: &'static str) -> Self {
        Self { reason, message: None }
    }
}

/// The container ID of an attempt.
pub(crate) fn id(uid: &str, name: &str, attempt: u32) -> String {
    format!("windlass://{uid}/{name}/{attempt}")
}

/// The status of a container. `waiting` is set if it will be restarted or was not started.
pub(crate) fn status(
    uid: &str,
    container: &Container,
    record: &ContainerRecord,
    waiting: Option<Waiting>,
    before: Option<&ContainerStatus>,
) -> ContainerStatus {
    let mut status = ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        started: Some(false),
        ..ContainerStatus::default()
    };
    if let super::pod_state::Image::Found { id } = &record.image {
        status.image_id = id.clone();
    } else if let Some(before) = before {
        status.image_id = before.image_id.clone();
    }
    let Some(last) = record.last() else {
        status.state =
            Some(waiting_state(waiting.unwrap_or_else(|| Waiting::for_reason("ContainerCreating"))));
        return status;
    };
    status.restart_count = i32::try_from(last.attempt).unwrap_or(i32::MAX);
    status.container_id = Some(id(uid, &container.name, last.attempt));
    // What it was started with: running containers are not resized.
    let same =
        before.filter(|before| before.container_id == status.container_id && before.resources.is_some());
    let own = container.resources.clone().filter(|own| *own != ResourceRequirements::default());
    status.resources = same.map_or_else(|| own.clone(), |same| same.resources.clone());
    status.allocated_resources = match same {
        Some(same) => same.allocated_resources.clone(),
        None => own.and_then(|own| own.requests),
    };
    let state = state(uid, record, last);
    let earlier = record.states.iter().rev().find(|state| state.attempt < last.attempt);
    let mut past = earlier.map(|earlier| self::state(uid, record, earlier));
    if past.is_none() && last.attempt > 0 {
        // Its status before has what became of the attempt before.
        past = before.and_then(|before| before.last_state.clone());
    }
    match waiting {
        // It will be restarted: its termination is its last state.
        Some(waiting) if exit_code(&last.phase).is_some() => {
            status.last_state = Some(state);
            status.state = Some(waiting_state(waiting));
        }
        _ => {
            status.last_state = past;
            let runs = state.running.is_some();
            status.state = Some(state);
            let started = runs
                && match container.startup_probe {
                    Some(_) => record.started == Some(true),
                    None => !matches!(record.post_start, super::pod_state::Hook::Running),
                };
            status.started = Some(started);
            status.ready = started && (container.readiness_probe.is_none() || record.ready);
        }
    }
    status
}

/// An init container is ready when it has completed.
pub(crate) fn set_init_container_ready(container: &Container, status: &mut ContainerStatus) {
    if !is_sidecar(container) {
        status.ready = exit_code_of(status) == Some(0);
    }
}

/// The exit code in a status.
pub(crate) fn exit_code_of(status: &ContainerStatus) -> Option<i32> {
    status.state.as_ref()?.terminated.as_ref().map(|ended| ended.exit_code)
}

/// Terminates the status of a container that never started, in a pod that terminates.
pub(crate) fn terminate_unknown(status: &mut ContainerStatus) {
    if status.state.as_ref().is_some_and(|state| state.waiting.is_some()) {
        let terminated = ContainerStateTerminated {
            exit_code: 137,
            reason: Some("ContainerStatusUnknown".to_owned()),
            message: Some("The container could not be located when the pod was terminated".to_owned()),
            ..ContainerStateTerminated::default()
        };
        status.state = Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
        status.ready = false;
        status.started = Some(false);
    }
}

fn waiting_state(waiting: Waiting) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(waiting.reason.to_owned()), message: waiting.message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn state(uid: &str, record: &ContainerRecord, observed: &Observed) -> ContainerState {
    let id = Some(id(uid, &observed.name, observed.attempt));
    let message =
        || record.termination_messages.get(&observed.attempt).filter(|text| !text.is_empty()).cloned();
    let terminated = match &observed.phase {
        Phase::Running { started, .. } => {
            let running = ContainerStateRunning { started_at: Some(Time(time(*started))) };
            return ContainerState { running: Some(running), ..ContainerState::default() };
        }
        Phase::Exited { started, finished, code, out_of_memory } => ContainerStateTerminated {
            exit_code: *code,
            reason: Some(if *out_of_memory {
                "OOMKilled".to_owned()
            } else if *code == 0 {
                "Completed".to_owned()
            } else {
                "Error".to_owned()
            }),
            message: message(),
            started_at: Some(Time(time(*started))),
            finished_at: Some(Time(time(*finished))),
            container_id: id,
            ..ContainerStateTerminated::default()
        },
        Phase::Failed { at, code, message } => ContainerStateTerminated {
            exit_code: *code,
            reason: Some("StartError".to_owned()),
            message: Some(message.clone()),
            started_at: Some(Time(time(*at))),
            finished_at: Some(Time(time(*at))),
            container_id: id,
            ..ContainerStateTerminated::default()
        },
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}
