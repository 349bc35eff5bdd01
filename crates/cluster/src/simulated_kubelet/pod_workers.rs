//! The workers of a simulated kubelet: one queue with a timer and a fixed number of workers, however many pods there are.

use super::addresses::{Addresses, Range};
use super::behavior::PodBehavior;
use super::options::Options;
use super::stages::Stage;
use super::sync_container::ContainerEvent;
use super::sync_pod::{Ips, SyncedPod, sync_pod};
use crate::pods::node_of;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::cache::Opened;
use windlass::queue::{Backoff, Priority, Queue};
use windlass::{Key, Reason, Recorder};
use windlass_clock::Clock;
use windlass_component_helpers::status_manager;

/// The number of workers, each of which writes one pod at a time.
const WORKERS: usize = 16;

/// Syncs the pods of one node.
pub(super) struct PodWorkers {
    name: String,
    client: Client,
    clock: Clock,
    pods: Opened<Pod>,
    queue: Queue<Key>,
    addresses: Mutex<Addresses>,
    host: String,
    stages: Vec<Stage>,
    recorder: Recorder,
}

impl std::fmt::Debug for PodWorkers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PodWorkers").field("host", &self.host).finish_non_exhaustive()
    }
}

impl PodWorkers {
    pub(super) fn new(
        client: Client,
        clock: Clock,
        pods: Opened<Pod>,
        range: Range,
        options: &Options,
        recorder: Recorder,
    ) -> Arc<Self> {
        let (name, stages) = (options.name.clone(), options.stages.clone());
        let backoff = Backoff { first: Duration::from_millis(50), limit: Duration::from_secs(10) };
        let queue = Queue::new(clock.clone(), backoff);
        let addresses = Mutex::new(Addresses::new(range));
        let host = range.host();
        Arc::new(Self { name, client, clock, pods, queue, addresses, host, stages, recorder })
    }

    /// Queues a pod that was bound to this node or has changed.
    pub(super) fn update_pod(&self, key: &Key, pod: &Pod, first: bool) {
        let address = || Some((pod.metadata.uid.as_deref()?, pod.status.as_ref()?.pod_ip.as_deref()?));
        if let Some((uid, address)) = address().filter(|_| first) {
            self.addresses.lock().reserve(uid, address);
        }
        self.queue.add(key.clone(), Priority::NORMAL);
    }

    /// Releases what a deleted pod used.
    pub(super) fn remove_pod(&self, pod: &Pod) {
        self.addresses.lock().release(pod.metadata.uid.as_deref().unwrap_or_default());
    }

    pub(super) fn start(workers: &Arc<Self>, tasks: &mut JoinSet<()>) {
        for _ in 0..WORKERS {
            tasks.spawn(workers.clone().work());
        }
    }

    pub(super) fn stop(&self) {
        self.queue.shutdown();
    }

    async fn work(self: Arc<Self>) {
        while let Some(taken) = self.queue.next().await {
            let key = Key::clone(&taken);
            let Some(pod) = self.pods.get(&key).filter(|pod| node_of(pod) == Some(&self.name)) else {
                self.queue.forget(&key);
                continue;
            };
            match self.sync(&key, &pod).await {
                Ok(requeue) => {
                    self.queue.forget(&key);
                    if let Some(after) = requeue {
                        self.queue.add_at(key, self.clock.moment() + after, Priority::NORMAL);
                    }
                }
                Err(error) => {
                    tracing::debug!(pod = %key, "failed to sync a simulated pod: {error}");
                    self.queue.retry(key);
                }
            }
        }
    }

    /// Returns after how long to sync it again.
    async fn sync(&self, key: &Key, pod: &Pod) -> Result<Option<Duration>, kube::Error> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let (behavior, invalid) = PodBehavior::of(pod, &self.stages);
        let address = || self.addresses.lock().allocate(uid);
        let now = self.clock.now();
        let synced = sync_pod(pod, &behavior, &Ips { host: &self.host, allocate: &address }, now);
        if let Some(status) = &synced.status {
            if status.start_time.is_some() && pod.status.as_ref().is_none_or(|old| old.start_time.is_none()) {
                for value in &invalid {
                    self.recorder.tell(pod, true, Reason::new("InvalidSimulation", value.0.clone()));
                }
            }
            if !status_manager::patch_status(&self.client, &self.pods, key, pod, status).await? {
                return Ok(None);
            }
        }
        self.record(pod, &synced);
        if synced.delete {
            status_manager::delete_pod(&self.client, &self.pods, key, pod).await?;
        }
        Ok(synced.requeue_at.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default()))
    }

    fn record(&self, pod: &Pod, synced: &SyncedPod) {
        for event in &synced.events {
            let (warning, reason, message) = match event {
                ContainerEvent::Started => (false, "Started", "Container started".to_owned()),
                ContainerEvent::BackOff(message) => (true, "BackOff", message.clone()),
                ContainerEvent::ImagePullFailed(message) => (true, "Failed", message.clone()),
            };
            self.recorder.tell(pod, warning, Reason::new(reason, message));
        }
        if synced.killing {
            for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
                let message = format!("Stopping container {}", container.name);
                self.recorder.tell(pod, false, Reason::new("Killing", message));
            }
        }
    }
}
