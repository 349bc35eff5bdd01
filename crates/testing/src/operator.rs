//! An operator that runs in a test: stopped, killed, or gone with its handle.

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass::{Controller, Manager, Object};
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
    task: JoinHandle<windlass::Result<()>>,
    time: Time,
}

impl Running {
    pub(crate) fn start(manager: Manager, time: Time) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(manager.run_until(async {
            let _ = stopped.await;
        }));
        Self { stop: Some(stop), task, time }
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
        Ok(time.run_clock_while(&mut self.task).await??)
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
