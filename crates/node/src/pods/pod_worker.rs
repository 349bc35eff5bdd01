//! The worker of one pod: observe, decide, act, report; then wait for a change or for the next sync.

mod admission;
mod observe;
mod task_results;

pub(super) use task_results::TaskResult;

use super::adopt;
use super::decide::{Decision, Step, decide};
use super::node_context::NodeContext;
use super::pod_state::{ContainerRecord, PodState, Sandbox};
use super::probe_manager::ProbeManager;
use crate::images::Image as Found;
use crate::references::service_account_token::Tokens;
use crate::references::watch::WatchedObjects;
use crate::references::{ephemeral_containers, objects};
use crate::shim::Shim;
use crate::volumes::mounts::MountSource;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use windlass::{Key, Reason};
use windlass_component_helpers::status_manager;

/// The number of rounds of steps before the status is reported.
const MAX_ROUNDS: usize = 32;
/// The capacity of the queue of task results: probes that find it full wait.
const RESULTS: usize = 64;
/// The wait after a failed write.
const WRITE_RETRY: Duration = Duration::from_millis(500);
/// How often a pod that is kept by finalizers is synced.
const RESYNC: Duration = Duration::from_secs(30);

/// The worker of one pod.
pub(super) struct PodWorker {
    pub(super) context: Arc<NodeContext>,
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) folder: PathBuf,
    pub(super) state: PodState,
    pub(super) shim: Option<Shim>,
    pub(super) images: BTreeMap<String, Found>,
    pub(super) tries: BTreeMap<String, u32>,
    pub(super) volumes: BTreeMap<String, MountSource>,
    pub(super) memory: Vec<(PathBuf, Option<u64>)>,
    pub(super) watched: Option<WatchedObjects>,
    pub(super) tokens: Tokens,
    pub(super) probes: ProbeManager,
    pub(super) changed: Arc<Notify>,
    pub(super) objects_changed: Arc<Notify>,
    pub(super) results: mpsc::Sender<TaskResult>,
    received: mpsc::Receiver<TaskResult>,
    /// Running hooks: they end with the pod.
    pub(super) tasks: JoinSet<()>,
    watching: Option<AbortHandle>,
    last_pod: Option<Arc<Pod>>,
}

impl PodWorker {
    pub(super) fn new(context: Arc<NodeContext>, key: Key, uid: String, changed: Arc<Notify>) -> Self {
        let (results, received) = mpsc::channel(RESULTS);
        let state = PodState { host_ip: context.host_ip.clone(), ..PodState::default() };
        Self {
            folder: context.pod_dir(&uid),
            context,
            key,
            uid,
            state,
            shim: None,
            images: BTreeMap::new(),
            tries: BTreeMap::new(),
            volumes: BTreeMap::new(),
            memory: Vec::new(),
            watched: None,
            tokens: Tokens::default(),
            probes: ProbeManager::default(),
            changed,
            objects_changed: Arc::new(Notify::new()),
            results,
            received,
            tasks: JoinSet::new(),
            watching: None,
            last_pod: None,
        }
    }

    /// The pod in the cache; `None` if it was deleted or another pod has its name.
    fn pod(&self) -> Option<Arc<Pod>> {
        self.context.pods.get(&self.key).filter(|pod| pod.metadata.uid.as_deref() == Some(self.uid.as_str()))
    }

    /// Runs until the pod is deleted, and removes what is left of it.
    pub(super) async fn run(mut self) {
        if let Some(pod) = self.pod() {
            adopt::adopt(&mut self, &pod).await;
            self.admit(&pod).await;
        }
        while let Some(pod) = self.pod() {
            self.watch_objects(&pod);
            let metadata_changed = |last: &Arc<Pod>| {
                (&last.metadata.labels, &last.metadata.annotations)
                    != (&pod.metadata.labels, &pod.metadata.annotations)
            };
            if self.last_pod.as_ref().is_some_and(metadata_changed) {
                // Downward API volumes may contain them.
                self.refresh_volumes().await;
            }
            let requeue_at = self.sync(&pod).await;
            self.last_pod = Some(pod);
            if self.pod().is_none() {
                break;
            }
            self.wait(requeue_at).await;
        }
        self.remove().await;
    }

    /// Watches the objects that the pod refers to. An ephemeral container may add some.
    fn watch_objects(&mut self, pod: &Pod) {
        let names = objects::names(pod);
        if self.watched.as_ref().is_none_or(|watched| *watched.names() != names) {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            self.watched =
                Some(WatchedObjects::open(&self.context.cache, namespace, names, &self.objects_changed));
        }
    }

