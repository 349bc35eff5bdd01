//! What a pod's worker finds out from its shim.

use super::super::known::exit_code;
use super::super::words::last_words;
use super::{Worker, container};
use crate::probes;
use crate::shim::{ContainerState, Phase, Shim, ShimError};
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;
use std::time::Duration;

impl Worker {
    /// What the shim says.
    pub(super) async fn observe(&mut self, pod: &Pod) {
        let Some(shim) = self.shim.clone() else { return };
        match shim.states().await {
            Ok(states) => self.note(pod, states),
            Err(ShimError::Gone) => {
                self.lose(pod).await;
            }
            Err(error) => tracing::warn!(pod = %self.key, "the pod's shim cannot be asked: {error}"),
        }
    }

    /// Takes in how containers are.
    pub(in crate::pods) fn note(&mut self, pod: &Pod, states: Vec<ContainerState>) {
        let mut by_name: BTreeMap<String, Vec<ContainerState>> = BTreeMap::new();
        for state in states {
            by_name.entry(state.name.clone()).or_default().push(state);
        }
        for (name, mut states) in by_name {
            states.sort_by_key(|state| state.attempt);
            let run = self.known.runs.entry(name.clone()).or_default();
            let Some(container) = container(pod, &name) else { continue };
            for state in &states {
                if let Some(code) = exit_code(&state.phase)
                    && !run.words.contains_key(&state.attempt)
                {
                    let message =
                        self.folder.join("containers").join(&name).join(format!("{}.message", state.attempt));
                    let log = self.site.logs_of(pod).join(&name).join(format!("{}.log", state.attempt));
                    run.words.insert(state.attempt, last_words(&container, code, &message, &log));
                }
            }
            run.states = states;
        }
        self.sync_probes(pod);
    }

    /// Probes what runs, and nothing else.
    fn sync_probes(&mut self, pod: &Pod) {
        let Some(shim) = self.shim.clone() else { return };
        let going = pod.metadata.deletion_timestamp.is_some();
        let network = if self.site.on_host_network(pod) { None } else { self.site.network.clone() };
        let address = match &self.known.pod_ip {
            Some(address) => address.clone(),
            None => self.site.host_ip.clone(),
        };
        let names: Vec<String> = self.known.runs.keys().cloned().collect();
        for name in names {
            let Some(container) = container(pod, &name) else { continue };
            let run = &self.known.runs[&name];
            let running = match run.last() {
                Some(ContainerState { attempt, phase: Phase::Running { started, .. }, .. }) => {
                    Some((*attempt, *started))
                }
                _ => None,
            };
            let has_started = container.startup_probe.is_none() || run.started == Some(true);
            let reach = probes::handler::Reach {
                shim: shim.clone(),
                network: network.clone(),
                address: address.clone(),
                container: container.into_owned(),
                clock: self.site.clock.clone(),
            };
            self.probing.sync(&reach, running, has_started, going, &self.tell);
        }
    }

    /// Notices what the shim does, as long as it lives.
    pub(in crate::pods) fn watch(&mut self, shim: &Shim) {
        if let Some(old) = self.watching.take() {
            old.abort();
        }
        let (shim, changed, clock) = (shim.clone(), self.changed.clone(), self.site.clock.clone());
        self.watching = Some(self.tasks.spawn(async move {
            let mut version = 0;
            loop {
                match shim.changed(version).await {
                    Ok(now) => version = now,
                    Err(ShimError::Gone) => {
                        changed.notify_one();
                        return;
                    }
                    // Something is wrong with the connection and not with the shim: not more often than this.
                    Err(_) => clock.sleep(Duration::from_secs(1)).await,
                }
                changed.notify_one();
            }
        }));
    }
}
