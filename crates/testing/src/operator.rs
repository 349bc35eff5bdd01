//! An operator that runs in a test: stopped, killed, or gone with its handle.

use anyhow::{bail, ensure};
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass::inspect::Inspector;
use windlass::{Controller, Manager, Object};
use windlass_clock::Clock;
use windlass_cluster::Time;

/// What [`TestCluster::run`](crate::TestCluster::run) runs: a controller, or a function that adds several to a manager.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::{Controller, Manager, Plan};
/// use windlass_testing::{Operator, TestCluster};
///
/// # #[tokio::main]
/// # async fn main() {
/// let controller = || Controller::deciding(|_: &ConfigMap, _| Ok(Plan::new()));
/// let cluster = TestCluster::start();
/// let one = controller().on(cluster.manager());
/// let the_same = (|manager: Manager| manager.controller(controller())).on(cluster.manager());
/// # }
/// ```
pub trait Operator {
    /// The manager with this operator's controllers.
    fn on(self, manager: Manager) -> Manager;
}

impl<K: Object> Operator for Controller<K> {
    fn on(self, manager: Manager) -> Manager {
        manager.controller(self)
    }
}

impl<F: FnOnce(Manager) -> Manager> Operator for F {
    fn on(self, manager: Manager) -> Manager {
        self(manager)
    }
}

/// The operators that were run on a cluster, to be asked what they wait for.
#[derive(Clone, Default)]
pub(crate) struct Operators(Arc<Mutex<Vec<Inspector>>>);

/// The most lines of one controller.
const LINES: usize = 10;

impl Operators {
    pub(crate) fn add(&self, inspector: Inspector) {
        self.0.lock().push(inspector);
    }

    /// What each of their controllers waits for, refuses and fails at.
    pub(crate) fn trouble(&self) -> Vec<String> {
        let running: Vec<Value> = self.0.lock().iter().map(Inspector::debug).collect();
        let controllers = running.iter().filter_map(|one| one["controllers"].as_array()).flatten();
        controllers.flat_map(trouble_of).collect()
    }
}

fn trouble_of(controller: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&controller["name"]);
    let awaited = controller["awaited"].as_array().into_iter().flatten().take(LINES);
    let line = |one: &Value| {
        let [object, state, reason, message] =
            ["object", "state", "reason", "message"].map(|field| text(&one[field]));
        format!("controller {name}: {object} is {state}: {reason}: {message}")
    };
    awaited.map(line).collect()
}

/// A running operator. Dropping it kills it.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use windlass::{Controller, Observed, Plan, Reason, Refusal};
/// use windlass_testing::{TestCluster, config_map, secret};
///
/// fn decide(_: &ConfigMap, _: &Observed) -> Result<Plan, Refusal> {
///     Ok(Plan::new().apply(secret("made"), Reason::new("Needed", "it is needed")))
/// }
///
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// let cluster = TestCluster::start();
/// let operator = cluster.run(Controller::deciding(decide).owns::<Secret>());
/// cluster.create(config_map("a")).await?;
/// cluster.eventually::<Secret>("made").exists().await?;
/// operator.kill().await; // as SIGKILL does; and another is started
/// let operator = cluster.run(Controller::deciding(decide).owns::<Secret>());
/// assert!(!operator.has_ended());
/// operator.stop().await?; // as SIGTERM does
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it kills the operator"]
#[derive(Debug)]
pub struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<anyhow::Result<()>>,
    inspector: Inspector,
    time: Time,
    timeout: Duration,
}

impl Running {
    /// Runs it as soon as it may do what it has to.
    pub(crate) fn start(
        manager: Manager,
        allowed: impl Future<Output = anyhow::Result<()>> + Send + 'static,
        inspector: Inspector,
        time: Time,
        timeout: Duration,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            allowed.await?;
            let stopped = async {
                let _ = stopped.await;
            };
            Ok(manager.run_until(stopped).await?)
        });
        Self { stop: Some(stop), task, inspector, time, timeout }
    }

    /// The same operator, once it is ready: its caches are filled, and its webhooks are asked. Whoever writes before may find that
    /// nothing is validated, defaulted or converted yet.
    ///
    /// # Errors
    /// When it ends before, or is not ready in time.
    pub async fn ready(self) -> anyhow::Result<Self> {
        let clock = Clock::real();
        let began = clock.moment();
        while !self.inspector.ready().is_fine() {
            if self.has_ended() {
                self.stop().await?;
                bail!("the operator ended before it was ready");
            }
            let waited = clock.moment() - began;
            ensure!(
                waited < self.timeout,
                "not ready after {waited:?}: {}",
                self.inspector.ready().show("readyz", true)
            );
            self.time.run_clock_while(clock.sleep(Duration::from_millis(5))).await;
        }
        Ok(self)
    }

    /// Stops it gracefully, as SIGTERM does, and waits until it has ended.
    ///
    /// # Errors
    /// The error that it ended with.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.ended().await
    }

    /// Kills it, as SIGKILL does, and waits until nothing of it runs any more.
    pub async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// Waits until it ends by itself, such as when it loses its lease.
    ///
    /// # Errors
    /// What it ended with.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        let time = self.time.clone();
        time.run_clock_while(&mut self.task).await?
    }

    /// Whether it ended by itself.
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
