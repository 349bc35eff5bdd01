//! Syncs a pod: the steps that can be taken now, the status to report, and when to sync again. Pure.

mod ephemeral;
mod restart;
mod terminating;

use super::container_status::{exit_code_of, set_init_container_ready, status};
use super::container_stop::{Stop, StopStep};
use super::container_sync::{ContainerAction, ContainerSync};
use super::pod_state::{ContainerRecord, PodState, Sandbox, Volumes};
use super::restart_policy::RestartRules;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, HostIP, Pod, PodIP, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_component_helpers::pod_conditions::{self, Phase};
use windlass_component_helpers::qos::qos_class;
use windlass_component_helpers::restart_policy::is_sidecar;

/// The reason in the status of an evicted pod.
pub(crate) const EVICTED: &str = "Evicted";
/// The grace period of an eviction for node pressure.
const EVICTION_GRACE: SignedDuration = SignedDuration::from_secs(1);

/// A step to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Set up the volumes.
    SetUpVolumes,
    /// Create the pod's sandbox: its namespaces and the shim.
    CreateSandbox,
    /// Find a container's image.
    PullImage(String),
    /// Start a container (restart count N).
    Start(String, u32),
    /// Begin to stop a container.
    Stop(String, Stop, String),
    /// The grace period was shortened: a container has until then.
    ShortenGracePeriod(String, Timestamp),
    /// ContainerRecord its hook before it is asked to end.
    PreStop(String),
    /// Send it its stop signal.
    Terminate(String),
    /// Send it SIGKILL.
    Kill(String),
    /// Kill the sandbox and everything in it.
    KillSandbox,
    /// Delete what it wrote to the disk.
    Reclaim,
    /// Delete the pod from the API: nothing of it is left here.
    DeletePod,
}

/// An Event about the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodEvent {
    pub(crate) warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The result of syncing a pod.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decision {
    pub(crate) steps: Vec<Step>,
    /// The status to be patched, if it changed.
    pub(crate) status: Option<PodStatus>,
    pub(crate) events: Vec<PodEvent>,
    /// When the pod has to be synced next, if nothing changes before.
    pub(crate) requeue_at: Option<Timestamp>,
}

/// Syncs a pod.
pub(crate) fn decide(pod: &Pod, state: &PodState, now: Timestamp) -> Decision {
    let Some(spec) = &pod.spec else { return Decision::default() };
    let old = pod.status.clone().unwrap_or_default();
    let stamp = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let mut sync = PodSync { pod, spec, state, now, decision: Decision::default() };
    let mut new = old.clone();
    new.start_time.get_or_insert(Time(stamp));
    if !state.host_ip.is_empty() {
        new.host_ip = Some(state.host_ip.clone());
        new.host_ips = Some(vec![HostIP { ip: state.host_ip.clone() }]);
    }
    if let Some(address) = &state.pod_ip {
        new.pod_ip = Some(address.clone());
        new.pod_ips = Some(vec![PodIP { ip: address.clone() }]);
    }
    new.qos_class.get_or_insert_with(|| qos_class(spec).to_owned());
    let active_deadline = sync.active_deadline(&new);
    let deletion = pod.metadata.deletion_timestamp.as_ref().map(|at| at.0);
    let ended = matches!(old.phase.as_deref(), Some("Succeeded" | "Failed"));
    let phase = match (deletion, &state.eviction, active_deadline) {
        (None, ..) if ended => sync.sync_terminated(&mut new),
        (None, Some(eviction), _) => sync.sync_evicted(&mut new, eviction),
        (None, None, Some(deadline)) if deadline <= now => sync.sync_deadline_exceeded(&mut new),
        (None, None, deadline) => {
            sync.requeue_at(deadline);
            sync.sync(&mut new)
        }
        (Some(deletion), ..) => sync.sync_terminating(&mut new, deletion, ended),
    };
    let phase = if ended { Phase::parse(old.phase.as_deref()) } else { phase };
    new.phase = Some(phase.as_str().to_owned());
    new.observed_generation = pod.metadata.generation;
    let alive = state.sandbox == Sandbox::Alive && !phase.is_terminal();
    pod_conditions::set_conditions(pod, &mut new, phase, alive, stamp);
    sync.decision.status = (new != old).then_some(new);
    sync.decision
}

