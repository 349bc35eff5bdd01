//! The life of one container: waiting, running, ended, and again. Pure: from what was reported last, and the time.

use super::script::Play;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::time::Duration;

/// The first wait before a container that failed again is started again; it doubles each time.
const FIRST_BACKOFF: i64 = 10;
/// The longest.
const LONGEST_BACKOFF: i64 = 300;
/// One that ran so long has failed for the first time again.
const RAN_WELL: SignedDuration = SignedDuration::from_mins(10);
/// From when an image could not be had until that is no longer news.
const IMAGE_BACKOFF: Duration = Duration::from_secs(10);
/// How containers end that are asked to stop, and that are killed.
pub(super) const STOPPED: i32 = 143;
pub(super) const KILLED: i32 = 137;

/// When a container that ended is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Restarts {
    Always,
    OnFailure,
    Never,
}

impl Restarts {
    pub(super) fn of(policy: Option<&str>) -> Self {
        match policy {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    fn again(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// What happened on the way, in the words of a kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Started,
    BackOff(String),
    NoImage(String),
}

/// What is asked of one container.
pub(super) struct Asked<'a> {
    pub(super) container: &'a Container,
    pub(super) play: &'a Play,
    pub(super) restarts: Restarts,
    /// `NAME_NAMESPACE(UID)`, as messages name the pod; the second part makes the container's id.
    pub(super) pod: &'a str,
    pub(super) uid: &'a str,
    /// Since when its containers may run.
    pub(super) since: Timestamp,
    pub(super) now: Timestamp,
    /// Now, as it is written: in whole seconds.
    pub(super) stamp: Timestamp,
}

/// What becomes of it, and when that changes next without anybody's doing.
pub(super) struct Became {
    pub(super) status: ContainerStatus,
    pub(super) wake: Option<Timestamp>,
    pub(super) told: Vec<Told>,
}

/// A container that has not begun.
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

/// A moment so long after another.
pub(super) fn later(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

impl Asked<'_> {
    /// Lets the container live until now.
    pub(super) fn live(&self, before: Option<&ContainerStatus>) -> Became {
        let status = before.cloned().unwrap_or_else(|| waiting(self.container, "ContainerCreating"));
        let mut became = Became { status, wake: None, told: Vec::new() };
        // Each round takes one step of a life; back-off bounds how many can fall due at once.
        for _ in 0..16 {
            if !self.step(&mut became) {
                break;
            }
        }
        became
    }

    /// One step, if one is due.
    fn step(&self, became: &mut Became) -> bool {
        let state = became.status.state.clone().unwrap_or_default();
        became.wake = None;
        match (state.running, state.terminated, state.waiting) {
            (Some(running), _, _) => self.runs(became, since(running.started_at.as_ref(), self.now)),
            (_, Some(ended), _) => self.ended(became, &ended),
            (_, _, waiting) => self.waits(became, waiting.unwrap_or_default()),
        }
    }

    fn waits(&self, became: &mut Became, waiting: ContainerStateWaiting) -> bool {
        if let Some(ended) = became.status.last_state.as_ref().and_then(|last| last.terminated.clone())
            && waiting.reason.as_deref() == Some("CrashLoopBackOff")
        {
            let due = later(since(ended.finished_at.as_ref(), self.now), self.backoff(became, &ended));
            if self.now < due {
                became.wake = Some(due);
                return false;
            }
            self.start(became, true);
            return true;
        }
        if self.play.fail_image {
            return self.lacks_its_image(became, &waiting);
        }
        self.start(became, false);
        true
    }

    fn lacks_its_image(&self, became: &mut Became, waiting: &ContainerStateWaiting) -> bool {
        let image = self.container.image.as_deref().unwrap_or_default();
        let given_up = later(self.since, IMAGE_BACKOFF);
        let (reason, message) = if self.now < given_up {
            became.wake = Some(given_up);
            ("ErrImagePull", format!("failed to pull image {image:?}: it is simulated to be missing"))
        } else {
            ("ImagePullBackOff", format!("Back-off pulling image {image:?}"))
        };
        if waiting.reason.as_deref() != Some(reason) {
            became.told.push(match reason {
                "ErrImagePull" => Told::NoImage(message.clone()),
                _ => Told::BackOff(message.clone()),
            });
            became.status.state = Some(wait(reason, Some(message)));
        }
        false
    }

    fn runs(&self, became: &mut Became, began: Timestamp) -> bool {
        let image = self.container.image.as_deref().unwrap_or_default();
        if became.status.image != image {
            // Another image was asked for: this run ends, whatever the policy.
            self.end(became, began, STOPPED);
            self.remember(became);
            self.start(became, true);
            return true;
        }
        let exit = self.play.exit_after.map(|after| later(began, after));
        if exit.is_some_and(|exit| exit <= self.now) {
            self.end(became, began, self.play.exit_code);
            return true;
        }
        let ready = self.play.ready_after.map(|after| later(began, after));
        became.status.ready = ready.is_some_and(|ready| ready <= self.now);
        became.wake = exit.into_iter().chain(ready.filter(|ready| *ready > self.now)).min();
        false
    }

    fn ended(&self, became: &mut Became, ended: &ContainerStateTerminated) -> bool {
        if !self.restarts.again(ended.exit_code) {
            return false;
        }
        let backoff = self.backoff(became, ended);
        self.remember(became);
        if backoff.is_zero() {
            self.start(became, true);
            return true;
        }
        let name = &self.container.name;
        let message = format!("back-off {} restarting failed container={name} pod={}", go(backoff), self.pod);
        became.status.state = Some(wait("CrashLoopBackOff", Some(message)));
        became
            .told
            .push(Told::BackOff(format!("Back-off restarting failed container {name} in pod {}", self.pod)));
        true
    }

    /// How long it waits before it is started again: not at all the first time.
    fn backoff(&self, became: &Became, ended: &ContainerStateTerminated) -> Duration {
        let finished = since(ended.finished_at.as_ref(), self.now);
        let ran = finished.duration_since(since(ended.started_at.as_ref(), finished));
        let restarts = became.status.restart_count;
        if restarts == 0 || ran >= RAN_WELL {
            return Duration::ZERO;
        }
        let doublings = u32::try_from(restarts - 1).unwrap_or(0).min(10);
        Duration::from_secs(FIRST_BACKOFF.saturating_mul(1 << doublings).min(LONGEST_BACKOFF).unsigned_abs())
    }

    fn start(&self, became: &mut Became, again: bool) {
        let status = &mut became.status;
        if again {
            status.restart_count += 1;
        }
        let running = ContainerStateRunning { started_at: Some(Time(self.stamp)) };
        status.state = Some(ContainerState { running: Some(running), ..ContainerState::default() });
        status.image = self.container.image.clone().unwrap_or_default();
        status.image_id = format!("simulated://{}", status.image);
        status.container_id =
            Some(format!("simulated://{}/{}/{}", self.uid, status.name, status.restart_count));
        status.started = Some(true);
        became.told.push(Told::Started);
    }

    fn end(&self, became: &mut Became, began: Timestamp, code: i32) {
        end(&mut became.status, began, code, self.stamp);
    }

    /// Its end becomes its past.
    fn remember(&self, became: &mut Became) {
        became.status.last_state = became.status.state.take();
    }
}

/// Ends a container that runs.
pub(super) fn end(status: &mut ContainerStatus, began: Timestamp, code: i32, now: Timestamp) {
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

/// As Go writes durations of whole seconds.
fn go(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn live(before: Option<&ContainerStatus>, play: &Play, restarts: Restarts, second: i64) -> Became {
        let container = Container { name: "web".into(), image: Some("w:1".into()), ..Container::default() };
        let asked = Asked {
            container: &container,
            play,
            restarts,
            pod: "p_default(u)",
            uid: "u",
            since: at(0),
            now: at(second),
            stamp: at(second),
        };
        asked.live(before)
    }

    const STEADY: Play =
        Play { ready_after: Some(Duration::ZERO), exit_after: None, exit_code: 0, fail_image: false };

    #[test]
    fn without_delays_it_is_ready_at_once_and_for_ever() {
        let became = live(None, &STEADY, Restarts::Always, 0);
        assert!(became.status.ready && became.status.state.unwrap().running.is_some());
        assert_eq!((became.wake, became.told), (None, vec![Told::Started]));
    }

    #[test]
    fn one_that_fails_again_and_again_waits_longer_each_time() {
        let play = Play { exit_after: Some(Duration::ZERO), exit_code: 1, ..STEADY };
        let (mut status, mut second, mut waits) = (None, 0, Vec::new());
        for _ in 0..8 {
            let became = live(status.as_ref(), &play, Restarts::OnFailure, second);
            let wake = became.wake.expect("it is started again");
            waits.push(wake.duration_since(at(second)).as_secs());
            second = wake.as_second() - at(0).as_second();
            status = Some(became.status);
        }
        // The first time it is started again at once, and fails again.
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300, 300]);
        let status = status.unwrap();
        assert_eq!(status.restart_count, 8);
        assert_eq!(status.state.unwrap().waiting.unwrap().reason.as_deref(), Some("CrashLoopBackOff"));
        assert_eq!(status.last_state.unwrap().terminated.unwrap().exit_code, 1);
    }

    #[test]
    fn what_ended_well_is_started_again_only_if_always() {
        let play = Play { exit_after: Some(Duration::from_secs(5)), ..STEADY };
        for (restarts, again) in
            [(Restarts::Always, true), (Restarts::OnFailure, false), (Restarts::Never, false)]
        {
            let first = live(None, &play, restarts, 0);
            assert_eq!(first.wake, Some(at(5)));
            let then = live(Some(&first.status), &play, restarts, 5);
            assert_eq!(then.status.restart_count, i32::from(again), "{restarts:?}");
            assert_eq!(then.status.state.unwrap().terminated.is_some(), !again);
        }
    }

    #[test]
    fn another_image_is_another_run() {
        let mut first = live(None, &STEADY, Restarts::Never, 0).status;
        first.image = "w:0".into();
        let then = live(Some(&first), &STEADY, Restarts::Never, 1).status;
        assert_eq!((then.image.as_str(), then.restart_count), ("w:1", 1));
    }

    #[test]
    fn an_image_that_is_not_there_is_waited_for() {
        let play = Play { fail_image: true, ..STEADY };
        let reason = |status: &ContainerStatus| status.state.clone()?.waiting?.reason;
        let first = live(None, &play, Restarts::Always, 0);
        assert_eq!((reason(&first.status).as_deref(), first.wake), (Some("ErrImagePull"), Some(at(10))));
        let then = live(Some(&first.status), &play, Restarts::Always, 10);
        assert_eq!((reason(&then.status).as_deref(), then.wake), (Some("ImagePullBackOff"), None));
        assert!(live(Some(&then.status), &STEADY, Restarts::Always, 11).status.ready, "it came after all");
    }
}
