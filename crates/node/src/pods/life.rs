//! The life of one container: whether it is to be started, waited for, or stopped. Pure.

use super::backoff::Backoff;
use super::decide::Told;
use super::known::{Hook, Image, Run, finished};
use super::policy::Restarts;
use super::statuses::Waits;
use super::stopping::{Next, Stop};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Pod};

/// What a container needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Nothing,
    /// Its image.
    Find,
    Start,
    Stop(Stop, String),
    /// It is being stopped, and this comes next.
    Stopping(Next),
}

/// What a container comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lives {
    pub(crate) act: Act,
    /// Why it waits, if it is to run and does not.
    pub(crate) waits: Option<Waits>,
    pub(crate) wake: Option<Timestamp>,
    pub(crate) told: Vec<Told>,
}

impl Lives {
    fn rests() -> Self {
        Self { act: Act::Nothing, waits: None, wake: None, told: Vec::new() }
    }

    fn acts(act: Act) -> Self {
        Self { act, ..Self::rests() }
    }

    fn waits(waits: Waits) -> Self {
        Self { waits: Some(waits), ..Self::rests() }
    }
}

/// One container, and what is known of it.
pub(crate) struct Life<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    pub(crate) run: &'a Run,
    pub(crate) restarts: Restarts<'a>,
    pub(crate) now: Timestamp,
    /// How long it has to stop.
    pub(crate) grace: SignedDuration,
}

