//! What a kubelet that restarts finds of its pods: shims that are running, and what is left of pods that are not.

use super::decide::EVICTED;
use super::node_context::NodeContext;
use super::pod_state::{Image, Sandbox};
use super::pod_worker::PodWorker;
use crate::eviction::{Eviction, EvictionCause};
use crate::file_tree;
use crate::shim::{ContainerState, Phase, Shim};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use std::collections::HashSet;
use std::path::PathBuf;

/// The exit code of SIGKILL.
const SIGKILL: i32 = 137;

/// Adopts what is there of a pod, which continues where it was.
pub(super) async fn adopt(worker: &mut PodWorker, pod: &Pod) {
    let status = pod.status.clone().unwrap_or_default();
    worker.state.pod_ip = status.pod_ip.clone().filter(|address| !address.is_empty());
    let (init, main) = (&status.init_container_statuses, &status.container_statuses);
    let reported: Vec<&ContainerStatus> =
        init.iter().chain(main).chain(&status.ephemeral_container_statuses).flatten().collect();
    for status in &reported {
        let record = worker.container_mut(&status.name);
        // A pod does not become unready because its kubelet restarts.
        record.ready = status.ready;
        record.started = status.started.filter(|started| *started);
        record.image = Image::Unknown;
    }
    let now = worker.context.clock.now();
    if status.reason.as_deref() == Some(EVICTED) {
        let message = status.message.clone().unwrap_or_default();
        worker.state.eviction = Some(Eviction { message, at: now, cause: EvictionCause::LimitExceeded });
    }
    if let Some(shim) = Shim::find(&worker.folder).await {
        worker.state.sandbox = Sandbox::Alive;
        worker.watch(&shim);
        let states = shim.states().await.unwrap_or_default();
        worker.shim = Some(shim);
        worker.update_states(pod, states);
        return;
    }
    let left = crate::shim::container_states(&worker.folder).await;
    let states = if left.is_empty() {
        reported.iter().filter_map(|status| reported_state(status)).collect()
    } else {
        left
    };
    if states.iter().any(|state| matches!(state.phase, Phase::Running { .. })) {
        worker.record_sandbox_changed(pod);
    }
    worker.update_states(pod, killed(states, now));
}

/// The reported state of a container, if the shim left none.
fn reported_state(status: &ContainerStatus) -> Option<ContainerState> {
    let state = status.state.as_ref()?;
    let millis = |time: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        time.map_or(0, |time| time.0.as_millisecond())
    };
    let ended = |ended: &k8s_openapi::api::core::v1::ContainerStateTerminated| Phase::Exited {
        started: millis(ended.started_at.as_ref()),
        finished: millis(ended.finished_at.as_ref()),
        code: ended.exit_code,
        out_of_memory: ended.reason.as_deref() == Some("OOMKilled"),
    };
    let last = status.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    let phase = match (&state.running, &state.terminated, last) {
        (Some(running), ..) => Phase::Running { pid: 0, started: millis(running.started_at.as_ref()) },
        (None, Some(terminated), _) => ended(terminated),
        // It was waiting to be restarted.
        (None, None, Some(last)) => ended(last),
        (None, None, None) => return None,
    };
    Some(ContainerState {
        name: status.name.clone(),
        attempt: u32::try_from(status.restart_count).unwrap_or(0),
        phase,
    })
}

/// The same states, with running containers killed.
pub(super) fn killed(states: Vec<ContainerState>, now: Timestamp) -> Vec<ContainerState> {
    let kill = |mut state: ContainerState| {
        if let Phase::Running { started, .. } = state.phase {
            state.phase = Phase::Exited {
                started,
                finished: now.as_millisecond(),
                code: SIGKILL,
                out_of_memory: false,
            };
        }
        state
    };
    states.into_iter().map(kill).collect()
}

/// Kills what is left of a deleted pod, and removes its directories. What fails is tried again later.
pub(super) async fn remove_pod(context: &NodeContext, uid: &str, pod: Option<&Pod>) {
    if try_to_remove_pod(context, uid, pod).await {
        context.leftovers.lock().remove(uid);
    } else {
        context.leftovers.lock().insert(uid.to_owned());
    }
}

async fn try_to_remove_pod(context: &NodeContext, uid: &str, pod: Option<&Pod>) -> bool {
    let folder = context.pod_dir(uid);
    if let Err(error) = Shim::end_in(&folder).await {
        tracing::warn!(uid, "failed to kill what is left of a pod: {error}");
        return false;
    }
    if let Some(network) = &context.network
        && let Err(error) = network.release(uid).await
    {
        tracing::warn!(uid, "failed to release a pod's IP: {error}");
    }
    let mut folders = vec![folder];
    match pod {
        Some(pod) => folders.push(context.pod_logs_dir(pod)),
        None => folders.extend(logs_of_uid(context, uid)),
    }
    remove_dirs(folders).await
}

/// Removes directories; failures are logged. Says whether all are gone.
pub(super) async fn remove_dirs(folders: Vec<PathBuf>) -> bool {
    let remove = |folder: &PathBuf| match file_tree::remove(folder) {
        Err(error) => {
            tracing::warn!("failed to remove {}: {error}", folder.display());
            false
        }
        Ok(()) => true,
    };
    let removed = tokio::task::spawn_blocking(move || {
        // What fails keeps none of the others.
        let removed: Vec<bool> = folders.iter().map(remove).collect();
        !removed.contains(&false)
    });
    removed.await.unwrap_or(false)
}

fn logs_of_uid(context: &NodeContext, uid: &str) -> Vec<PathBuf> {
    let suffix = format!("_{uid}");
    let entries = std::fs::read_dir(context.logs_dir()).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(&suffix))
        .map(|entry| entry.path())
        .collect()
}

/// The UIDs of pods that have directories here and are not in the API any more.
pub(super) fn orphans(context: &NodeContext, known: &HashSet<String>) -> Vec<String> {
    let entries = std::fs::read_dir(context.root.join("pods")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|uid| !known.contains(uid)).collect()
}
