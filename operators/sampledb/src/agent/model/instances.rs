//! Agents come and go with the pods of a database.

use super::agent::{Agent, Steps};
use super::servers::Servers;
use crate::agent::kubernetes::Kubernetes;
use crate::children::DATABASE_LABEL;
use crate::settings::Settings;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use windlass::clock::{Clock, Moment};

/// How often pods are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long a container that ended takes to start again.
const RESTART: Duration = Duration::from_secs(1);

struct Running {
    pod_uid: String,
    end: watch::Sender<bool>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Inner {
    agents: BTreeMap<String, Running>,
    /// Instances whose containers start again by then.
    crashed: BTreeMap<String, Moment>,
    runs: u32,
}

/// The instances of a database whose servers are a model.
#[derive(Clone)]
pub(super) struct Instances {
    pub(super) servers: Servers,
    pub(super) steps: Steps,
    client: Client,
    clock: Clock,
    database: String,
    inner: Arc<Mutex<Inner>>,
}

impl Instances {
    pub(super) fn of(database: &str, client: Client, clock: Clock) -> Self {
        let database = database.to_owned();
        Self {
            servers: Servers::default(),
            steps: Steps::default(),
            client,
            clock,
            database,
            inner: Arc::default(),
        }
    }

    /// Runs agents in the pods that there are, until this is dropped.
    pub(super) async fn run(self) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let of = ListParams::default().labels(&format!("{DATABASE_LABEL}={}", self.database));
        loop {
            if let Ok(pods) = pods.list(&of).await {
                self.follow(&pods.items);
            }
            self.clock.sleep(LOOK).await;
        }
    }

    fn follow(&self, pods: &[Pod]) {
        let mut inner = self.inner.lock();
        let now = self.clock.moment();
        let runs = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            pod.metadata.deletion_timestamp.is_none() && phase == Some("Running")
        };
        let there: BTreeMap<String, String> =
            pods.iter().filter(runs).map(|pod| (pod.name_any(), pod.uid().unwrap_or_default())).collect();
        inner.agents.retain(|name, agent| {
            let stays = there.get(name) == Some(&agent.pod_uid);
            if !stays {
                // It ends its server and gives the Lease back, as after SIGTERM.
                agent.end.send_replace(true);
            }
            stays && !agent.task.is_finished()
        });
        inner.crashed.retain(|_, until| *until > now);
        for (name, pod_uid) in there {
            if inner.agents.contains_key(&name) || inner.crashed.contains_key(&name) {
                continue;
            }
            inner.runs += 1;
            let run = format!("run-{}", inner.runs);
            inner.agents.insert(name.clone(), self.start(&name, pod_uid, run));
        }
    }

    fn start(&self, instance: &str, pod_uid: String, run: String) -> Running {
        let settings = Settings {
            database: self.database.clone(),
            namespace: "default".to_owned(),
            instance: instance.to_owned(),
            pod_uid: pod_uid.clone(),
            service: String::new(),
            create: String::new(),
            owner: String::new(),
            volume: PathBuf::new(),
            sockets: PathBuf::new(),
            credentials: PathBuf::new(),
            tls: PathBuf::new(),
        };
        let (end, ended) = watch::channel(false);
        let kubernetes = Kubernetes::new(self.client.clone(), &settings, self.clock.clone());
        let agent = Agent::new(
            settings,
            kubernetes,
            self.clock.clone(),
            self.servers.clone(),
            run,
            self.steps.clone(),
        );
        Running { pod_uid, end, task: tokio::spawn(agent.work(ended)) }
    }

    /// Kills the server of an instance and its agent. Nobody reports it; its container starts again.
    pub(super) fn crash(&self, instance: &str) {
        let mut inner = self.inner.lock();
        if let Some(agent) = inner.agents.remove(instance) {
            agent.task.abort();
        }
        inner.crashed.insert(instance.to_owned(), self.clock.moment() + RESTART);
        self.servers.with(instance, |machine| machine.server = None);
    }

    /// Ends all agents.
    pub(super) fn end(&self) {
        for (_, agent) in std::mem::take(&mut self.inner.lock().agents) {
            agent.task.abort();
        }
    }
}
