//! Ephemeral containers: started once, as soon as there is a sandbox, and never restarted.

use super::super::container_status::{Waiting, status};
use super::super::pod_state::ContainerRecord;
use super::super::restart_policy::RestartRules;
use super::{PodSync, find};
use crate::references::ephemeral_containers;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodStatus};

impl PodSync<'_> {
    /// Starts those that were not started yet, and updates their statuses; `first` is why they wait until they can be started.
    pub(super) fn sync_ephemeral_containers(
        &mut self,
        new: &mut PodStatus,
        may_start: bool,
        first: &'static str,
    ) {
        let before = new.ephemeral_container_statuses.take().unwrap_or_default();
        let mut all = Vec::new();
        for container in ephemeral_containers::containers(self.spec) {
            let (record, old) = (self.container(&container.name), find(&before, &container.name));
            // A terminated one stays so, also where its sandbox is gone.
            if record.exit_code().is_some() {
                all.push(self.ephemeral_status(&container, &record, None, old));
                continue;
            }
            let synced = self.container_sync(&container, &record, RestartRules::NEVER).sync(may_start, first);
            let became = self.ephemeral_status(&container, &record, synced.waiting, old);
            self.plan(&container, synced.action, &record);
            self.requeue_at(synced.requeue_at);
            self.record(synced.events, old, &became);
            all.push(became);
        }
        new.ephemeral_container_statuses = (!all.is_empty()).then_some(all);
    }

    /// Updates their statuses, without starting any.
    pub(super) fn update_ephemeral_statuses(&self, new: &mut PodStatus) {
        let before = new.ephemeral_container_statuses.take().unwrap_or_default();
        let became = |container: Container| {
            let (record, old) = (self.container(&container.name), find(&before, &container.name));
            match (record.last(), old) {
                (None, Some(old)) => old.clone(),
                _ => self.ephemeral_status(&container, &record, None, old),
            }
        };
        let all: Vec<ContainerStatus> = ephemeral_containers::containers(self.spec).map(became).collect();
        new.ephemeral_container_statuses = (!all.is_empty()).then_some(all);
    }

    /// Ephemeral containers have no readiness, and no `started`.
    fn ephemeral_status(
        &self,
        container: &Container,
        record: &ContainerRecord,
        waiting: Option<Waiting>,
        before: Option<&ContainerStatus>,
    ) -> ContainerStatus {
        let status = status(self.uid(), container, record, waiting, before);
        ContainerStatus { ready: false, started: None, ..status }
    }
}
