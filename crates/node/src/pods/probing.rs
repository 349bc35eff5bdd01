//! Which probes of a pod are under way: those of the containers that run.

use super::worker::News;
use crate::probes::handler::Reach;
use crate::probes::keep_looking;
use crate::probes::tracker::Kind;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// The probes of a pod.
#[derive(Debug, Default)]
pub(super) struct Probing(BTreeMap<String, Of>);

#[derive(Debug)]
struct Of {
    attempt: u32,
    started: watch::Sender<bool>,
    /// They end when this is dropped.
    _tasks: JoinSet<()>,
}

impl Probing {
    /// Begins to probe a container that runs since then, and ends with one that does not. Who goes is asked only whether it can
    /// serve.
    pub(super) fn sync(
        &mut self,
        reach: &Reach,
        running: Option<(u32, i64)>,
        has_started: bool,
        going: bool,
        tell: &mpsc::Sender<News>,
    ) {
        let name = &reach.container.name;
        let Some((attempt, since)) = running else {
            self.0.remove(name);
            return;
        };
        if self.0.get(name).is_some_and(|of| of.attempt == attempt) {
            return;
        }
        let age = reach.clock.now().as_millisecond().saturating_sub(since);
        let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
        let (started, _) = watch::channel(has_started);
        let mut tasks = JoinSet::new();
        for kind in Kind::ALL {
            let Some(probe) = kind.of(&reach.container).cloned() else { continue };
            if (kind == Kind::Startup && has_started) || (going && kind != Kind::Readiness) {
                continue;
            }
            let container = name.clone();
            let wrap = move |found| News::Probe { container: container.clone(), attempt, found };
            tasks.spawn(keep_looking(
                reach.clone(),
                kind,
                probe,
                age,
                started.subscribe(),
                tell.clone(),
                wrap,
            ));
        }
        self.0.insert(name.clone(), Of { attempt, started, _tasks: tasks });
    }

    /// A container has started: the others may look.
    pub(super) fn started(&mut self, container: &str) {
        if let Some(of) = self.0.get(container) {
            let _ = of.started.send(true);
        }
    }

    pub(super) fn stop(&mut self) {
        self.0.clear();
    }
}
