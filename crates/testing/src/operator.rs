//! An operator that runs in a test: stopped, killed, or gone with its handle.

use crate::time::Time;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass::{Controller, Manager, Object};

/// What [`TestCluster::run`](crate::TestCluster::run) runs: a controller, or a function that adds several to a manager.
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

/// An operator at work. Dropping it kills it.
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

    /// Asks it to end, as SIGTERM does, and waits until it has.
    ///
    /// # Errors
    /// What it ended with.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.ended().await
    }

    /// Ends it where it is, as SIGKILL does, and waits until nothing of it runs any more.
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
        Ok(time.flow(&mut self.task).await??)
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
