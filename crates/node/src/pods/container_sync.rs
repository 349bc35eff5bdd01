//! Syncs one container: whether it is started, restarted or stopped, or why it waits. Pure.

use super::backoff::Backoff;
use super::container_status::Waiting;
use super::container_stop::{Stop, StopStep};
use super::decide::PodEvent;
use super::pod_state::{ContainerRecord, Hook, Image, StartError, finished};
use super::restart_policy::RestartRules;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Pod};

/// The next action for a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContainerAction {
    Nothing,
    PullImage,
    Start,
    Stop(Stop, String),
    /// It is being stopped, and this is the next step.
    Stopping(StopStep),
}

/// The result of syncing a container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContainerDecision {
    pub(crate) action: ContainerAction,
    /// Why it is waiting, if it has to run and does not.
    pub(crate) waiting: Option<Waiting>,
    pub(crate) requeue_at: Option<Timestamp>,
    pub(crate) events: Vec<PodEvent>,
}

impl ContainerDecision {
    fn nothing() -> Self {
        Self { action: ContainerAction::Nothing, waiting: None, requeue_at: None, events: Vec::new() }
    }

    fn action(action: ContainerAction) -> Self {
        Self { action, ..Self::nothing() }
    }

    fn waiting(waiting: Waiting) -> Self {
        Self { waiting: Some(waiting), ..Self::nothing() }
    }
}

/// A container to be synced, and its observed state.
pub(crate) struct ContainerSync<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    pub(crate) record: &'a ContainerRecord,
    pub(crate) restarts: RestartRules<'a>,
    pub(crate) now: Timestamp,
    /// Its termination grace period.
    pub(crate) grace: SignedDuration,
}

