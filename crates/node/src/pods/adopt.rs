//! What a node that starts finds of pods that it had: shims that live, and what is left of those that do not.

use super::decide::EVICTED;
use super::known::{Cause, Evicted, Image, Sandbox};
use super::site::Site;
use super::worker::Worker;
use crate::shim::{ContainerState, Phase, Shim};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use std::collections::HashSet;
use std::path::PathBuf;

/// How something ends that was killed.
const KILLED: i32 = 137;

/// Takes up what is there of a pod: it goes on where it was.
pub(super) async fn adopt(worker: &mut Worker, pod: &Pod) {
    let status = pod.status.clone().unwrap_or_default();
    worker.known.pod_ip = status.pod_ip.clone().filter(|address| !address.is_empty());
    let (init, main) = (&status.init_container_statuses, &status.container_statuses);
    let reported: Vec<&ContainerStatus> =
        init.iter().chain(main).chain(&status.ephemeral_container_statuses).flatten().collect();
    for status in &reported {
        let run = worker.run_of(&status.name);
        // What was ready is not unready because we were away.
        run.ready = status.ready;
        run.started = status.started.filter(|started| *started);
        run.image = Image::Unknown;
    }
    let now = worker.site.clock.now();
    if status.reason.as_deref() == Some(EVICTED) {
        let message = status.message.clone().unwrap_or_default();
        worker.known.evicted = Some(Evicted { message, at: now, cause: Cause::Excess });
    }
    if let Some(shim) = Shim::find(&worker.folder).await {
        worker.known.sandbox = Sandbox::Alive;
        worker.watch(&shim);
        let states = shim.states().await.unwrap_or_default();
        worker.shim = Some(shim);
        worker.note(pod, states);
        return;
    }
    let left = crate::shim::left_behind(&worker.folder).await;
    let states = if left.is_empty() {
        reported.iter().filter_map(|status| reported_state(status)).collect()
    } else {
        left
    };
    if states.iter().any(|state| matches!(state.phase, Phase::Running { .. })) {
        worker.tell_of_loss(pod);
    }
    worker.note(pod, dead(states, now));
}

/// What was reported of a container whose traces are gone.
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
        // It waited to be started again.
        (None, None, Some(last)) => ended(last),
        (None, None, None) => return None,
    };
    Some(ContainerState {
        name: status.name.clone(),
        attempt: u32::try_from(status.restart_count).unwrap_or(0),
        phase,
    })
}

/// The same, of a pod in which nothing lives.
pub(super) fn dead(states: Vec<ContainerState>, now: Timestamp) -> Vec<ContainerState> {
    let dies = |mut state: ContainerState| {
        if let Phase::Running { started, .. } = state.phase {
            state.phase =
                Phase::Exited { started, finished: now.as_millisecond(), code: KILLED, out_of_memory: false };
        }
        state
    };
    states.into_iter().map(dies).collect()
}

/// Ends what is left of a pod that is gone, and removes its folders.
pub(super) async fn clear(site: &Site, uid: &str, pod: Option<&Pod>) {
    let folder = site.folder(uid);
    if let Err(error) = Shim::end_in(&folder).await {
        tracing::warn!(uid, "what is left of a pod does not end: {error}");
        return;
    }
    if let Some(network) = &site.network
        && let Err(error) = network.release(uid).await
    {
        tracing::warn!(uid, "a pod's address was not released: {error}");
    }
    let mut folders = vec![folder];
    match pod {
        Some(pod) => folders.push(site.logs_of(pod)),
        None => folders.extend(logs_of_uid(site, uid)),
    }
    remove(folders).await;
}

/// Removes folders; those that cannot be are told of.
pub(super) async fn remove(folders: Vec<PathBuf>) {
    let removed = tokio::task::spawn_blocking(move || {
        for folder in folders {
            match std::fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::warn!("{} cannot be removed: {error}", folder.display());
                }
                _ => {}
            }
        }
    });
    let _ = removed.await;
}

fn logs_of_uid(site: &Site, uid: &str) -> Vec<PathBuf> {
    let suffix = format!("_{uid}");
    let entries = std::fs::read_dir(site.logs()).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(&suffix))
        .map(|entry| entry.path())
        .collect()
}

/// The pods whose folders are here and that the API knows no more.
pub(super) fn orphans(site: &Site, known: &HashSet<String>) -> Vec<String> {
    let entries = std::fs::read_dir(site.root.join("pods")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|uid| !known.contains(uid)).collect()
}
