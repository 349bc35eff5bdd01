//! The garbage collector and the namespace controller alone, beside an API that has no other controllers.

use crate::{garbagecollector, identities, namespace};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use windlass::Manager;
use windlass_apiserver::Api;

/// The garbage collector and the namespace controller, running on an embedded API. Dropping it aborts them.
#[derive(Debug)]
pub struct GarbageCollection {
    stop: Arc<Notify>,
    task: JoinHandle<()>,
}

impl GarbageCollection {
    /// Starts them.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(api: &Api) -> Self {
        let manager = Manager::new(identities::controller_manager(api), api.clock().clone())
            .clients(identities::controllers(api));
        let manager = namespace::add(garbagecollector::add(manager));
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = manager.run_until(async move { stopped.notified().await }).await {
                tracing::error!("the garbage collector ended: {error}");
            }
        });
        Self { stop, task }
    }

    /// Stops them gracefully, and waits until nothing runs any more.
    pub async fn stop(mut self) {
        self.stop.notify_one();
        // If it panicked there is nothing to wait for.
        let _ = (&mut self.task).await;
    }
}

impl Drop for GarbageCollection {
    fn drop(&mut self) {
        self.task.abort();
    }
}
