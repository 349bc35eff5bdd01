//! The node at work on its pods: one watch, one queue with its timer, and a few workers, however many pods there are.

use super::addresses::{Addresses, Range};
use super::containers::Told;
use super::decide::{Place, Step, decide};
use super::options::Options;
use super::register::patch;
use super::script::Script;
use super::stages::Stage;
use crate::pods::node_of;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::cache::{ObjectVersion, Opened};
use windlass::queue::{Backoff, Priority, Queue};
use windlass::{Key, Reason, Recorder};
use windlass_clock::Clock;

/// So many writes are under way at once.
const WORKERS: usize = 16;

/// What works on the pods of one node.
pub(super) struct Kubelet {
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

impl std::fmt::Debug for Kubelet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubelet").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Kubelet {
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
        let kubelet = Self { name, client, clock, pods, queue, addresses, host, stages, recorder };
        Arc::new(kubelet)
    }

    /// It has this pod, for the first time or in another form.
    pub(super) fn given(&self, key: &Key, pod: &Pod, first: bool) {
        let address = || Some((pod.metadata.uid.as_deref()?, pod.status.as_ref()?.pod_ip.as_deref()?));
        if let Some((uid, address)) = address().filter(|_| first) {
            self.addresses.lock().keep(uid, address);
        }
        self.queue.add(key.clone(), Priority::NORMAL);
    }

    /// It has this pod no more.
    pub(super) fn gone(&self, pod: &Pod) {
        self.addresses.lock().release(pod.metadata.uid.as_deref().unwrap_or_default());
    }

    pub(super) fn start(kubelet: &Arc<Self>, tasks: &mut JoinSet<()>) {
        for _ in 0..WORKERS {
            tasks.spawn(kubelet.clone().work());
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
            match self.reconcile(&key, &pod).await {
                Ok(wake) => {
                    self.queue.forget(&key);
                    if let Some(after) = wake {
                        self.queue.add_at(key, self.clock.moment() + after, Priority::NORMAL);
                    }
                }
                Err(error) => {
                    tracing::debug!(pod = %key, "what became of a simulated pod was not reported: {error}");
                    self.queue.retry(key);
                }
            }
        }
    }

    /// Answers after how long to look again.
    async fn reconcile(&self, key: &Key, pod: &Pod) -> Result<Option<Duration>, kube::Error> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let (script, misread) = Script::of(pod, &self.stages);
        let address = || self.addresses.lock().of(uid);
        let now = self.clock.now();
        let step = decide(pod, &script, &Place { host: &self.host, address: &address }, now);
        if let Some(status) = &step.status {
            if status.start_time.is_some() && pod.status.as_ref().is_none_or(|old| old.start_time.is_none()) {
                for complaint in &misread {
                    self.recorder.tell(pod, true, Reason::new("InvalidSimulation", complaint.0.clone()));
                }
            }
            if !self.report(key, pod, &patch(pod.metadata.uid.as_deref(), status)).await? {
                return Ok(None);
            }
        }
        self.tell(pod, &step);
        if step.gone {
            self.remove(key, pod).await?;
        }
        Ok(step.wake.map(|wake| Duration::try_from(wake.duration_since(now)).unwrap_or_default()))
    }

    /// Writes a pod's status. Answers whether it is still the same pod.
    async fn report(&self, key: &Key, pod: &Pod, patch: &Value) -> Result<bool, kube::Error> {
        let path = format!("{}/status?fieldManager=kubelet", path(key));
        let request = http::Request::patch(path)
            .header(http::header::CONTENT_TYPE, "application/strategic-merge-patch+json")
            .body(patch.to_string().into_bytes());
        match self.client.request_text(request.map_err(kube::Error::HttpError)?).await {
            Ok(answer) => {
                if let Err(error) = self.pods.wrote_text(answer.as_bytes(), None) {
                    tracing::debug!(pod = %key, "a pod's status was answered with something else: {error}");
                }
                Ok(true)
            }
            // Gone, or another of its name: the watch tells.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                tracing::trace!(pod = %key, uid = ?pod.metadata.uid, "it is gone");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the pod away: nothing of it runs any more.
    async fn remove(&self, key: &Key, pod: &Pod) -> Result<(), kube::Error> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "gracePeriodSeconds": 0, "preconditions": { "uid": pod.metadata.uid },
        });
        let request = http::Request::delete(path(key))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(options.to_string().into_bytes());
        match self.client.request_text(request.map_err(kube::Error::HttpError)?).await {
            Ok(answer) => {
                let Last { metadata } = serde_json::from_str(&answer).unwrap_or_default();
                if metadata.finalizers.is_empty() {
                    if let Some(last) = metadata.stamp().or_else(|| self.pods.stamp(key)) {
                        self.pods.wrote_gone(key, &last, None);
                    }
                } else {
                    let _ = self.pods.wrote_text(answer.as_bytes(), None);
                }
                Ok(())
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn tell(&self, pod: &Pod, step: &Step) {
        for told in &step.told {
            let (warning, reason, message) = match told {
                Told::Started => (false, "Started", "Container started".to_owned()),
                Told::BackOff(message) => (true, "BackOff", message.clone()),
                Told::NoImage(message) => (true, "Failed", message.clone()),
            };
            self.recorder.tell(pod, warning, Reason::new(reason, message));
        }
        if step.stops {
            for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
                let message = format!("Stopping container {}", container.name);
                self.recorder.tell(pod, false, Reason::new("Killing", message));
            }
        }
    }
}

fn path(key: &Key) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", key.namespace().unwrap_or_default(), key.name())
}

/// What counts of the answer to a deletion.
#[derive(Default, Deserialize)]
struct Last {
    #[serde(default)]
    metadata: LastMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LastMeta {
    uid: String,
    resource_version: String,
    finalizers: Vec<String>,
}

impl LastMeta {
    fn stamp(&self) -> Option<ObjectVersion> {
        let version = self.resource_version.parse().ok()?;
        (!self.uid.is_empty()).then(|| ObjectVersion { uid: self.uid.as_str().into(), version })
    }
}
