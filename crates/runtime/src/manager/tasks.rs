//! Tasks beside the controllers: a poller, a collector, a server of one's own. Kept running, and apart from the rest.

use crate::kind::Kind;
use crate::metrics::TaskState;
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::BoxError;
use windlass_clock::Clock;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What a task gets to work with.
#[derive(Clone)]
pub struct Task {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) cache: crate::cache::Cache,
    pub(super) recorder: crate::events::Recorder,
    pub(super) stopped: CancellationToken,
}

impl Task {
    /// The manager's client: counted, and behind its guard where it is elected.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The manager's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The kinds that the manager's controllers watch; all of them had their first list before any task began.
    pub fn watched(&self) -> Vec<Kind> {
        self.cache.stats().into_iter().map(|stats| stats.kind).collect()
    }

    /// What is watched; a task may open more.
    pub fn cache(&self) -> &crate::cache::Cache {
        &self.cache
    }

    /// Records events in the task's name.
    pub fn recorder(&self) -> &crate::events::Recorder {
        &self.recorder
    }

    /// Is ready when the task is to end. One that does not end in time is cut off.
    pub async fn stopped(&self) {
        self.stopped.cancelled().await;
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("stopped", &self.stopped.is_cancelled()).finish_non_exhaustive()
    }
}

pub(super) type Work = Arc<dyn Fn(Task) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// A task that a manager was given.
pub(super) struct Given {
    pub(super) name: String,
    pub(super) work: Work,
    /// Whether it runs only on the replica that leads.
    pub(super) leading: bool,
    pub(super) state: Arc<TaskState>,
}

/// Runs a task until it is done, or told to stop. After an error or a panic it begins again, later each time.
pub(super) async fn keep(work: Work, state: Arc<TaskState>, task: Task) {
    let _running = state.begin();
    let mut pause = FIRST_PAUSE;
    loop {
        let began = task.clock.moment();
        // Within the future, so that a panic before the first wait is caught too.
        let attempt = async { work(task.clone()).await };
        let why = match AssertUnwindSafe(attempt).catch_unwind().await {
            Ok(Ok(())) => {
                tracing::debug!(task = state.name(), "done");
                return;
            }
            Ok(Err(error)) => {
                state.failed();
                crate::error_chain::chain(&*error)
            }
            Err(panic) => {
                state.panicked();
                format!("it panicked: {}", crate::controller::panic_text(&*panic))
            }
        };
        if task.stopped.is_cancelled() {
            return;
        }
        if task.clock.moment() - began > LONGEST_PAUSE {
            pause = FIRST_PAUSE;
        }
        tracing::warn!(task = state.name(), ?pause, "beginning again: {why}");
        tokio::select! {
            () = task.stopped() => return,
            () = task.clock.sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
