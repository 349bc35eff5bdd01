//! The one task that looks after a pod: observe, decide, act, report; then wait for news or for the time to look again.

mod admitting;
mod news;
mod observing;

pub(super) use news::News;

use super::adopt;
use super::decide::{Decision, Step, decide};
use super::known::{Known, Run, Sandbox};
use super::probing::Probing;
use super::site::Site;
use super::tokens::Tokens;
use super::watched::Watched;
use super::{ephemeral, objects, report};
use crate::images::Image as Found;
use crate::shim::Shim;
use crate::volumes::mounts::Ready;
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

/// So many steps are taken before a pod is reported and looked at anew.
const ROUNDS: usize = 32;
/// News that wait to be heard: probes that find the queue full wait.
const NEWS: usize = 64;
/// After a write that failed, so long until the next try.
const WRITE_AGAIN: Duration = Duration::from_millis(500);
/// A pod that is held by others, or whose shim went silent, is looked at so often.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The task of one pod.
pub(super) struct Worker {
    pub(super) site: Arc<Site>,
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) folder: PathBuf,
    pub(super) known: Known,
    pub(super) shim: Option<Shim>,
    pub(super) images: BTreeMap<String, Found>,
    pub(super) tries: BTreeMap<String, u32>,
    pub(super) volumes: BTreeMap<String, Ready>,
    pub(super) memory: Vec<(PathBuf, Option<u64>)>,
    pub(super) watched: Option<Watched>,
    pub(super) tokens: Tokens,
    pub(super) probing: Probing,
    pub(super) changed: Arc<Notify>,
    pub(super) objects_changed: Arc<Notify>,
    pub(super) tell: mpsc::Sender<News>,
    heard: mpsc::Receiver<News>,
    /// Hooks that run: they end with the pod.
    pub(super) tasks: JoinSet<()>,
    watching: Option<AbortHandle>,
    last_pod: Option<Arc<Pod>>,
}

impl Worker {
    pub(super) fn new(site: Arc<Site>, key: Key, uid: String, changed: Arc<Notify>) -> Self {
        let (tell, heard) = mpsc::channel(NEWS);
        let known = Known { host_ip: site.host_ip.clone(), ..Known::default() };
        Self {
            folder: site.folder(&uid),
            site,
            key,
            uid,
            known,
            shim: None,
            images: BTreeMap::new(),
            tries: BTreeMap::new(),
            volumes: BTreeMap::new(),
            memory: Vec::new(),
            watched: None,
            tokens: Tokens::default(),
            probing: Probing::default(),
            changed,
            objects_changed: Arc::new(Notify::new()),
            tell,
            heard,
            tasks: JoinSet::new(),
            watching: None,
            last_pod: None,
        }
    }

    /// The pod as the API has it; none where it is gone or another has its name.
    fn pod(&self) -> Option<Arc<Pod>> {
        self.site.pods.get(&self.key).filter(|pod| pod.metadata.uid.as_deref() == Some(self.uid.as_str()))
    }

    /// Looks after the pod until it is gone, and clears what is left of it.
    pub(super) async fn run(mut self) {
        if let Some(pod) = self.pod() {
            adopt::adopt(&mut self, &pod).await;
            self.admit(&pod).await;
        }
        while let Some(pod) = self.pod() {
            self.look_at_objects(&pod);
            let told_else = |last: &Arc<Pod>| {
                (&last.metadata.labels, &last.metadata.annotations)
                    != (&pod.metadata.labels, &pod.metadata.annotations)
            };
            if self.last_pod.as_ref().is_some_and(told_else) {
                // Its volumes may tell of them.
                self.refresh_volumes().await;
            }
            let wake = self.turn(&pod).await;
            self.last_pod = Some(pod);
            if self.pod().is_none() {
                break;
            }
            self.wait(wake).await;
        }
        self.clear().await;
    }

    /// Watches what the pod refers to. That becomes more when a container is added to it.
    fn look_at_objects(&mut self, pod: &Pod) {
        let names = objects::names(pod);
        if self.watched.as_ref().is_none_or(|watched| *watched.names() != names) {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            self.watched = Some(Watched::open(&self.site.cache, namespace, names, &self.objects_changed));
        }
    }

