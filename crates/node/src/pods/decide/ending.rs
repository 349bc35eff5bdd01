//! How a pod ends: because it is asked to go, has run for too long, has to make room, or is over.

use super::super::ephemeral;
use super::super::known::{Cause, Evicted, Run, Sandbox};
use super::super::policy::is_sidecar;
use super::super::statuses::{ended_with, initializing, never_found, status};
use super::super::stopping::Stop;
use super::{AT_ONCE, EVICTED, Step, Turn, find};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodStatus};
use windlass_cluster::node::conditions::{self, Phase};

impl Turn<'_> {
    /// Stops what runs: the main containers at once, then what went on beside them, the last first. Answers whether anything
    /// still runs.
    fn stop_all(
        &mut self,
        asked: Timestamp,
        grace: SignedDuration,
        message: impl Fn(&Container) -> String,
    ) -> bool {
        let spec = self.spec;
        // Who looks into the pod is stopped with the first, and nobody waits for that.
        let added: Vec<Container> = ephemeral::containers(spec).collect();
        let looked = self.stop_group(&added.iter().collect::<Vec<_>>(), asked, grace, &message);
        let first = spec.init_containers.iter().flatten().filter(|container| !is_sidecar(container));
        let sidecars = spec.init_containers.iter().flatten().rev().filter(|container| is_sidecar(container));
        // Groups, each stopped when those before it are.
        let mut groups = vec![spec.containers.iter().chain(first).collect::<Vec<_>>()];
        groups.extend(sidecars.map(|sidecar| vec![sidecar]));
        groups.iter().any(|group| self.stop_group(group, asked, grace, &message)) || looked
    }

    /// Stops containers at once. Answers whether any of them still runs.
    fn stop_group(
        &mut self,
        group: &[&Container],
        asked: Timestamp,
        grace: SignedDuration,
        message: impl Fn(&Container) -> String,
    ) -> bool {
        let known = self.known;
        let mut any = false;
        for container in group {
            let Some(run) = known.runs.get(&container.name).filter(|run| run.is_running()) else {
                continue;
            };
            any = true;
            match &run.stop {
                None => {
                    let hook = container.lifecycle.as_ref().is_some_and(|hooks| hooks.pre_stop.is_some());
                    let stop = Stop::new(asked, grace, hook);
                    self.decision.steps.push(Step::Stop(container.name.clone(), stop, message(container)));
                }
                Some(stop) => {
                    let mut hastened = stop.clone();
                    let deadline = super::super::backoff::later(asked, grace);
                    hastened.hasten(deadline);
                    if hastened != *stop {
                        self.decision.steps.push(Step::Hasten(container.name.clone(), deadline));
                    }
                    self.stop_on(&container.name, hastened.next(self.now));
                }
            }
        }
        any
    }

    /// The pod is asked to go.
    pub(super) fn goes(&mut self, new: &mut PodStatus, going: Timestamp, ended: bool) -> Phase {
        let grace = self.pod.metadata.deletion_grace_period_seconds.unwrap_or(0).max(0);
        let grace = SignedDuration::from_secs(grace);
        let asked = going.checked_sub(grace).unwrap_or(going);
        let runs = self.stop_all(asked, grace, |container| format!("Stopping container {}", container.name));
        self.refresh(new);
        let over = !runs;
        if over {
            self.finish(new);
            if self.known.sandbox == Sandbox::Alive {
                self.decision.steps.push(Step::End);
            } else {
                self.decision.steps.push(Step::Remove);
            }
        }
        if ended { Phase::Failed } else { self.phase(new, over) }
    }

    /// It ran for too long.
    pub(super) fn exceeds_its_deadline(&mut self, new: &mut PodStatus) -> Phase {
        let runs = self
            .stop_all(self.now, self.grace(), |container| format!("Stopping container {}", container.name));
        self.refresh(new);
        new.reason = Some("DeadlineExceeded".to_owned());
        new.message = Some("Pod was active on the node longer than the specified deadline".to_owned());
        if runs {
            return self.phase(new, false);
        }
        self.finish(new);
        if self.known.sandbox == Sandbox::Alive {
            self.decision.steps.push(Step::End);
        }
        Phase::Failed
    }

    /// It has to go, for want of something.
    pub(super) fn is_evicted(&mut self, new: &mut PodStatus, evicted: &Evicted) -> Phase {
        new.reason = Some(EVICTED.to_owned());
        if let Cause::Refusal(reason) = &evicted.cause {
            new.reason = Some(reason.clone());
            new.message = Some(format!("Pod was rejected: {}", evicted.message));
            return Phase::Failed;
        }
        new.message = Some(evicted.message.clone());
        if evicted.cause == Cause::Shortage {
            let generation = self.pod.metadata.generation;
            conditions::disrupted(new, &evicted.message, generation, evicted.at);
        }
        let runs =
            self.stop_all(evicted.at, AT_ONCE, |container| format!("Stopping container {}", container.name));
        self.refresh(new);
        if runs {
            return self.phase(new, false);
        }
        // It has failed when there is room: until then nobody else has to go.
        let last = match self.known.sandbox {
            Sandbox::Alive => Step::End,
            _ if !self.known.reclaimed => Step::Reclaim,
            _ => {
                self.finish(new);
                return Phase::Failed;
            }
        };
        self.decision.steps.push(last);
        Phase::named(new.phase.as_deref())
    }

    /// Its containers have ended for good: what went on beside them is stopped, and its namespaces are ended.
    pub(super) fn has_ended(&mut self, new: &mut PodStatus) -> Phase {
        let runs = self
            .stop_all(self.now, self.grace(), |container| format!("Stopping container {}", container.name));
        if runs {
            return Phase::Running;
        }
        if self.known.sandbox == Sandbox::Alive {
            self.decision.steps.push(Step::End);
        }
        for status in
            new.init_container_statuses.iter_mut().chain(new.container_statuses.iter_mut()).flatten()
        {
            status.ready = status.ready && ended_with(status) == Some(0);
        }
        Phase::Failed
    }

    /// Writes what became of the containers, without starting any.
    pub(super) fn refresh(&self, new: &mut PodStatus) {
        let write = |containers: &[Container], statuses: &mut Option<Vec<ContainerStatus>>, init: bool| {
            let before = statuses.take().unwrap_or_default();
            let all: Vec<ContainerStatus> = containers
                .iter()
                .map(|container| {
                    let old = find(&before, &container.name);
                    let Some(run) = self.known.runs.get(&container.name).filter(|run| run.last().is_some())
                    else {
                        let waits = || status(self.uid(), container, &Run::default(), None, old);
                        return old.cloned().unwrap_or_else(waits);
                    };
                    let mut became = status(self.uid(), container, run, None, old);
                    if init {
                        initializing(container, &mut became);
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
        self.looked_into_it(new);
    }

    /// Nothing runs any more, and nothing will.
    fn finish(&self, new: &mut PodStatus) {
        for status in
            new.init_container_statuses.iter_mut().chain(new.container_statuses.iter_mut()).flatten()
        {
            never_found(status);
        }
    }
}
