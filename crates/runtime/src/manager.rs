//! Runs controllers on one cluster: caches first, then workers, until told to stop; and stops them cleanly.

use crate::act::Schemas;
use crate::cache::Cache;
use crate::controller::{ConfigError, Controller, Ground, Runnable, Started};
use crate::election::{Candidate, Election, Lost};
use crate::events::Desk;
use crate::kind::{Kind, Object};
use kube::Client;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass_clock::Clock;

/// The result of a manager.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a manager did not run, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No cluster is configured: neither a kubeconfig nor the environment of a pod.
    #[error("no cluster to talk to")]
    NoCluster(#[source] Box<kube::Error>),
    /// A controller cannot be run as described.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Some kinds could not be listed in time: they do not exist, or must not be read.
    #[error("not listed after {after:?}: {}", kinds.iter().map(|kind| format!("{} ({})", kind.kind, kind.api_version())).collect::<Vec<_>>().join(", "))]
    NotSynced {
        /// Those kinds.
        kinds: Vec<Kind>,
        /// How long was waited.
        after: Duration,
    },
    /// A watch broke down in a way that cannot happen; the process should start anew.
    #[error("a watch broke down; nothing more can be seen from here")]
    Broken,
    /// Another replica leads now, or may; the process should start anew and stand by.
    #[error("no longer leading")]
    NotLeading(#[source] Lost),
    /// Turns did not end in time when the manager was stopped, and were cut off.
    #[error("stopped, but some turns did not end within {within:?} and were cut off")]
    CutOff {
        /// How long was waited.
        within: Duration,
    },
}

/// Where the client comes from.
enum Connection {
    Given(Client),
    Environment,
}

/// Runs controllers on one cluster.
#[must_use = "a manager does nothing until it is run"]
pub struct Manager {
    connection: Connection,
    clock: Clock,
    cluster: Arc<str>,
    namespace: Option<String>,
    election: Option<Election>,
    controllers: Vec<Box<dyn Runnable>>,
    sync_within: Duration,
    stop_within: Duration,
}

impl Manager {
    /// A manager on this client and this clock.
    pub fn new(client: Client, clock: Clock) -> Self {
        Self::on(Connection::Given(client), clock)
    }

    /// A manager on the cluster of the environment: a kubeconfig, or the pod that it runs in. It connects when it runs.
    ///
    /// # Errors
    /// None yet; kept for what can be said before connecting.
    pub fn from_env() -> Result<Self> {
        Ok(Self::on(Connection::Environment, Clock::real()))
    }

    fn on(connection: Connection, clock: Clock) -> Self {
        Self {
            connection,
            clock,
            cluster: "local".into(),
            namespace: None,
            election: None,
            controllers: Vec::new(),
            sync_within: Duration::from_secs(120),
            stop_within: Duration::from_secs(30),
        }
    }

    /// The cluster's id, which is in every key.
    pub fn cluster(mut self, id: impl Into<Arc<str>>) -> Self {
        self.cluster = id.into();
        self
    }

    /// Watches one namespace only.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Works only while it holds this lease. Until then it stands by with its caches full, and it gives the lease back when
    /// it is stopped. Once it loses the lease it sends no more writes, and ends with [`Error::NotLeading`].
    pub fn elected(mut self, election: Election) -> Self {
        self.election = Some(election);
        self
    }

    /// Runs this controller too.
    pub fn controller<K: Object>(mut self, controller: Controller<K>) -> Self {
        self.controllers.push(Box::new(controller));
        self
    }

    /// How long the first lists may take.
    pub fn sync_within(mut self, limit: Duration) -> Self {
        self.sync_within = limit;
        self
    }

    /// How long turns may take to end when it is stopped.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.stop_within = limit;
        self
    }

    /// Runs until the process is asked to end (Ctrl-C, or SIGTERM).
    ///
    /// # Errors
    /// As [`Manager::run_until`].
    pub async fn run(self) -> Result<()> {
        self.run_until(asked_to_end()).await
    }

    /// Runs until `shutdown` is ready, then lets turns end and leaves no task behind. Dropping the returned future
    /// stops everything where it is.
    ///
    /// # Errors
    /// [`Error`] when it cannot start, or did not stop cleanly.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let mut names = BTreeSet::new();
        for controller in &self.controllers {
            controller.check()?;
            if !names.insert(controller.name().to_owned()) {
                return Err(ConfigError::Twice(controller.name().to_owned()).into());
            }
        }
        let client = match self.connection {
            Connection::Given(client) => client,
            Connection::Environment => {
                Client::try_default().await.map_err(|error| Error::NoCluster(Box::new(error)))?
            }
        };
        let mut candidate =
            self.election.map(|election| election.candidate(client.clone(), self.clock.clone()));
        let client = match &candidate {
            Some(candidate) => candidate.leadership().guard(client),
            None => client,
        };
        let cache = Cache::new(self.cluster, self.namespace);
        let schemas = Arc::new(Schemas::new(client.clone(), self.clock.clone()));
        let leadership = candidate.as_ref().map(Candidate::leadership);
        let ground = Ground { client, cache, clock: self.clock, schemas, leadership };
        let desk = Desk::new();
        let started: Vec<Box<dyn Started>> = self
            .controllers
            .into_iter()
            .map(|controller| {
                let recorder = desk.recorder(controller.name().into());
                controller.prepare(&ground, recorder)
            })
            .collect();
        // In sets that this future owns: when it is dropped, they end.
        let (mut watches, mut events, mut workers) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
        let mut shutdown = pin!(shutdown);
        ground.cache.start(&ground.client, &ground.clock, &mut watches);
        events.spawn(desk.send(ground.client.clone(), ground.clock.clone()));
        let synced = ground.clock.timeout(self.sync_within, ground.cache.synced());
        let mut end = tokio::select! {
            biased;
            synced = synced => match synced {
                Ok(()) => None,
                Err(_) => {
                    let kinds = ground.cache.unsynced();
                    Some(Err(Error::NotSynced { kinds, after: self.sync_within }))
                }
            },
            () = &mut shutdown => Some(Ok(())),
        };
        if end.is_none()
            && let Some(candidate) = &mut candidate
        {
            end = tokio::select! {
                biased;
                () = &mut shutdown => Some(Ok(())),
                _ = watches.join_next() => Some(Err(Error::Broken)),
                () = candidate.campaign() => None,
            };
        }
        if end.is_none() {
            for controller in &started {
                controller.work(&mut workers);
            }
            end = Some(tokio::select! {
                biased;
                () = shutdown => Ok(()),
                // A watch ends only by a panic; going on with a cache that stands still would be worse than stopping.
                _ = watches.join_next() => Err(Error::Broken),
                lost = lost(&mut candidate) => Err(Error::NotLeading(lost)),
            });
        }
        for controller in &started {
            controller.stop();
        }
        let ended = match &end {
            // Whatever they would still write is not sent.
            Some(Err(Error::NotLeading(_))) => Ok(()),
            // The last writes of a leader need its lease, too.
            _ => tokio::select! {
                biased;
                ended = ground.clock.timeout(self.stop_within, join(&mut workers)) => ended.map_err(|_| Error::CutOff { within: self.stop_within }),
                lost = lost(&mut candidate) => Err(Error::NotLeading(lost)),
            },
        };
        workers.shutdown().await;
        drop(started);
        let Ground { cache, clock, .. } = ground;
        // The listeners in its stores hold recorders no more once the controllers are gone.
        drop(cache);
        watches.shutdown().await;
        let _ = clock.timeout(LAST_EVENTS, join(&mut events)).await;
        events.shutdown().await;
        if let Some(candidate) = candidate {
            candidate.release().await;
        }
        end.unwrap_or(Ok(())).and(ended)
    }
}

/// Waits until the lease is lost; for ever where there is none.
async fn lost(candidate: &mut Option<Candidate>) -> Lost {
    match candidate {
        Some(candidate) => candidate.hold().await,
        None => std::future::pending().await,
    }
}

/// The last events are worth a moment, and not more.
const LAST_EVENTS: Duration = Duration::from_secs(2);

async fn join(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

async fn asked_to_end() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminated) => {
                tokio::select! {
                    _ = interrupted => {}
                    _ = terminated.recv() => {}
                }
            }
            Err(_) => drop(interrupted.await),
        }
    }
    #[cfg(not(unix))]
    drop(interrupted.await);
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let controllers: Vec<&str> = self.controllers.iter().map(|controller| controller.name()).collect();
        f.debug_struct("Manager")
            .field("cluster", &self.cluster)
            .field("controllers", &controllers)
            .finish_non_exhaustive()
    }
}
