//! Takes the steps that were decided for a pod, one at a time.

mod hooks;
mod sandbox;

use super::backoff::{Backoff, doubling};
use super::container_spec::ContainerSpecBuilder;
use super::decide::Step;
use super::pod_state::{Hook, Image, Sandbox, StartError, Volumes, finished};
use super::pod_worker::{PodWorker, TaskResult, container};
use crate::shim::ShimError;
use crate::volumes::setup::{VolumeSetup, set_up};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use std::borrow::Cow;
use std::fs;
use std::time::Duration;
use windlass::Reason;

/// The initial and the maximum back-off for volumes and sandboxes.
const INITIAL_BACKOFF: SignedDuration = SignedDuration::from_millis(500);
const MAX_BACKOFF: SignedDuration = SignedDuration::from_mins(2);
/// How often a container that could not be started is retried.
const START_RETRY: SignedDuration = SignedDuration::from_secs(10);
/// The maximum duration of a hook, whatever the grace period.
const MAX_HOOK: Duration = Duration::from_secs(3600);

impl PodWorker {
    pub(super) async fn act(&mut self, pod: &Pod, step: Step) {
        tracing::trace!(pod = %self.key, ?step, "taking a step");
        match step {
            Step::SetUpVolumes => self.set_up_volumes(pod).await,
            Step::CreateSandbox => self.create_sandbox(pod).await,
            Step::PullImage(name) => self.find_image(pod, &name).await,
            Step::Start(name, attempt) => self.start_container(pod, &name, attempt).await,
            Step::Stop(name, stop, message) => {
                self.record_event(pod, false, "Killing", message);
                self.container_mut(&name).stop = Some(stop);
            }
            Step::ShortenGracePeriod(name, deadline) => {
                if let Some(stop) = &mut self.container_mut(&name).stop {
                    stop.shorten(deadline);
                }
            }
            Step::PreStop(name) => self.run_pre_stop_hook(pod, &name),
            Step::Terminate(name) => {
                let now = self.now();
                let signal = self.stop_signal(pod, &name).await;
                self.signal(&name, signal).await;
                if let Some(stop) = &mut self.container_mut(&name).stop {
                    stop.signaled = Some(now);
                }
            }
            Step::Kill(name) => {
                let now = self.now();
                self.signal(&name, 9).await;
                if let Some(stop) = &mut self.container_mut(&name).stop {
                    stop.killed = Some(now);
                }
            }
            Step::KillSandbox => self.kill_sandbox(pod).await,
            Step::Reclaim => self.reclaim(pod).await,
            // Deleted after the status was reported.
            Step::DeletePod => {}
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    pub(super) fn record_event(
        &self,
        pod: &Pod,
        warning: bool,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.context.recorder.tell(pod, warning, Reason::new(reason, message));
    }

    /// When to retry, after another failure of this kind.
    pub(super) fn retry_at(
        &mut self,
        what: &str,
        first: SignedDuration,
        longest: SignedDuration,
    ) -> Timestamp {
        let tries = self.tries.entry(what.to_owned()).or_default();
        let after = doubling(first, longest, *tries);
        *tries = tries.saturating_add(1);
        super::backoff::later(self.now(), after)
    }

    async fn set_up_volumes(&mut self, pod: &Pod) {
        match self.write_volumes(pod).await {
            Ok(()) => {
                self.tries.remove("volumes");
                self.state.volumes = Volumes::Ready;
            }
            Err(why) => {
                self.record_event(pod, true, "FailedMount", why);
                self.state.volumes =
                    Volumes::Failed { retry_at: self.retry_at("volumes", INITIAL_BACKOFF, MAX_BACKOFF) };
            }
        }
    }

    async fn write_volumes(&mut self, pod: &Pod) -> Result<(), String> {
        fs::create_dir_all(&self.folder).map_err(|error| error.to_string())?;
        let context = self.context.clone();
        if let Some(watched) = &self.watched {
            watched.synced(&context.clock).await?;
        }
        let projections = crate::volumes::contents::tokens(pod);
        self.tokens.refresh(&context.client, &context.clock, pod, &projections).await?;
        let objects = self.watched.as_ref().map(|watched| watched.objects()).unwrap_or_default();
        let node = context.node_fields(self.state.pod_ip.clone());
        let setup = VolumeSetup {
            client: &context.client,
            pod,
            folder: &self.folder,
            objects: &objects,
            tokens: &self.tokens,
            node: &node,
            root: context.runner.user == 0,
            stamp: self.now().strftime("%Y_%m_%d_%H_%M_%S").to_string(),
        };
        let made = set_up(&setup).await?;
        self.volumes = made.sources;
        self.memory = made.memory;
        Ok(())
    }

    /// Updates the volumes that are made of objects. What cannot be updated stays as it was.
    pub(super) async fn refresh_volumes(&mut self) {
        if self.state.volumes != Volumes::Ready {
            // A volume that waited for an object is retried.
            if matches!(self.state.volumes, Volumes::Failed { .. }) {
                self.state.volumes = Volumes::Unknown;
            }
            return;
        }
        let Some(pod) = self.context.pods.get(&self.key) else { return };
        if let Err(why) = self.write_volumes(&pod).await {
            tracing::debug!(pod = %self.key, "failed to update a volume: {why}");
        }
    }

    async fn start_container(&mut self, pod: &Pod, name: &str, attempt: u32) {
        let (Some(container), Some(image), Some(shim)) =
            (container(pod, name).map(Cow::into_owned), self.images.get(name).cloned(), self.shim.clone())
        else {
            self.container_mut(name).image = Image::Unknown;
            return;
        };
        let now = self.now();
        let context = self.context.clone();
        if let Some(watched) = &self.watched
            && let Err(why) = watched.synced(&context.clock).await
        {
            // The container's status will name the missing object.
            tracing::debug!(pod = %self.key, "{why}");
        }
        let objects = self.watched.as_ref().map(|watched| watched.objects()).unwrap_or_default();
        let builder = ContainerSpecBuilder {
            context: &context,
            pod,
            container: &container,
            attempt,
            image: &image,
            objects: &objects,
            volumes: &self.volumes,
            pod_ip: self.state.pod_ip.clone(),
            hostname: fs::read_to_string(self.folder.join("hostname")).unwrap_or_default().trim().to_owned(),
        };
        let spec = match builder.build() {
            Ok(spec) => spec,
            Err((reason, message)) => {
                self.record_event(pod, true, "Failed", format!("Error: {message}"));
                self.container_mut(name).start_error =
                    Some(StartError { reason, message, retry_at: super::backoff::later(now, START_RETRY) });
                return;
            }
        };
        let record = self.container_mut(name);
        record.start_error = None;
        if let Some(ended) = record.last().and_then(|last| finished(&last.phase)) {
            record.backoff = Some(Backoff::next(record.backoff.as_ref(), ended, now));
        }
        (record.stop, record.started, record.ready, record.liveness_failed, record.post_start) =
            (None, None, false, false, Hook::None);
        self.remove_old_attempts(name, attempt).await;
        match shim.start(&spec).await {
            Ok(()) => {
                self.record_event(pod, false, "Created", "Container created");
                self.record_event(pod, false, "Started", "Container started");
                if let Some(hook) = container.lifecycle.as_ref().and_then(|hooks| hooks.post_start.as_ref()) {
                    self.container_mut(name).post_start = Hook::Running;
                    self.run_hook(
                        pod,
                        &container,
                        attempt,
                        hook,
                        Duration::MAX,
                        |container, attempt, failed| TaskResult::PostStart { container, attempt, failed },
                    );
                }
            }
            // Its state has the message too.
            Err(ShimError::NotStarted { message, .. }) => {
                self.record_event(
                    pod,
                    true,
                    "Failed",
                    format!("Error: failed to start container {name:?}: {message}"),
                );
            }
            Err(error) => {
                let message = error.to_string();
                self.record_event(pod, true, "Failed", format!("Error: {message}"));
                let fault = StartError {
                    reason: "RunContainerError",
                    message,
                    retry_at: super::backoff::later(now, START_RETRY),
                };
                self.container_mut(name).start_error = Some(fault);
            }
        }
    }

    /// Removes what the attempts before the last one wrote; the shim keeps their logs.
    async fn remove_old_attempts(&self, name: &str, attempt: u32) {
        let Some(old) = attempt.checked_sub(2) else { return };
        let own = self.folder.join("containers").join(name);
        let _ = fs::remove_file(own.join(format!("{old}.message")));
        super::adopt::remove_dirs(vec![own.join(old.to_string())]).await;
    }

    /// Removes what the pod wrote, except to PersistentVolumes: the node needs the space.
    async fn reclaim(&mut self, pod: &Pod) {
        let folders =
            [self.folder.join("containers"), self.folder.join("volumes"), self.context.pod_logs_dir(pod)];
        super::adopt::remove_dirs(folders.to_vec()).await;
        self.state.reclaimed = true;
    }

    async fn signal(&mut self, name: &str, signal: i32) {
        let Some(shim) = self.shim.clone() else { return };
        match shim.signal(name, signal).await {
            Ok(()) | Err(ShimError::NotRunning(_) | ShimError::Gone) => {}
            Err(error) => {
                tracing::warn!(pod = %self.key, "failed to send signal {signal} to container {name}: {error}")
            }
        }
    }

    async fn kill_sandbox(&mut self, pod: &Pod) {
        self.probes.stop();
        if let Some(shim) = self.shim.clone() {
            let states = shim.states().await.ok();
            if let Err(error) = shim.end().await {
                tracing::warn!(pod = %self.key, "failed to kill the pod's processes: {error}");
                self.record_event(pod, true, "FailedKillPod", format!("error killing pod: {error}"));
                self.context.clock.sleep(Duration::from_secs(1)).await;
                return;
            }
            if let Some(states) = states {
                self.update_states(pod, super::adopt::killed(states, self.now()));
            }
        }
        self.shim = None;
        self.state.sandbox = Sandbox::Absent;
        if let Some(network) = &self.context.network
            && let Err(error) = network.release(&self.uid).await
        {
            tracing::warn!(pod = %self.key, "failed to release the pod's IP: {error}");
        }
    }
}
