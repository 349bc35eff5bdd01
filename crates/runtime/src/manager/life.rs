//! A manager from start to end: servers, caches, election, work, and the way back in order.

use super::Manager;
use super::error::{Error, Result};
use crate::act::Schemas;
use crate::cache::Cache;
use crate::controller::{ConfigError, Ground, Started};
use crate::election::{Candidate, Lost};
use crate::events::Desk;
use crate::inspect::{Elected, Inside};
use crate::serve::Server;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The last events are worth a moment, and not more.
const LAST_EVENTS: Duration = Duration::from_secs(2);

impl Manager {
    /// Runs until `shutdown` is ready, then lets turns end and leaves no task behind. Dropping the returned future
    /// stops everything where it is.
    ///
    /// # Errors
    /// [`Error`] when it cannot start, or did not stop cleanly.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        self.check()?;
        let Self { inspector, clock, .. } = self;
        // Open while it is answered, closed when this future ends or is dropped.
        let _open = Open(inspector.clone());
        let link = self.connection.link().await?;
        let requests = inspector.requests();
        let mut candidate = match self.election {
            Some(election) => Some(election.candidate(link.client(requests, None)?, clock.clone())),
            None => None,
        };
        let leadership = candidate.as_ref().map(Candidate::leadership);
        let client = link.client(requests, leadership.as_ref())?;
        // In sets that this future owns: when it is dropped, they end.
        let (mut watches, mut events) = (JoinSet::new(), JoinSet::new());
        let (mut workers, mut servers) = (JoinSet::new(), JoinSet::new());
        let bound = Server::bind(self.metrics_at, self.health_at).await;
        let bound = bound.map_err(|(address, source)| Error::NotServed { address, source })?;
        inspector.serves(Server::served(&bound));
        for server in bound {
            servers.spawn(server.serve(inspector.clone(), clock.clone()));
        }
        let cache = Cache::new(self.cluster, self.namespace);
        let schemas = Arc::new(Schemas::new(client.clone(), clock.clone()));
        let ground = Ground { client, cache, clock, schemas };
        let desk = Desk::new();
        let started: Vec<Arc<dyn Started>> = self
            .controllers
            .into_iter()
            .map(|controller| {
                let recorder = desk.recorder(controller.name().into());
                controller.prepare(&ground, recorder)
            })
            .collect();
        let election = candidate.as_ref().map(|candidate| Elected {
            lease: candidate.lease(),
            identity: candidate.identity().to_owned(),
            leadership: candidate.leadership(),
        });
        inspector.opened(Inside { cache: ground.cache.clone(), controllers: started.clone(), election });
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
        servers.shutdown().await;
        inspector.closed();
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

    fn check(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for controller in &self.controllers {
            controller.check()?;
            if !names.insert(controller.name().to_owned()) {
                return Err(ConfigError::Twice(controller.name().to_owned()).into());
            }
        }
        Ok(())
    }
}

/// Closes what can be looked into when the manager ends, however it does.
struct Open(crate::inspect::Inspector);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.closed();
    }
}

/// Waits until the lease is lost; for ever where there is none.
async fn lost(candidate: &mut Option<Candidate>) -> Lost {
    match candidate {
        Some(candidate) => candidate.hold().await,
        None => std::future::pending().await,
    }
}

async fn join(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}
