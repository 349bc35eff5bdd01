//! The probes of a pod: those of its running containers.

use super::pod_worker::TaskResult;
use crate::probes::handler::ProbeTarget;
use crate::probes::run_probe;
use crate::probes::tracker::Kind;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// The probes of a pod.
#[derive(Debug, Default)]
pub(super) struct ProbeManager(BTreeMap<String, ContainerProbes>);

#[derive(Debug)]
struct ContainerProbes {
    attempt: u32,
    started: watch::Sender<bool>,
    /// They are stopped when this is dropped.
    _tasks: JoinSet<()>,
}

impl ProbeManager {
    /// Starts the probes of a container that runs since then, and stops those of one that does not. A terminating pod has only
    /// readiness probes.
    pub(super) fn sync(
        &mut self,
        target: &ProbeTarget,
        running: Option<(u32, i64)>,
        has_started: bool,
        terminating: bool,
        results: &mpsc::Sender<TaskResult>,
    ) {
        let name = &target.container.name;
        let Some((attempt, since)) = running else {
            self.0.remove(name);
            return;
        };
        if self.0.get(name).is_some_and(|probes| probes.attempt == attempt) {
            return;
        }
        let age = target.clock.now().as_millisecond().saturating_sub(since);
        let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
        let (started, _) = watch::channel(has_started);
        let mut tasks = JoinSet::new();
        for kind in Kind::ALL {
            let Some(probe) = kind.of(&target.container).cloned() else { continue };
            if (kind == Kind::Startup && has_started) || (terminating && kind != Kind::Readiness) {
                continue;
            }
            let container = name.clone();
            let wrap = move |result| TaskResult::Probe { container: container.clone(), attempt, result };
            tasks.spawn(run_probe(
                target.clone(),
                kind,
                probe,
                age,
                started.subscribe(),
                results.clone(),
                wrap,
            ));
        }
        self.0.insert(name.clone(), ContainerProbes { attempt, started, _tasks: tasks });
    }

    /// The startup probe of a container succeeded: its other probes start.
    pub(super) fn started(&mut self, container: &str) {
        if let Some(probes) = self.0.get(container) {
            let _ = probes.started.send(true);
        }
    }

    pub(super) fn stop(&mut self) {
        self.0.clear();
    }
}
