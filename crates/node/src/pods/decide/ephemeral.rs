//! Containers that are added to look into a pod: started once, as soon as there are namespaces, and never again.

use super::super::ephemeral;
use super::super::known::Run;
use super::super::policy::Restarts;
use super::super::statuses::{Waits, status};
use super::{Turn, find};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodStatus};

impl Turn<'_> {
    /// Starts those that never were, and writes how all of them are; `first` is why they wait until they can be started.
    pub(super) fn looks_into_it(&mut self, new: &mut PodStatus, may_start: bool, first: &'static str) {
        let before = new.ephemeral_container_statuses.take().unwrap_or_default();
        let mut all = Vec::new();
        for container in ephemeral::containers(self.spec) {
            let (run, old) = (self.run(&container.name), find(&before, &container.name));
            // One that ended has ended, also where its namespaces are no more.
            if run.exit_code().is_some() {
                all.push(self.looked(&container, &run, None, old));
                continue;
            }
            let lives = self.life(&container, &run, Restarts::NEVER).decide(may_start, first);
            let became = self.looked(&container, &run, lives.waits, old);
            self.act(&container, lives.act, &run);
            self.wake_at(lives.wake);
            self.tell(lives.told, old, &became);
            all.push(became);
        }
        new.ephemeral_container_statuses = (!all.is_empty()).then_some(all);
    }

    /// Writes what became of them, without starting any.
    pub(super) fn looked_into_it(&self, new: &mut PodStatus) {
        let before = new.ephemeral_container_statuses.take().unwrap_or_default();
        let became = |container: Container| {
            let (run, old) = (self.run(&container.name), find(&before, &container.name));
            match (run.last(), old) {
                (None, Some(old)) => old.clone(),
                _ => self.looked(&container, &run, None, old),
            }
        };
        let all: Vec<ContainerStatus> = ephemeral::containers(self.spec).map(became).collect();
        new.ephemeral_container_statuses = (!all.is_empty()).then_some(all);
    }

    /// Nobody asks whether they are ready, or have started.
    fn looked(
        &self,
        container: &Container,
        run: &Run,
        waits: Option<Waits>,
        before: Option<&ContainerStatus>,
    ) -> ContainerStatus {
        let status = status(self.uid(), container, run, waits, before);
        ContainerStatus { ready: false, started: None, ..status }
    }
}
