//! What becomes of one container by now: waiting, running, terminated, restarted. Pure: from its last status and the time.

use super::behavior::ContainerBehavior;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::time::Duration;
use windlass_component_helpers::restart_policy::RestartPolicy;

/// The initial restart back-off in seconds; it doubles with each restart.
const INITIAL_BACKOFF: i64 = 10;
/// The maximum.
const MAX_BACKOFF: i64 = 300;
/// A container that ran this long starts again with the initial back-off.
const BACKOFF_RESET: SignedDuration = SignedDuration::from_mins(10);
/// From the first failed image pull to the image pull back-off.
const IMAGE_BACKOFF: Duration = Duration::from_secs(10);
/// The exit codes of SIGTERM and SIGKILL.
pub(super) const SIGTERM: i32 = 143;
pub(super) const SIGKILL: i32 = 137;

/// An Event to record about the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContainerEvent {
    Started,
    BackOff(String),
    ImagePullFailed(String),
}

/// A container to be synced.
pub(super) struct ContainerSync<'a> {
    pub(super) container: &'a Container,
    pub(super) behavior: &'a ContainerBehavior,
    pub(super) policy: RestartPolicy,
    /// `NAME_NAMESPACE(UID)`, as messages name the pod.
    pub(super) pod: &'a str,
    pub(super) uid: &'a str,
    /// When containers of the pod could start.
    pub(super) since: Timestamp,
    pub(super) now: Timestamp,
    /// Now, in the whole seconds of the API.
    pub(super) stamp: Timestamp,
}

/// The result: its status now, and when that changes next.
pub(super) struct SyncedContainer {
    pub(super) status: ContainerStatus,
    pub(super) requeue_at: Option<Timestamp>,
    pub(super) events: Vec<ContainerEvent>,
}

/// The status of a container that has not started.
pub(super) fn waiting(container: &Container, reason: &str) -> ContainerStatus {
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        started: Some(false),
        state: Some(wait(reason, None)),
        ..ContainerStatus::default()
    }
}

