//! The node at work on its pods: one watch, one queue with its timer, and a few workers, however many pods there are.

use super::addresses::{Addresses, Range};
use super::containers::Told;
use super::decide::{Place, Step, decide};
use super::register::patch;
use super::script::Script;
use super::stages::Stage;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::cache::{Opened, Stamp};
use windlass::queue::{Backoff, Priority, Queue};
use windlass::{Key, Reason, Recorder};
use windlass_clock::Clock;

/// So many writes are under way at once.
const WORKERS: usize = 16;

/// What works on the pods of one node.
pub(super) struct Kubelet {
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
        stages: Vec<Stage>,
        recorder: Recorder,
    ) -> Arc<Self> {
        let backoff = Backoff { first: Duration::from_millis(50), limit: Duration::from_secs(10) };
        let queue = Queue::new(clock.clone(), backoff);
        let addresses = Mutex::new(Addresses::new(range));
        let kubelet = Self { client, clock, pods, queue, addresses, host: range.host(), stages, recorder };
        let kubelet = Arc::new(kubelet);
        // Weak: the store holds its listeners.
        let weak = Arc::downgrade(&kubelet);
        kubelet.pods.listen(Arc::new(move |changed| {
            let Some(kubelet) = weak.upgrade() else { return };
            let pod =
                |object: &Arc<dyn windlass::cache::AnyObject>| object.as_any().downcast_ref::<Pod>().cloned();
            match (&changed.old, &changed.new) {
                (old, Some(new)) => {
                    if old.is_none()
                        && let Some((uid, ip)) =
                            pod(new).and_then(|pod| Some((pod.metadata.uid?, pod.status?.pod_ip?)))
                    {
                        kubelet.addresses.lock().keep(&uid, &ip);
                    }
                    kubelet.queue.add(changed.key.clone(), Priority::NORMAL);
                }
                (Some(old), None) => {
                    kubelet.addresses.lock().release(old.meta().uid.as_deref().unwrap_or_default());
                }
                (None, None) => {}
            }
        }));
        kubelet
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
            let Some(pod) = self.pods.get(&key) else {
                self.queue.forget(&key);
                continue;
            };
            match self.turn(&key, &pod).await {
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
    async fn turn(&self, key: &Key, pod: &Pod) -> Result<Option<Duration>, kube::Error> {
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
        match self.client.request::<Value>(request.map_err(kube::Error::HttpError)?).await {
            Ok(answer) => {
                if let Err(error) = self.pods.wrote(&answer, None) {
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
        match self.client.request::<Value>(request.map_err(kube::Error::HttpError)?).await {
            Ok(answer) => {
                let held = answer.pointer("/metadata/finalizers").and_then(Value::as_array);
                if held.is_some_and(|held| !held.is_empty()) {
                    let _ = self.pods.wrote(&answer, None);
                } else if let Some(last) = stamp(&answer).or_else(|| self.pods.stamp(key)) {
                    self.pods.wrote_gone(key, &last, None);
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

fn stamp(answer: &Value) -> Option<Stamp> {
    let meta = answer.get("metadata")?;
    let version = meta.get("resourceVersion")?.as_str()?.parse().ok()?;
    Some(Stamp { uid: meta.get("uid")?.as_str()?.into(), version })
}

/// Lets go of what a node never looks at: with thousands of pods, it is most of what they weigh.
pub(super) fn lighten(pod: &mut Pod) {
    pod.metadata.managed_fields = None;
    let Some(spec) = &mut pod.spec else { return };
    spec.volumes = None;
    spec.affinity = None;
    spec.tolerations = None;
    spec.topology_spread_constraints = None;
    spec.security_context = None;
    let light = |container: &mut Container| {
        *container = Container {
            name: std::mem::take(&mut container.name),
            image: container.image.take(),
            restart_policy: container.restart_policy.take(),
            ..Container::default()
        };
    };
    spec.containers.iter_mut().for_each(light);
    spec.init_containers.iter_mut().flatten().for_each(light);
}