impl ContainerSync<'_> {
    /// Syncs the container; `may_start` if the containers before it have completed, `first` why it waits until then.
    pub(crate) fn sync(&self, may_start: bool, first: &'static str) -> ContainerDecision {
        let record = self.record;
        if record.is_running() {
            return self.sync_running();
        }
        let Some(last) = record.last() else {
            return if may_start {
                self.start(first)
            } else {
                ContainerDecision::waiting(Waiting::for_reason(first))
            };
        };
        let code = record.exit_code().unwrap_or(0);
        let requested = record.stop.as_ref().is_some_and(|stop| stop.restart);
        let lost = record.current().is_none();
        // An init container that completed in a sandbox that is gone runs again.
        let rerun = lost && code == 0 && may_start;
        if !(requested || rerun || self.restarts.restart(code)) {
            return ContainerDecision::nothing();
        }
        if !may_start {
            // It terminated with its sandbox, and waits for the next one.
            return if lost {
                ContainerDecision::waiting(Waiting::for_reason(first))
            } else {
                ContainerDecision::nothing()
            };
        }
        let ended = finished(&last.phase).unwrap_or(self.now);
        if !requested && let Some((due, whole)) = Backoff::wait(record.backoff.as_ref(), ended, self.now) {
            return self.back_off(due, whole);
        }
        self.start("CrashLoopBackOff")
    }

    fn pod_text(&self) -> String {
        let meta = &self.pod.metadata;
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{}_{}({})", text(&meta.name), text(&meta.namespace), text(&meta.uid))
    }

    fn back_off(&self, due: Timestamp, whole: SignedDuration) -> ContainerDecision {
        let (name, pod) = (&self.container.name, self.pod_text());
        let message = format!("back-off {} restarting failed container={name} pod={pod}", go_duration(whole));
        let event = PodEvent {
            warning: true,
            reason: "BackOff",
            message: format!("Back-off restarting failed container {name} in pod {pod}"),
        };
        ContainerDecision {
            action: ContainerAction::Nothing,
            waiting: Some(Waiting { reason: "CrashLoopBackOff", message: Some(message) }),
            requeue_at: Some(due),
            events: vec![event],
        }
    }

    /// Starts it, if it can be started.
    fn start(&self, first: &'static str) -> ContainerDecision {
        let first = if first == "CrashLoopBackOff" { "ContainerCreating" } else { first };
        match &self.record.image {
            Image::Unknown => {
                return ContainerDecision {
                    waiting: Some(Waiting::for_reason(first)),
                    ..ContainerDecision::action(ContainerAction::PullImage)
                };
            }
            Image::Missing { message, tried, retry_at } => {
                return self.image_missing(message, *tried, *retry_at);
            }
            Image::Found { .. } => {}
        }
        if let Some(error) = self.record.start_error.as_ref().filter(|error| error.retry_at > self.now) {
            return ContainerDecision {
                requeue_at: Some(error.retry_at),
                ..ContainerDecision::waiting(start_error(error))
            };
        }
        let waiting = match &self.record.start_error {
            Some(error) => start_error(error),
            None => Waiting::for_reason(first),
        };
        ContainerDecision { waiting: Some(waiting), ..ContainerDecision::action(ContainerAction::Start) }
    }

    fn image_missing(&self, message: &str, tried: Timestamp, retry_at: Timestamp) -> ContainerDecision {
        if retry_at <= self.now {
            let waiting = Waiting { reason: "ImagePullBackOff", message: Some(message.to_owned()) };
            return ContainerDecision {
                waiting: Some(waiting),
                ..ContainerDecision::action(ContainerAction::PullImage)
            };
        }
        let image = self.container.image.as_deref().unwrap_or_default();
        if self.container.image_pull_policy.as_deref() == Some("Never") {
            let reason = "ErrImageNeverPull";
            let why = format!("Container image {image:?} is not present with pull policy of Never");
            let event = PodEvent { warning: true, reason, message: why.clone() };
            let waiting = Waiting { reason, message: Some(why) };
            return ContainerDecision {
                requeue_at: Some(retry_at),
                events: vec![event],
                ..ContainerDecision::waiting(waiting)
            };
        }
        // For the first half of the wait the pull has failed, then it is backed off.
        let half = retry_at.duration_since(tried) / 2;
        let backed_off = super::backoff::later(tried, half);
        if self.now < backed_off {
            let event = |message: String| PodEvent { warning: true, reason: "Failed", message };
            return ContainerDecision {
                waiting: Some(Waiting { reason: "ErrImagePull", message: Some(message.to_owned()) }),
                requeue_at: Some(backed_off),
                events: vec![
                    event(format!("Failed to pull image {image:?}: {message}")),
                    event("Error: ErrImagePull".to_owned()),
                ],
                action: ContainerAction::Nothing,
            };
        }
        let text = format!("Back-off pulling image {image:?}: ErrImagePull: {message}");
        let event = PodEvent {
            warning: false,
            reason: "BackOff",
            message: format!("Back-off pulling image {image:?}"),
        };
        ContainerDecision {
            waiting: Some(Waiting { reason: "ImagePullBackOff", message: Some(text) }),
            requeue_at: Some(retry_at),
            events: vec![event],
            action: ContainerAction::Nothing,
        }
    }

    fn sync_running(&self) -> ContainerDecision {
        let record = self.record;
        if let Some(stop) = &record.stop {
            return ContainerDecision::action(ContainerAction::Stopping(stop.next(self.now)));
        }
        let name = &self.container.name;
        let probe = |probe: Option<&k8s_openapi::api::core::v1::Probe>| {
            let own = probe.and_then(|probe| probe.termination_grace_period_seconds);
            own.map_or(self.grace, |own| SignedDuration::from_secs(own.max(0)))
        };
        let stop = |grace, message: String| {
            let hook = self.container.lifecycle.as_ref().is_some_and(|hooks| hooks.pre_stop.is_some());
            ContainerDecision::action(ContainerAction::Stop(Stop::new(self.now, grace, hook), message))
        };
        if record.started == Some(false) {
            let grace = probe(self.container.startup_probe.as_ref());
            return stop(grace, format!("Container {name} failed startup probe, will be restarted"));
        }
        if record.liveness_failed {
            let grace = probe(self.container.liveness_probe.as_ref());
            return stop(grace, format!("Container {name} failed liveness probe, will be restarted"));
        }
        if record.post_start == Hook::Failed {
            return stop(self.grace, "FailedPostStartHook".to_owned());
        }
        let image = self.container.image.as_deref().unwrap_or_default();
        if self.reported_image().is_some_and(|reported| reported != image) {
            let mut decision =
                stop(self.grace, format!("Container {name} definition changed, will be restarted"));
            if let ContainerAction::Stop(stop, _) = &mut decision.action {
                stop.restart = true;
            }
            return decision;
        }
        ContainerDecision::nothing()
    }

    /// The image that it was started with, from its reported status.
    fn reported_image(&self) -> Option<&str> {
        let status = self.pod.status.as_ref()?;
        let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        let own = all.into_iter().find(|status| status.name == self.container.name)?;
        let attempt = self.record.last()?.attempt;
        let same = own.restart_count == i32::try_from(attempt).unwrap_or(i32::MAX)
            && own.state.as_ref().is_some_and(|state| state.running.is_some());
        same.then_some(own.image.as_str()).filter(|image| !image.is_empty())
    }
}

fn start_error(error: &StartError) -> Waiting {
    Waiting { reason: error.reason, message: Some(error.message.clone()) }
}

/// A duration of whole seconds as Go prints it.
fn go_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}
