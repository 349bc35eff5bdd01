//! Terminating a pod: because it is deleted, exceeds its active deadline, is evicted, or has finished.

use super::super::container_status::{exit_code_of, set_init_container_ready, status, terminate_unknown};
use super::super::container_stop::Stop;
use super::super::pod_state::{ContainerRecord, Sandbox};
use super::{EVICTED, EVICTION_GRACE, PodSync, Step, find};
use crate::eviction::{Eviction, EvictionCause};
use crate::references::ephemeral_containers;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodStatus};
use windlass_component_helpers::pod_conditions::{self, Phase};
use windlass_component_helpers::restart_policy::is_sidecar;

impl PodSync<'_> {
    /// Stops what is running: the main containers in parallel, then the sidecars in reverse order. Returns whether any container is
    /// still running.
    fn stop_all(
        &mut self,
        asked: Timestamp,
        grace: SignedDuration,
        message: impl Fn(&Container) -> String,
    ) -> bool {
        let spec = self.spec;
        // Ephemeral containers are stopped with the first group, and not waited for.
        let ephemeral: Vec<Container> = ephemeral_containers::containers(spec).collect();
        let ephemeral_running =
            self.stop_group(&ephemeral.iter().collect::<Vec<_>>(), asked, grace, &message);
        let first = spec.init_containers.iter().flatten().filter(|container| !is_sidecar(container));
        let sidecars = spec.init_containers.iter().flatten().rev().filter(|container| is_sidecar(container));
        // Each group is stopped when those before it have terminated.
        let mut groups = vec![spec.containers.iter().chain(first).collect::<Vec<_>>()];
        groups.extend(sidecars.map(|sidecar| vec![sidecar]));
        groups.iter().any(|group| self.stop_group(group, asked, grace, &message)) || ephemeral_running
    }

    /// Stops containers in parallel. Returns whether any of them is still running.
    fn stop_group(
        &mut self,
        group: &[&Container],
        asked: Timestamp,
        grace: SignedDuration,
        message: impl Fn(&Container) -> String,
    ) -> bool {
        let state = self.state;
        let mut any = false;
        for container in group {
            let Some(record) = state.containers.get(&container.name).filter(|record| record.is_running())
            else {
                continue;
            };
            any = true;
            match &record.stop {
                None => {
                    let hook = container.lifecycle.as_ref().is_some_and(|hooks| hooks.pre_stop.is_some());
                    let stop = Stop::new(asked, grace, hook);
                    self.decision.steps.push(Step::Stop(container.name.clone(), stop, message(container)));
                }
                Some(stop) => {
                    let mut shortened = stop.clone();
                    let deadline = super::super::backoff::later(asked, grace);
                    shortened.shorten(deadline);
                    if shortened != *stop {
                        self.decision.steps.push(Step::ShortenGracePeriod(container.name.clone(), deadline));
                    }
                    self.continue_stop(&container.name, shortened.next(self.now));
                }
            }
        }
        any
    }

    /// The pod is being deleted.
    pub(super) fn sync_terminating(
        &mut self,
        new: &mut PodStatus,
        deletion: Timestamp,
        ended: bool,
    ) -> Phase {
        let grace = self.pod.metadata.deletion_grace_period_seconds.unwrap_or(0).max(0);
        let grace = SignedDuration::from_secs(grace);
        let asked = deletion.checked_sub(grace).unwrap_or(deletion);
        let runs = self.stop_all(asked, grace, |container| format!("Stopping container {}", container.name));
        self.update_statuses(new);
        let terminal = !runs;
        if terminal {
            self.finish(new);
            if self.state.sandbox == Sandbox::Alive {
                self.decision.steps.push(Step::KillSandbox);
            } else {
                self.decision.steps.push(Step::DeletePod);
            }
        }
        if ended { Phase::Failed } else { self.phase(new, terminal) }
    }

    /// The pod exceeded `activeDeadlineSeconds`.
    pub(super) fn sync_deadline_exceeded(&mut self, new: &mut PodStatus) -> Phase {
        let runs = self.stop_all(self.now, self.grace_period(), |container| {
            format!("Stopping container {}", container.name)
        });
        self.update_statuses(new);
        new.reason = Some("DeadlineExceeded".to_owned());
        new.message = Some("Pod was active on the node longer than the specified deadline".to_owned());
        if runs {
            return self.phase(new, false);
        }
        self.finish(new);
        if self.state.sandbox == Sandbox::Alive {
            self.decision.steps.push(Step::KillSandbox);
        }
        Phase::Failed
    }

    /// The pod is evicted, or was rejected.
    pub(super) fn sync_evicted(&mut self, new: &mut PodStatus, eviction: &Eviction) -> Phase {
        new.reason = Some(EVICTED.to_owned());
        if let EvictionCause::Rejected(reason) = &eviction.cause {
            new.reason = Some(reason.clone());
            new.message = Some(format!("Pod was rejected: {}", eviction.message));
            return Phase::Failed;
        }
        new.message = Some(eviction.message.clone());
        if eviction.cause == EvictionCause::NodePressure {
            let generation = self.pod.metadata.generation;
            pod_conditions::set_disruption_target(new, &eviction.message, generation, eviction.at);
        }
        let runs = self.stop_all(eviction.at, EVICTION_GRACE, |container| {
            format!("Stopping container {}", container.name)
        });
        self.update_statuses(new);
        if runs {
            return self.phase(new, false);
        }
        // It has failed when its disk space is reclaimed: until then no other pod is evicted.
        let last = match self.state.sandbox {
            Sandbox::Alive => Step::KillSandbox,
            _ if !self.state.reclaimed => Step::Reclaim,
            _ => {
                self.finish(new);
                return Phase::Failed;
            }
        };
        self.decision.steps.push(last);
        Phase::parse(new.phase.as_deref())
    }

    /// The main containers have finished: sidecars are stopped, and the sandbox is killed.
    pub(super) fn sync_terminated(&mut self, new: &mut PodStatus) -> Phase {
        let runs = self.stop_all(self.now, self.grace_period(), |container| {
            format!("Stopping container {}", container.name)
        });
        if runs {
            return Phase::Running;
        }
        if self.state.sandbox == Sandbox::Alive {
            self.decision.steps.push(Step::KillSandbox);
        }
        for status in
            new.init_container_statuses.iter_mut().chain(new.container_statuses.iter_mut()).flatten()
        {
            status.ready = status.ready && exit_code_of(status) == Some(0);
        }
        Phase::Failed
    }

    /// Updates the container statuses, without starting any.
    pub(super) fn update_statuses(&self, new: &mut PodStatus) {
        let write = |containers: &[Container], statuses: &mut Option<Vec<ContainerStatus>>, init: bool| {
            let before = statuses.take().unwrap_or_default();
            let all: Vec<ContainerStatus> = containers
                .iter()
                .map(|container| {
                    let old = find(&before, &container.name);
                    let Some(record) =
                        self.state.containers.get(&container.name).filter(|record| record.last().is_some())
                    else {
                        let waits = || status(self.uid(), container, &ContainerRecord::default(), None, old);
                        return old.cloned().unwrap_or_else(waits);
                    };
                    let mut became = status(self.uid(), container, record, None, old);
                    if init {
                        set_init_container_ready(container, &mut became);
                    }
                    became
                })
                .collect();
            *statuses = (!all.is_empty()).then_some(all);
        };
        write(
            self.spec.init_containers.as_deref().unwrap_or_default(),
            &mut new.init_container_statuses,
            true,
        );
        write(&self.spec.containers, &mut new.container_statuses, false);
        self.update_ephemeral_statuses(new);
    }

    /// Terminates the statuses of containers that never started.
    fn finish(&self, new: &mut PodStatus) {
        for status in
            new.init_container_statuses.iter_mut().chain(new.container_statuses.iter_mut()).flatten()
        {
            terminate_unknown(status);
        }
    }
}