    /// Waits until something happens, or it is time.
    async fn wait(&mut self, wake: Option<Timestamp>) {
        let clock = self.site.clock.clone();
        let now = clock.now();
        let wake = wake.into_iter().chain(self.tokens.due()).min();
        let after = wake.map(|wake| Duration::try_from(wake.duration_since(now)).unwrap_or_default());
        let (changed, objects_changed) = (self.changed.clone(), self.objects_changed.clone());
        tokio::select! {
            () = changed.notified() => {}
            () = objects_changed.notified() => {
                // Volumes follow, and what waits for an object need not wait any longer.
                self.refresh_volumes().await;
                self.known.runs.values_mut().for_each(|run| run.fault = None);
            }
            Some(news) = self.heard.recv() => self.hear(news),
            () = async { match after { Some(after) => clock.sleep(after).await, None => std::future::pending().await } } => {
                if self.tokens.due().is_some_and(|due| due <= clock.now()) {
                    self.refresh_volumes().await;
                }
            }
        }
        while let Ok(news) = self.heard.try_recv() {
            self.hear(news);
        }
    }

    /// One turn: everything that can be done now, then the report. Answers when to look again.
    async fn turn(&mut self, pod: &Arc<Pod>) -> Option<Timestamp> {
        let mut remove = false;
        for _ in 0..ROUNDS {
            self.observe(pod).await;
            if self.known.evicted.is_none() {
                self.known.evicted = self.site.evicted.lock().get(&self.uid).cloned();
            }
            let decision = decide(pod, &self.known, self.site.clock.now());
            remove = decision.steps.contains(&Step::Remove);
            let steps: Vec<Step> =
                decision.steps.iter().filter(|step| **step != Step::Remove).cloned().collect();
            if steps.is_empty() {
                return self.report(pod, decision, remove).await;
            }
            for step in steps {
                self.carry_out(pod, step).await;
            }
        }
        let decision = decide(pod, &self.known, self.site.clock.now());
        self.report(pod, decision, remove).await;
        self.in_a_while(Duration::from_millis(100))
    }

    fn in_a_while(&self, after: Duration) -> Option<Timestamp> {
        self.site.clock.now().checked_add(after).ok()
    }

    async fn report(&mut self, pod: &Arc<Pod>, decision: Decision, remove: bool) -> Option<Timestamp> {
        let site = self.site.clone();
        if let Some(status) = &decision.status {
            match report::status(&site.client, &site.pods, &self.key, pod, status).await {
                Ok(true) => {}
                Ok(false) => return self.in_a_while(LOOK_AGAIN),
                Err(error) => {
                    tracing::debug!(pod = %self.key, "a pod's status was not reported: {error}");
                    return self.in_a_while(WRITE_AGAIN);
                }
            }
        }
        for told in decision.told {
            site.recorder.tell(&**pod, told.warning, Reason::new(told.reason, told.message));
        }
        let forced = pod.metadata.deletion_grace_period_seconds == Some(0);
        if remove && !(forced && decision.status.is_none()) {
            if let Err(error) = report::remove(&site.client, &site.pods, &self.key, pod).await {
                tracing::debug!(pod = %self.key, "a pod was not taken away: {error}");
                return self.in_a_while(WRITE_AGAIN);
            }
            return self.in_a_while(LOOK_AGAIN);
        }
        decision.wake
    }

    /// The shim is dead, and all that was in the pod.
    async fn lose(&mut self, pod: &Pod) {
        tracing::info!(pod = %self.key, "the pod's shim is gone, and all that ran in the pod");
        self.shim = None;
        self.known.sandbox = Sandbox::Absent;
        self.probing.stop();
        let left = crate::shim::left_behind(&self.folder).await;
        let states = adopt::dead(left, self.site.clock.now());
        self.note(pod, states);
        // What was not written down is dead all the same.
        let now = self.site.clock.now();
        for run in self.known.runs.values_mut() {
            run.states = adopt::dead(std::mem::take(&mut run.states), now);
        }
        self.tell_of_loss(pod);
    }

    pub(super) fn tell_of_loss(&self, pod: &Pod) {
        let message = "Pod sandbox changed, it will be killed and re-created.";
        self.site.recorder.tell(pod, false, Reason::new("SandboxChanged", message));
    }

    pub(super) fn run_of(&mut self, name: &str) -> &mut Run {
        self.known.runs.entry(name.to_owned()).or_default()
    }

    /// The pod is gone from the API: nothing of it is left here either.
    async fn clear(mut self) {
        self.probing.stop();
        self.tasks.shutdown().await;
        self.site.evicted.lock().remove(&self.uid);
        self.site.admitted.lock().remove(&self.uid);
        let pod = self.last_pod.clone();
        adopt::clear(&self.site, &self.uid, pod.as_deref()).await;
    }
}

/// A container of a pod, of whatever kind.
pub(super) fn container<'p>(pod: &'p Pod, name: &str) -> Option<Cow<'p, Container>> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let usual = all.find(|container| container.name == name).map(Cow::Borrowed);
    usual.or_else(|| Some(Cow::Owned(ephemeral::container(ephemeral::named(pod, name)?))))
}