fn wait(reason: &str, message: Option<String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

pub(super) fn since(time: Option<&Time>, or: Timestamp) -> Timestamp {
    time.map_or(or, |time| time.0)
}

/// The time after a duration; never past the last representable one.
pub(super) fn later(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

impl ContainerSync<'_> {
    /// Brings the container's status from its last report up to now.
    pub(super) fn sync(&self, before: Option<&ContainerStatus>) -> SyncedContainer {
        let status = before.cloned().unwrap_or_else(|| waiting(self.container, "ContainerCreating"));
        let mut synced = SyncedContainer { status, requeue_at: None, events: Vec::new() };
        // Each round is one state transition; back-off bounds how many can be due at once.
        for _ in 0..16 {
            if !self.transition(&mut synced) {
                break;
            }
        }
        synced
    }

    /// Makes the next state transition. Returns whether one was due.
    fn transition(&self, synced: &mut SyncedContainer) -> bool {
        let state = synced.status.state.clone().unwrap_or_default();
        synced.requeue_at = None;
        match (state.running, state.terminated, state.waiting) {
            (Some(running), _, _) => self.sync_running(synced, since(running.started_at.as_ref(), self.now)),
            (_, Some(ended), _) => self.sync_terminated(synced, &ended),
            (_, _, waiting) => self.sync_waiting(synced, waiting.unwrap_or_default()),
        }
    }

    fn sync_waiting(&self, synced: &mut SyncedContainer, waiting: ContainerStateWaiting) -> bool {
        if let Some(ended) = synced.status.last_state.as_ref().and_then(|last| last.terminated.clone())
            && waiting.reason.as_deref() == Some("CrashLoopBackOff")
        {
            let due = later(since(ended.finished_at.as_ref(), self.now), self.backoff(synced, &ended));
            if self.now < due {
                synced.requeue_at = Some(due);
                return false;
            }
            self.start(synced, true);
            return true;
        }
        if self.behavior.fail_image {
            return self.image_pull_failed(synced, &waiting);
        }
        self.start(synced, false);
        true
    }

    fn image_pull_failed(&self, synced: &mut SyncedContainer, waiting: &ContainerStateWaiting) -> bool {
        let image = self.container.image.as_deref().unwrap_or_default();
        let given_up = later(self.since, IMAGE_BACKOFF);
        let (reason, message) = if self.now < given_up {
            synced.requeue_at = Some(given_up);
            ("ErrImagePull", format!("failed to pull image {image:?}: it is simulated to be missing"))
        } else {
            ("ImagePullBackOff", format!("Back-off pulling image {image:?}"))
        };
        if waiting.reason.as_deref() != Some(reason) {
            synced.events.push(match reason {
                "ErrImagePull" => ContainerEvent::ImagePullFailed(message.clone()),
                _ => ContainerEvent::BackOff(message.clone()),
            });
            synced.status.state = Some(wait(reason, Some(message)));
        }
        false
    }

    fn sync_running(&self, synced: &mut SyncedContainer, began: Timestamp) -> bool {
        let image = self.container.image.as_deref().unwrap_or_default();
        if synced.status.image != image {
            // The image was changed: the container is restarted, whatever the policy.
            self.terminate(synced, began, SIGTERM);
            self.move_to_last_state(synced);
            self.start(synced, true);
            return true;
        }
        let exit = self.behavior.exit_after.map(|after| later(began, after));
        if exit.is_some_and(|exit| exit <= self.now) {
            self.terminate(synced, began, self.behavior.exit_code);
            return true;
        }
        let ready = self.behavior.ready_after.map(|after| later(began, after));
        synced.status.ready = ready.is_some_and(|ready| ready <= self.now);
        synced.requeue_at = exit.into_iter().chain(ready.filter(|ready| *ready > self.now)).min();
        false
    }

    fn sync_terminated(&self, synced: &mut SyncedContainer, ended: &ContainerStateTerminated) -> bool {
        if !self.policy.restarts(ended.exit_code) {
            return false;
        }
        let backoff = self.backoff(synced, ended);
        self.move_to_last_state(synced);
        if backoff.is_zero() {
            self.start(synced, true);
            return true;
        }
        let name = &self.container.name;
        let message =
            format!("back-off {} restarting failed container={name} pod={}", go_duration(backoff), self.pod);
        synced.status.state = Some(wait("CrashLoopBackOff", Some(message)));
        synced.events.push(ContainerEvent::BackOff(format!(
            "Back-off restarting failed container {name} in pod {}",
            self.pod
        )));
        true
    }

    /// The back-off before the next restart; the first restart has none.
    fn backoff(&self, synced: &SyncedContainer, ended: &ContainerStateTerminated) -> Duration {
        let finished = since(ended.finished_at.as_ref(), self.now);
        let ran = finished.duration_since(since(ended.started_at.as_ref(), finished));
        let restarts = synced.status.restart_count;
        if restarts == 0 || ran >= BACKOFF_RESET {
            return Duration::ZERO;
        }
        let doublings = u32::try_from(restarts - 1).unwrap_or(0).min(10);
        Duration::from_secs(INITIAL_BACKOFF.saturating_mul(1 << doublings).min(MAX_BACKOFF).unsigned_abs())
    }

    fn start(&self, synced: &mut SyncedContainer, restart: bool) {
        let status = &mut synced.status;
        if restart {
            status.restart_count += 1;
        }
        let running = ContainerStateRunning { started_at: Some(Time(self.stamp)) };
        status.state = Some(ContainerState { running: Some(running), ..ContainerState::default() });
        status.image = self.container.image.clone().unwrap_or_default();
        status.image_id = format!("simulated://{}", status.image);
        status.container_id =
            Some(format!("simulated://{}/{}/{}", self.uid, status.name, status.restart_count));
        status.started = Some(true);
        synced.events.push(ContainerEvent::Started);
    }

    fn terminate(&self, synced: &mut SyncedContainer, began: Timestamp, code: i32) {
        terminate(&mut synced.status, began, code, self.stamp);
    }

    /// Moves its state to its last state.
    fn move_to_last_state(&self, synced: &mut SyncedContainer) {
        synced.status.last_state = synced.status.state.take();
    }
}

/// Terminates a running container.
pub(super) fn terminate(status: &mut ContainerStatus, began: Timestamp, code: i32, now: Timestamp) {
    let reason = if code == 0 { "Completed" } else { "Error" };
    let terminated = ContainerStateTerminated {
        exit_code: code,
        reason: Some(reason.to_owned()),
        started_at: Some(Time(began)),
        finished_at: Some(Time(now)),
        container_id: status.container_id.clone(),
        ..ContainerStateTerminated::default()
    };
    status.state = Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
    status.ready = false;
    status.started = Some(false);
}

/// A duration of whole seconds as Go prints it.
fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn sync(
        before: Option<&ContainerStatus>,
        behavior: &ContainerBehavior,
        policy: RestartPolicy,
        second: i64,
    ) -> SyncedContainer {
        let container = Container { name: "web".into(), image: Some("w:1".into()), ..Container::default() };
        let container_sync = ContainerSync {
            container: &container,
            behavior,
            policy,
            pod: "p_default(u)",
            uid: "u",
            since: at(0),
            now: at(second),
            stamp: at(second),
        };
        container_sync.sync(before)
    }

    const STEADY: ContainerBehavior = ContainerBehavior {
        ready_after: Some(Duration::ZERO),
        exit_after: None,
        exit_code: 0,
        fail_image: false,
    };

    #[test]
    fn without_delays_a_container_is_ready_at_once() {
        let synced = sync(None, &STEADY, RestartPolicy::Always, 0);
        assert!(synced.status.ready && synced.status.state.unwrap().running.is_some());
        assert_eq!((synced.requeue_at, synced.events), (None, vec![ContainerEvent::Started]));
    }

    #[test]
    fn the_restart_back_off_doubles() {
        let behavior = ContainerBehavior { exit_after: Some(Duration::ZERO), exit_code: 1, ..STEADY };
        let (mut status, mut second, mut waits) = (None, 0, Vec::new());
        for _ in 0..8 {
            let synced = sync(status.as_ref(), &behavior, RestartPolicy::OnFailure, second);
            let wake = synced.requeue_at.expect("it is restarted");
            waits.push(wake.duration_since(at(second)).as_secs());
            second = wake.as_second() - at(0).as_second();
            status = Some(synced.status);
        }
        // The first restart is at once.
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300, 300]);
        let status = status.unwrap();
        assert_eq!(status.restart_count, 8);
        assert_eq!(status.state.unwrap().waiting.unwrap().reason.as_deref(), Some("CrashLoopBackOff"));
        assert_eq!(status.last_state.unwrap().terminated.unwrap().exit_code, 1);
    }

    #[test]
    fn exit_code_0_is_restarted_only_with_policy_always() {
        let behavior = ContainerBehavior { exit_after: Some(Duration::from_secs(5)), ..STEADY };
        for (policy, again) in
            [(RestartPolicy::Always, true), (RestartPolicy::OnFailure, false), (RestartPolicy::Never, false)]
        {
            let first = sync(None, &behavior, policy, 0);
            assert_eq!(first.requeue_at, Some(at(5)));
            let then = sync(Some(&first.status), &behavior, policy, 5);
            assert_eq!(then.status.restart_count, i32::from(again), "{policy:?}");
            assert_eq!(then.status.state.unwrap().terminated.is_some(), !again);
        }
    }

    #[test]
    fn a_changed_image_restarts_the_container() {
        let mut first = sync(None, &STEADY, RestartPolicy::Never, 0).status;
        first.image = "w:0".into();
        let then = sync(Some(&first), &STEADY, RestartPolicy::Never, 1).status;
        assert_eq!((then.image.as_str(), then.restart_count), ("w:1", 1));
    }

    #[test]
    fn a_missing_image_is_backed_off() {
        let behavior = ContainerBehavior { fail_image: true, ..STEADY };
        let reason = |status: &ContainerStatus| status.state.clone()?.waiting?.reason;
        let first = sync(None, &behavior, RestartPolicy::Always, 0);
        assert_eq!(
            (reason(&first.status).as_deref(), first.requeue_at),
            (Some("ErrImagePull"), Some(at(10)))
        );
        let then = sync(Some(&first.status), &behavior, RestartPolicy::Always, 10);
        assert_eq!((reason(&then.status).as_deref(), then.requeue_at), (Some("ImagePullBackOff"), None));
        assert!(
            sync(Some(&then.status), &STEADY, RestartPolicy::Always, 11).status.ready,
            "it came after all"
        );
    }
}