    /// Waits for a change, or until this time.
    async fn wait(&mut self, requeue_at: Option<Timestamp>) {
        let clock = self.context.clock.clone();
        let now = clock.now();
        let at = requeue_at.into_iter().chain(self.tokens.due()).min();
        let after = at.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
        let (changed, objects_changed) = (self.changed.clone(), self.objects_changed.clone());
        tokio::select! {
            () = changed.notified() => {}
            () = objects_changed.notified() => {
                // Volumes are updated, and containers that waited for an object are retried.
                self.refresh_volumes().await;
                self.state.containers.values_mut().for_each(|record| record.start_error = None);
            }
            Some(result) = self.received.recv() => self.handle(result),
            () = async { match after { Some(after) => clock.sleep(after).await, None => std::future::pending().await } } => {
                if self.tokens.due().is_some_and(|due| due <= clock.now()) {
                    self.refresh_volumes().await;
                }
            }
        }
        while let Ok(result) = self.received.try_recv() {
            self.handle(result);
        }
    }

    /// Takes all steps that can be taken now, then reports the status. Returns when to sync again.
    async fn sync(&mut self, pod: &Arc<Pod>) -> Option<Timestamp> {
        let mut delete = false;
        for _ in 0..MAX_ROUNDS {
            self.observe(pod).await;
            if self.state.eviction.is_none() {
                self.state.eviction = self.context.evicted.lock().get(&self.uid).cloned();
            }
            let decision = decide(pod, &self.state, self.context.clock.now());
            delete = decision.steps.contains(&Step::DeletePod);
            let steps: Vec<Step> =
                decision.steps.iter().filter(|step| **step != Step::DeletePod).cloned().collect();
            if steps.is_empty() {
                return self.report(pod, decision, delete).await;
            }
            for step in steps {
                self.act(pod, step).await;
            }
        }
        let decision = decide(pod, &self.state, self.context.clock.now());
        self.report(pod, decision, delete).await;
        self.after(Duration::from_millis(100))
    }

    fn after(&self, after: Duration) -> Option<Timestamp> {
        self.context.clock.now().checked_add(after).ok()
    }

    async fn report(&mut self, pod: &Arc<Pod>, decision: Decision, delete: bool) -> Option<Timestamp> {
        let context = self.context.clone();
        if let Some(status) = &decision.status {
            match status_manager::patch_status(&context.client, &context.pods, &self.key, pod, status).await {
                Ok(true) => {}
                Ok(false) => return self.after(RESYNC),
                Err(error) => {
                    tracing::debug!(pod = %self.key, "failed to patch the pod's status: {error}");
                    return self.after(WRITE_RETRY);
                }
            }
        }
        for event in decision.events {
            context.recorder.tell(&**pod, event.warning, Reason::new(event.reason, event.message));
        }
        let forced = pod.metadata.deletion_grace_period_seconds == Some(0);
        if delete && !(forced && decision.status.is_none()) {
            if let Err(error) =
                status_manager::delete_pod(&context.client, &context.pods, &self.key, pod).await
            {
                tracing::debug!(pod = %self.key, "failed to delete the pod: {error}");
                return self.after(WRITE_RETRY);
            }
            return self.after(RESYNC);
        }
        decision.requeue_at
    }

    /// The shim died, and with it everything in the pod.
    async fn sandbox_lost(&mut self, pod: &Pod) {
        tracing::info!(pod = %self.key, "the pod's shim died, and with it everything in the pod");
        self.shim = None;
        self.state.sandbox = Sandbox::Absent;
        self.probes.stop();
        let left = crate::shim::container_states(&self.folder).await;
        let states = adopt::killed(left, self.context.clock.now());
        self.update_states(pod, states);
        // What was not written down is dead all the same.
        let now = self.context.clock.now();
        for record in self.state.containers.values_mut() {
            record.states = adopt::killed(std::mem::take(&mut record.states), now);
        }
        self.record_sandbox_changed(pod);
    }

    pub(super) fn record_sandbox_changed(&self, pod: &Pod) {
        let message = "Pod sandbox changed, it will be killed and re-created.";
        self.context.recorder.tell(pod, false, Reason::new("SandboxChanged", message));
    }

    pub(super) fn container_mut(&mut self, name: &str) -> &mut ContainerRecord {
        self.state.containers.entry(name.to_owned()).or_default()
    }

    /// The pod was deleted from the API: removes what is left of it here.
    async fn remove(mut self) {
        self.probes.stop();
        self.tasks.shutdown().await;
        self.context.evicted.lock().remove(&self.uid);
        self.context.admitted.lock().remove(&self.uid);
        let pod = self.last_pod.clone();
        adopt::remove_pod(&self.context, &self.uid, pod.as_deref()).await;
    }
}

/// A container of a pod, init and ephemeral ones included.
pub(super) fn container<'p>(pod: &'p Pod, name: &str) -> Option<Cow<'p, Container>> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let usual = all.find(|container| container.name == name).map(Cow::Borrowed);
    usual.or_else(|| {
        Some(Cow::Owned(ephemeral_containers::container(ephemeral_containers::named(pod, name)?)))
    })
}