struct PodSync<'a> {
    pod: &'a Pod,
    spec: &'a PodSpec,
    state: &'a PodState,
    now: Timestamp,
    decision: Decision,
}

impl PodSync<'_> {
    fn requeue_at(&mut self, at: Option<Timestamp>) {
        self.decision.requeue_at = self.decision.requeue_at.into_iter().chain(at).min();
    }

    fn container(&self, name: &str) -> ContainerRecord {
        self.state.containers.get(name).cloned().unwrap_or_default()
    }

    fn init(&self) -> impl DoubleEndedIterator<Item = &Container> + use<'_> {
        self.spec.init_containers.iter().flatten()
    }

    /// The end of `activeDeadlineSeconds`.
    fn active_deadline(&self, status: &PodStatus) -> Option<Timestamp> {
        let began = status.start_time.as_ref()?.0;
        began.checked_add(SignedDuration::from_secs(self.spec.active_deadline_seconds?)).ok()
    }

    /// The pod's termination grace period, unless a deletion says otherwise.
    fn grace_period(&self) -> SignedDuration {
        SignedDuration::from_secs(self.spec.termination_grace_period_seconds.unwrap_or(30).max(0))
    }

    fn container_sync<'l>(
        &'l self,
        container: &'l Container,
        record: &'l ContainerRecord,
        restarts: RestartRules<'l>,
    ) -> ContainerSync<'l> {
        ContainerSync {
            pod: self.pod,
            container,
            record,
            restarts,
            now: self.now,
            grace: self.grace_period(),
        }
    }

    /// Starts and restarts containers. Returns the pod's phase.
    fn sync(&mut self, new: &mut PodStatus) -> Phase {
        if self.main_containers_finished() {
            // Nothing is started any more, not even sidecars.
            self.update_statuses(new);
            self.sync_terminated(new);
            return self.phase(new, true);
        }
        let may_start = self.prepare();
        let (init_before, main_before) = (new.init_container_statuses.take(), new.container_statuses.take());
        let (init_before, main_before) = (init_before.unwrap_or_default(), main_before.unwrap_or_default());
        let first = if self.spec.init_containers.iter().flatten().next().is_some() {
            "PodInitializing"
        } else {
            "ContainerCreating"
        };
        // Whether all init containers so far have completed.
        let mut done = may_start;
        let mut init = Vec::new();
        for container in self.spec.init_containers.iter().flatten() {
            let record = self.container(&container.name);
            let restarts = RestartRules::for_init_container(self.spec, container);
            let synced = self.container_sync(container, &record, restarts).sync(done, "PodInitializing");
            let done_before = done;
            let mut became = status(
                self.uid(),
                container,
                &record,
                synced.waiting.clone(),
                find(&init_before, &container.name),
            );
            // What it did in a sandbox that is gone has to be done again.
            let current = record.current().is_some();
            set_init_container_ready(container, &mut became);
            done = done
                && current
                && match is_sidecar(container) {
                    true => became.started == Some(true),
                    false => exit_code_of(&became) == Some(0),
                };
            // A completed init container is not restarted.
            if done_before && (!done || is_sidecar(container)) {
                self.plan(container, synced.action, &record);
                self.requeue_at(synced.requeue_at);
                self.record(synced.events, find(&init_before, &container.name), &became);
            }
            init.push(became);
        }
        let mut main = Vec::new();
        for container in &self.spec.containers {
            let record = self.container(&container.name);
            let restarts = RestartRules::for_container(self.spec, container);
            let synced = self.container_sync(container, &record, restarts).sync(done, first);
            let became = status(
                self.uid(),
                container,
                &record,
                synced.waiting.clone(),
                find(&main_before, &container.name),
            );
            self.plan(container, synced.action, &record);
            self.requeue_at(synced.requeue_at);
            self.record(synced.events, find(&main_before, &container.name), &became);
            main.push(became);
        }
        self.sync_ephemeral_containers(new, may_start, first);
        let phase = match pod_conditions::phase(self.spec, &init, &main, false) {
            ended if ended.is_terminal() && self.restart_requested() => Phase::Running,
            // By a policy or a rule of the container, where the pod's policy says otherwise.
            ended if ended.is_terminal() && self.any_will_restart() => match done {
                true => Phase::Running,
                false => Phase::parse(new.phase.as_deref()),
            },
            phase => phase,
        };
        if phase.is_terminal() {
            // Nothing is started any more.
            self.decision.steps.retain(|step| !matches!(step, Step::Start(..) | Step::PullImage(_)));
        }
        new.init_container_statuses = (!init.is_empty()).then_some(init);
        new.container_statuses = Some(main);
        if !phase.is_terminal() {
            return phase;
        }
        self.sync_terminated(new);
        match self.any_running() {
            // Until its sidecars have stopped, the pod is running.
            true => Phase::Running,
            false => phase,
        }
    }

    fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }

    fn any_running(&self) -> bool {
        self.state.containers.values().any(ContainerRecord::is_running)
    }

    /// Prepares volumes and sandbox. Returns whether containers can be started.
    fn prepare(&mut self) -> bool {
        match &self.state.volumes {
            Volumes::Ready => {}
            Volumes::Unknown => {
                self.decision.steps.push(Step::SetUpVolumes);
                return false;
            }
            Volumes::Failed { retry_at } => {
                if *retry_at <= self.now {
                    self.decision.steps.push(Step::SetUpVolumes);
                }
                self.requeue_at(Some(*retry_at));
                return false;
            }
        }
        match &self.state.sandbox {
            Sandbox::Alive => true,
            Sandbox::Failed { retry_at, .. } if *retry_at > self.now => {
                self.requeue_at(Some(*retry_at));
                false
            }
            Sandbox::Absent | Sandbox::Failed { .. } => {
                // No sandbox is created for a pod whose containers have all finished.
                if self.wants_to_run() {
                    self.decision.steps.push(Step::CreateSandbox);
                }
                false
            }
        }
    }

    fn plan(&mut self, container: &Container, action: ContainerAction, record: &ContainerRecord) {
        let name = container.name.clone();
        match action {
            ContainerAction::Nothing => {}
            ContainerAction::PullImage => self.decision.steps.push(Step::PullImage(name)),
            ContainerAction::Start => self.decision.steps.push(Step::Start(name, record.next_attempt())),
            ContainerAction::Stop(stop, message) => self.decision.steps.push(Step::Stop(name, stop, message)),
            ContainerAction::Stopping(next) => self.continue_stop(&name, next),
        }
    }

    /// Records the events of a container whose status changed.
    fn record(&mut self, events: Vec<PodEvent>, before: Option<&ContainerStatus>, became: &ContainerStatus) {
        let reason = |status: &ContainerStatus| status.state.clone()?.waiting?.reason;
        if before.is_none_or(|before| {
            reason(before) != reason(became) || before.restart_count != became.restart_count
        }) {
            self.decision.events.extend(events);
        }
    }

    fn continue_stop(&mut self, name: &str, next: StopStep) {
        let name = name.to_owned();
        match next {
            StopStep::PreStopHook => self.decision.steps.push(Step::PreStop(name)),
            StopStep::Terminate => self.decision.steps.push(Step::Terminate(name)),
            StopStep::Kill => self.decision.steps.push(Step::Kill(name)),
            StopStep::Wait(until) => self.requeue_at(Some(until)),
        }
    }

    fn phase(&self, new: &PodStatus, terminal: bool) -> Phase {
        let init = new.init_container_statuses.as_deref().unwrap_or_default();
        let main = new.container_statuses.as_deref().unwrap_or_default();
        let phase = pod_conditions::phase(self.spec, init, main, terminal);
        // A pod with a running container is not terminal, whatever the others did.
        if phase.is_terminal() && self.any_running() { Phase::Running } else { phase }
    }
}

fn find<'s>(statuses: &'s [ContainerStatus], name: &str) -> Option<&'s ContainerStatus> {
    statuses.iter().find(|status| status.name == name)
}
