//! Carries out what was decided about a pod, one step at a time.

mod hooks;
mod sandbox;

use super::backoff::{Backoff, doubling};
use super::decide::Step;
use super::known::{Fault, Hook, Image, Sandbox, Volumes, finished};
use super::start::Starting;
use super::worker::{News, Worker, container};
use crate::shim::ShimError;
use crate::volumes::prepare::{Making, prepare};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use std::borrow::Cow;
use std::fs;
use std::time::Duration;
use windlass::Reason;

/// What could not be made is tried again after half a second, then ever later.
const FIRST: SignedDuration = SignedDuration::from_millis(500);
const LONGEST: SignedDuration = SignedDuration::from_mins(2);
/// A container whose configuration is wrong is tried again so often.
const FAULT: SignedDuration = SignedDuration::from_secs(10);
/// A hook before the end has no longer than this, whatever the grace.
const LONGEST_HOOK: Duration = Duration::from_secs(3600);

impl Worker {
    pub(super) async fn carry_out(&mut self, pod: &Pod, step: Step) {
        tracing::trace!(pod = %self.key, ?step, "a step");
        match step {
            Step::Prepare => self.prepare(pod).await,
            Step::Launch => self.launch(pod).await,
            Step::Find(name) => self.find(pod, &name).await,
            Step::Start(name, attempt) => self.start(pod, &name, attempt).await,
            Step::Stop(name, stop, message) => {
                self.tell_pod(pod, false, "Killing", message);
                self.run_of(&name).stop = Some(stop);
            }
            Step::Hasten(name, deadline) => {
                if let Some(stop) = &mut self.run_of(&name).stop {
                    stop.hasten(deadline);
                }
            }
            Step::PreStop(name) => self.pre_stop(pod, &name),
            Step::Ask(name) => {
                let now = self.now();
                let signal = self.stop_signal(pod, &name).await;
                self.signal(&name, signal).await;
                if let Some(stop) = &mut self.run_of(&name).stop {
                    stop.told = Some(now);
                }
            }
            Step::Kill(name) => {
                let now = self.now();
                self.signal(&name, 9).await;
                if let Some(stop) = &mut self.run_of(&name).stop {
                    stop.killed = Some(now);
                }
            }
            Step::End => self.end(pod).await,
            Step::Reclaim => self.reclaim(pod).await,
            // Written with the report.
            Step::Remove => {}
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.site.clock.now()
    }

    pub(super) fn tell_pod(
        &self,
        pod: &Pod,
        warning: bool,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.site.recorder.tell(pod, warning, Reason::new(reason, message));
    }

    /// How long to wait after so many failures of this sort.
    pub(super) fn again(&mut self, what: &str, first: SignedDuration, longest: SignedDuration) -> Timestamp {
        let tries = self.tries.entry(what.to_owned()).or_default();
        let after = doubling(first, longest, *tries);
        *tries = tries.saturating_add(1);
        super::backoff::later(self.now(), after)
    }

    async fn prepare(&mut self, pod: &Pod) {
        match self.make_volumes(pod).await {
            Ok(()) => {
                self.tries.remove("volumes");
                self.known.volumes = Volumes::Ready;
            }
            Err(why) => {
                self.tell_pod(pod, true, "FailedMount", why);
                self.known.volumes = Volumes::Failed { again: self.again("volumes", FIRST, LONGEST) };
            }
        }
    }

    async fn make_volumes(&mut self, pod: &Pod) -> Result<(), String> {
        fs::create_dir_all(&self.folder).map_err(|error| error.to_string())?;
        let site = self.site.clone();
        if let Some(watched) = &self.watched {
            watched.synced(&site.clock).await?;
        }
        let projections = crate::volumes::contents::tokens(pod);
        self.tokens.refresh(&site.client, &site.clock, pod, &projections).await?;
        let objects = self.watched.as_ref().map(|watched| watched.objects()).unwrap_or_default();
        let place = site.place(self.known.pod_ip.clone());
        let making = Making {
            client: &site.client,
            pod,
            folder: &self.folder,
            objects: &objects,
            tokens: &self.tokens,
            place: &place,
            root: site.runner.user == 0,
            stamp: self.now().strftime("%Y_%m_%d_%H_%M_%S").to_string(),
        };
        let made = prepare(&making).await?;
        self.volumes = made.ready;
        self.memory = made.memory;
        Ok(())
    }

    /// Brings what is made of objects up to date. What cannot be stays as it was.
    pub(super) async fn refresh_volumes(&mut self) {
        if self.known.volumes != Volumes::Ready {
            // What waits for an object need not wait any longer.
            if matches!(self.known.volumes, Volumes::Failed { .. }) {
                self.known.volumes = Volumes::Unknown;
            }
            return;
        }
        let Some(pod) = self.site.pods.get(&self.key) else { return };
        if let Err(why) = self.make_volumes(&pod).await {
            tracing::debug!(pod = %self.key, "a volume was not brought up to date: {why}");
        }
    }

    async fn start(&mut self, pod: &Pod, name: &str, attempt: u32) {
        let (Some(container), Some(image), Some(shim)) =
            (container(pod, name).map(Cow::into_owned), self.images.get(name).cloned(), self.shim.clone())
        else {
            self.run_of(name).image = Image::Unknown;
            return;
        };
        let now = self.now();
        let site = self.site.clone();
        if let Some(watched) = &self.watched
            && let Err(why) = watched.synced(&site.clock).await
        {
            // It is told where an object is found lacking.
            tracing::debug!(pod = %self.key, "{why}");
        }
        let objects = self.watched.as_ref().map(|watched| watched.objects()).unwrap_or_default();
        let starting = Starting {
            site: &site,
            pod,
            container: &container,
            attempt,
            image: &image,
            objects: &objects,
            volumes: &self.volumes,
            pod_ip: self.known.pod_ip.clone(),
            hostname: fs::read_to_string(self.folder.join("hostname")).unwrap_or_default().trim().to_owned(),
        };
        let spec = match starting.spec() {
            Ok(spec) => spec,
            Err((reason, message)) => {
                self.tell_pod(pod, true, "Failed", format!("Error: {message}"));
                self.run_of(name).fault =
                    Some(Fault { reason, message, again: super::backoff::later(now, FAULT) });
                return;
            }
        };
        let run = self.run_of(name);
        run.fault = None;
        if let Some(ended) = run.last().and_then(|last| finished(&last.phase)) {
            run.backoff = Some(Backoff::next(run.backoff.as_ref(), ended, now));
        }
        (run.stop, run.started, run.ready, run.dead, run.post_start) = (None, None, false, false, Hook::None);
        self.forget_old(name, attempt);
        match shim.start(&spec).await {
            Ok(()) => {
                self.tell_pod(pod, false, "Created", "Container created");
                self.tell_pod(pod, false, "Started", "Container started");
                if let Some(hook) = container.lifecycle.as_ref().and_then(|hooks| hooks.post_start.as_ref()) {
                    self.run_of(name).post_start = Hook::Running;
                    self.hook(pod, &container, attempt, hook, Duration::MAX, |container, attempt, failed| {
                        News::PostStart { container, attempt, failed }
                    });
                }
            }
            // Its state says so, too.
            Err(ShimError::NotStarted { message, .. }) => {
                self.tell_pod(
                    pod,
                    true,
                    "Failed",
                    format!("Error: failed to start container {name:?}: {message}"),
                );
            }
            Err(error) => {
                let message = error.to_string();
                self.tell_pod(pod, true, "Failed", format!("Error: {message}"));
                let fault =
                    Fault { reason: "RunContainerError", message, again: super::backoff::later(now, FAULT) };
                self.run_of(name).fault = Some(fault);
            }
        }
    }

    /// What the attempts before the last one wrote is not kept: their logs are, by the shim.
    fn forget_old(&self, name: &str, attempt: u32) {
        let Some(old) = attempt.checked_sub(2) else { return };
        let own = self.folder.join("containers").join(name);
        let _ = fs::remove_dir_all(own.join(old.to_string()));
        let _ = fs::remove_file(own.join(format!("{old}.message")));
    }

    /// Removes what it wrote, but for its claims: the machine needs the room.
    async fn reclaim(&mut self, pod: &Pod) {
        let folders = [self.folder.join("containers"), self.folder.join("volumes"), self.site.logs_of(pod)];
        super::adopt::remove(folders.to_vec()).await;
        self.known.reclaimed = true;
    }

    async fn signal(&mut self, name: &str, signal: i32) {
        let Some(shim) = self.shim.clone() else { return };
        match shim.signal(name, signal).await {
            Ok(()) | Err(ShimError::NotRunning(_) | ShimError::Gone) => {}
            Err(error) => {
                tracing::warn!(pod = %self.key, "container {name} was not sent signal {signal}: {error}")
            }
        }
    }

    async fn end(&mut self, pod: &Pod) {
        self.probing.stop();
        if let Some(shim) = self.shim.clone() {
            let states = shim.states().await.ok();
            if let Err(error) = shim.end().await {
                tracing::warn!(pod = %self.key, "the pod's processes do not end: {error}");
                self.tell_pod(pod, true, "FailedKillPod", format!("error killing pod: {error}"));
                self.site.clock.sleep(Duration::from_secs(1)).await;
                return;
            }
            if let Some(states) = states {
                self.note(pod, super::adopt::dead(states, self.now()));
            }
        }
        self.shim = None;
        self.known.sandbox = Sandbox::Absent;
        if let Some(network) = &self.site.network
            && let Err(error) = network.release(&self.uid).await
        {
            tracing::warn!(pod = %self.key, "the pod's address was not released: {error}");
        }
    }
}
