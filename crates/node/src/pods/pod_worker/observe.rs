//! Observes a pod's containers through its shim.

use super::super::pod_state::exit_code;
use super::super::termination_message::termination_message;
use super::{PodWorker, container};
use crate::probes;
use crate::shim::{ContainerState, Phase, Shim, ShimError};
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;
use std::time::Duration;

impl PodWorker {
    /// Asks the shim for the states of all containers.
    pub(super) async fn observe(&mut self, pod: &Pod) {
        let Some(shim) = self.shim.clone() else { return };
        match shim.states().await {
            Ok(states) => self.update_states(pod, states),
            Err(ShimError::Gone) => {
                self.sandbox_lost(pod).await;
            }
            Err(error) => tracing::warn!(pod = %self.key, "failed to query the pod's shim: {error}"),
        }
    }

    /// Updates the states of containers.
    pub(in crate::pods) fn update_states(&mut self, pod: &Pod, states: Vec<ContainerState>) {
        let mut by_name: BTreeMap<String, Vec<ContainerState>> = BTreeMap::new();
        for state in states {
            by_name.entry(state.name.clone()).or_default().push(state);
        }
        for (name, mut states) in by_name {
            states.sort_by_key(|state| state.attempt);
            let record = self.state.containers.entry(name.clone()).or_default();
            let Some(container) = container(pod, &name) else { continue };
            for state in &states {
                if let Some(code) = exit_code(&state.phase)
                    && !record.termination_messages.contains_key(&state.attempt)
                {
                    let message =
                        self.folder.join("containers").join(&name).join(format!("{}.message", state.attempt));
                    let log =
                        self.context.pod_logs_dir(pod).join(&name).join(format!("{}.log", state.attempt));
                    record
                        .termination_messages
                        .insert(state.attempt, termination_message(&container, code, &message, &log));
                }
            }
            record.states = states;
        }
        self.sync_probes(pod);
    }

    /// Starts the probes of running containers, and stops all others.
    fn sync_probes(&mut self, pod: &Pod) {
        let Some(shim) = self.shim.clone() else { return };
        let terminating = pod.metadata.deletion_timestamp.is_some();
        let network = if self.context.uses_host_network(pod) { None } else { self.context.network.clone() };
        let address = match &self.state.pod_ip {
            Some(address) => address.clone(),
            None => self.context.host_ip.clone(),
        };
        let names: Vec<String> = self.state.containers.keys().cloned().collect();
        for name in names {
            let Some(container) = container(pod, &name) else { continue };
            let record = &self.state.containers[&name];
            let running = match record.last() {
                Some(ContainerState { attempt, phase: Phase::Running { started, .. }, .. }) => {
                    Some((*attempt, *started))
                }
                _ => None,
            };
            let has_started = container.startup_probe.is_none() || record.started == Some(true);
            let target = probes::handler::ProbeTarget {
                shim: shim.clone(),
                network: network.clone(),
                address: address.clone(),
                container: container.into_owned(),
                clock: self.context.clock.clone(),
            };
            self.probes.sync(&target, running, has_started, terminating, &self.results);
        }
    }

    /// Watches the shim for changes, as long as it runs.
    pub(in crate::pods) fn watch(&mut self, shim: &Shim) {
        if let Some(old) = self.watching.take() {
            old.abort();
        }
        let (shim, changed, clock) = (shim.clone(), self.changed.clone(), self.context.clock.clone());
        self.watching = Some(self.tasks.spawn(async move {
            let mut version = 0;
            loop {
                match shim.changed(version).await {
                    Ok(now) => version = now,
                    Err(ShimError::Gone) => {
                        changed.notify_one();
                        return;
                    }
                    // The connection failed, not the shim: retry, but not in a tight loop.
                    Err(_) => clock.sleep(Duration::from_secs(1)).await,
                }
                changed.notify_one();
            }
        }));
    }
}
