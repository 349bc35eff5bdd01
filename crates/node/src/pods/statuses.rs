//! What is reported of one container: from what its shim says, and what was reported before. Pure.

use super::known::{Run, exit_code, time};
use super::policy::is_sidecar;
use crate::shim::{ContainerState as Seen, Phase};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Why a container waits: a reason, and a message where there is more to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) reason: &'static str,
    pub(crate) message: Option<String>,
}

impl Waits {
    pub(crate) fn plainly(reason: &'static str) -> Self {
        Self { reason, message: None }
    }
}

/// How an attempt is named.
pub(crate) fn id(uid: &str, name: &str, attempt: u32) -> String {
    format!("windlass://{uid}/{name}/{attempt}")
}

/// The status of a container. `waits` says why it does not run, where it is to run again or was not started.
pub(crate) fn status(
    uid: &str,
    container: &Container,
    run: &Run,
    waits: Option<Waits>,
    before: Option<&ContainerStatus>,
) -> ContainerStatus {
    let mut status = ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        started: Some(false),
        ..ContainerStatus::default()
    };
    if let super::known::Image::Found { id } = &run.image {
        status.image_id = id.clone();
    } else if let Some(before) = before {
        status.image_id = before.image_id.clone();
    }
    let Some(last) = run.last() else {
        status.state = Some(waiting(waits.unwrap_or_else(|| Waits::plainly("ContainerCreating"))));
        return status;
    };
    status.restart_count = i32::try_from(last.attempt).unwrap_or(i32::MAX);
    status.container_id = Some(id(uid, &container.name, last.attempt));
    // What it was started with: another size is not given to one that runs.
    let same =
        before.filter(|before| before.container_id == status.container_id && before.resources.is_some());
    let own = container.resources.clone().filter(|own| *own != ResourceRequirements::default());
    status.resources = same.map_or_else(|| own.clone(), |same| same.resources.clone());
    status.allocated_resources = match same {
        Some(same) => same.allocated_resources.clone(),
        None => own.and_then(|own| own.requests),
    };
    let state = state(uid, run, last);
    let earlier = run.states.iter().rev().find(|state| state.attempt < last.attempt);
    let mut past = earlier.map(|earlier| self::state(uid, run, earlier));
    if past.is_none() && last.attempt > 0 {
        // Whoever started it knew what became of the one before.
        past = before.and_then(|before| before.last_state.clone());
    }
    match waits {
        // Its end is its past: it is to run again.
        Some(waits) if exit_code(&last.phase).is_some() => {
            status.last_state = Some(state);
            status.state = Some(waiting(waits));
        }
        _ => {
            status.last_state = past;
            let runs = state.running.is_some();
            status.state = Some(state);
            let started = runs
                && match container.startup_probe {
                    Some(_) => run.started == Some(true),
                    None => !matches!(run.post_start, super::known::Hook::Running),
                };
            status.started = Some(started);
            status.ready = started && (container.readiness_probe.is_none() || run.ready);
        }
    }
    status
}

/// One that initializes is ready when it has done its part.
pub(crate) fn initializing(container: &Container, status: &mut ContainerStatus) {
    if !is_sidecar(container) {
        status.ready = ended_with(status) == Some(0);
    }
}

/// The code that a container ended with, as reported.
pub(crate) fn ended_with(status: &ContainerStatus) -> Option<i32> {
    status.state.as_ref()?.terminated.as_ref().map(|ended| ended.exit_code)
}

/// Ends what is reported as waiting to start, in a pod that ends: it was never to be found.
pub(crate) fn never_found(status: &mut ContainerStatus) {
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

fn waiting(waits: Waits) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(waits.reason.to_owned()), message: waits.message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn state(uid: &str, run: &Run, seen: &Seen) -> ContainerState {
    let id = Some(id(uid, &seen.name, seen.attempt));
    let words = || run.words.get(&seen.attempt).filter(|words| !words.is_empty()).cloned();
    let terminated = match &seen.phase {
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
            message: words(),
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
