//! A cluster that runs: the controllers at work on an embedded API.

use crate::{Settings, controllers};
use kube::Client;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use windlass::Manager;
use windlass_apiserver::{Api, Identity};

/// Who the controllers are to the API.
const CONTROLLERS: &str = "system:kube-controller-manager";

/// The controllers of a cluster at work on an embedded API. Dropping it ends them where they are.
pub struct Cluster {
    stop: Arc<Notify>,
    task: Mutex<Option<JoinHandle<windlass::Result<()>>>>,
}

impl Cluster {
    /// Starts them.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(api: &Api, settings: Settings) -> Self {
        let manager = Manager::new(client(api, CONTROLLERS), api.clock().clone());
        let manager = controllers(manager, &settings);
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let ended = manager.run_until(async move { stopped.notified().await }).await;
            if let Err(error) = &ended {
                tracing::error!("the controllers of the cluster ended: {error}");
            }
            ended
        });
        Self { stop, task: Mutex::new(Some(task)) }
    }

    /// Lets them finish what they are at, and waits until nothing of them runs.
    ///
    /// # Errors
    /// What they ended with.
    pub async fn stop(&self) -> windlass::Result<()> {
        self.stop.notify_one();
        let task = self.task.lock().take();
        match task {
            Some(task) => task.await.unwrap_or(Ok(())),
            None => Ok(()),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// A client in process, for a part of the cluster: it may do everything.
fn client(api: &Api, user: &str) -> Client {
    let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
    let identity = Identity { user: user.to_owned(), groups, ..Identity::default() };
    Client::new(api.service(identity), "default")
}