impl Life<'_> {
    /// What to do about it; `may_start` where those before it have done their part, `first` why it waits until then.
    pub(crate) fn decide(&self, may_start: bool, first: &'static str) -> Lives {
        let run = self.run;
        if run.is_running() {
            return self.runs();
        }
        let Some(last) = run.last() else {
            return if may_start { self.begins(first) } else { Lives::waits(Waits::plainly(first)) };
        };
        let code = run.exit_code().unwrap_or(0);
        let again = run.stop.as_ref().is_some_and(|stop| stop.again);
        let lost = run.current().is_none();
        // What it did to initialize in namespaces that are no more is done again.
        let anew = lost && code == 0 && may_start;
        if !(again || anew || self.restarts.again(code)) {
            return Lives::rests();
        }
        if !may_start {
            // It ended with the namespaces it was in, and waits for others.
            return if lost { Lives::waits(Waits::plainly(first)) } else { Lives::rests() };
        }
        let ended = finished(&last.phase).unwrap_or(self.now);
        if !again && let Some((due, whole)) = Backoff::wait(run.backoff.as_ref(), ended, self.now) {
            return self.backs_off(due, whole);
        }
        self.begins("CrashLoopBackOff")
    }

    fn pod_text(&self) -> String {
        let meta = &self.pod.metadata;
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{}_{}({})", text(&meta.name), text(&meta.namespace), text(&meta.uid))
    }

    fn backs_off(&self, due: Timestamp, whole: SignedDuration) -> Lives {
        let (name, pod) = (&self.container.name, self.pod_text());
        let message = format!("back-off {} restarting failed container={name} pod={pod}", go(whole));
        let told = Told {
            warning: true,
            reason: "BackOff",
            message: format!("Back-off restarting failed container {name} in pod {pod}"),
        };
        Lives {
            act: Act::Nothing,
            waits: Some(Waits { reason: "CrashLoopBackOff", message: Some(message) }),
            wake: Some(due),
            told: vec![told],
        }
    }

    /// It is to be started, if it can be.
    fn begins(&self, first: &'static str) -> Lives {
        let first = if first == "CrashLoopBackOff" { "ContainerCreating" } else { first };
        match &self.run.image {
            Image::Unknown => return Lives { waits: Some(Waits::plainly(first)), ..Lives::acts(Act::Find) },
            Image::Missing { message, tried, again } => return self.lacks_its_image(message, *tried, *again),
            Image::Found { .. } => {}
        }
        if let Some(fault) = self.run.fault.as_ref().filter(|fault| fault.again > self.now) {
            let waits = Waits { reason: fault.reason, message: Some(fault.message.clone()) };
            return Lives { wake: Some(fault.again), ..Lives::waits(waits) };
        }
        let waits = match &self.run.fault {
            Some(fault) => Waits { reason: fault.reason, message: Some(fault.message.clone()) },
            None => Waits::plainly(first),
        };
        Lives { waits: Some(waits), ..Lives::acts(Act::Start) }
    }

    fn lacks_its_image(&self, message: &str, tried: Timestamp, again: Timestamp) -> Lives {
        if again <= self.now {
            let waits = Waits { reason: "ImagePullBackOff", message: Some(message.to_owned()) };
            return Lives { waits: Some(waits), ..Lives::acts(Act::Find) };
        }
        let image = self.container.image.as_deref().unwrap_or_default();
        if self.container.image_pull_policy.as_deref() == Some("Never") {
            let reason = "ErrImageNeverPull";
            let why = format!("Container image {image:?} is not present with pull policy of Never");
            let told = Told { warning: true, reason, message: why.clone() };
            let waits = Waits { reason, message: Some(why) };
            return Lives { wake: Some(again), told: vec![told], ..Lives::waits(waits) };
        }
        // For the first half of the wait it is news, then it is a wait.
        let half = again.duration_since(tried) / 2;
        let old = super::backoff::later(tried, half);
        if self.now < old {
            let told = |message: String| Told { warning: true, reason: "Failed", message };
            return Lives {
                waits: Some(Waits { reason: "ErrImagePull", message: Some(message.to_owned()) }),
                wake: Some(old),
                told: vec![
                    told(format!("Failed to pull image {image:?}: {message}")),
                    told("Error: ErrImagePull".to_owned()),
                ],
                act: Act::Nothing,
            };
        }
        let text = format!("Back-off pulling image {image:?}: ErrImagePull: {message}");
        let told =
            Told { warning: false, reason: "BackOff", message: format!("Back-off pulling image {image:?}") };
        Lives {
            waits: Some(Waits { reason: "ImagePullBackOff", message: Some(text) }),
            wake: Some(again),
            told: vec![told],
            act: Act::Nothing,
        }
    }

    fn runs(&self) -> Lives {
        let run = self.run;
        if let Some(stop) = &run.stop {
            return Lives::acts(Act::Stopping(stop.next(self.now)));
        }
        let name = &self.container.name;
        let probe = |probe: Option<&k8s_openapi::api::core::v1::Probe>| {
            let own = probe.and_then(|probe| probe.termination_grace_period_seconds);
            own.map_or(self.grace, |own| SignedDuration::from_secs(own.max(0)))
        };
        let stop = |grace, message: String| {
            let hook = self.container.lifecycle.as_ref().is_some_and(|hooks| hooks.pre_stop.is_some());
            Lives::acts(Act::Stop(Stop::new(self.now, grace, hook), message))
        };
        if run.started == Some(false) {
            let grace = probe(self.container.startup_probe.as_ref());
            return stop(grace, format!("Container {name} failed startup probe, will be restarted"));
        }
        if run.dead {
            let grace = probe(self.container.liveness_probe.as_ref());
            return stop(grace, format!("Container {name} failed liveness probe, will be restarted"));
        }
        if run.post_start == Hook::Failed {
            return stop(self.grace, "FailedPostStartHook".to_owned());
        }
        let image = self.container.image.as_deref().unwrap_or_default();
        if self.reported_image().is_some_and(|reported| reported != image) {
            let mut lives =
                stop(self.grace, format!("Container {name} definition changed, will be restarted"));
            if let Act::Stop(stop, _) = &mut lives.act {
                stop.again = true;
            }
            return lives;
        }
        Lives::rests()
    }

    /// The image that it was started with, as it was reported.
    fn reported_image(&self) -> Option<&str> {
        let status = self.pod.status.as_ref()?;
        let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        let own = all.into_iter().find(|status| status.name == self.container.name)?;
        let attempt = self.run.last()?.attempt;
        let same = own.restart_count == i32::try_from(attempt).unwrap_or(i32::MAX)
            && own.state.as_ref().is_some_and(|state| state.running.is_some());
        same.then_some(own.image.as_str()).filter(|image| !image.is_empty())
    }
}

/// As Go writes durations of whole seconds.
fn go(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}
