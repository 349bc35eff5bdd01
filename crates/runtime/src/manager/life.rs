//! A manager from start to end: servers, caches, election, work, and the way back in order.

use super::Manager;
use super::connect::Link;
use super::error::{Error, Result};
use super::registration::Registration;
use super::tasks::{self, Given, Task};
use crate::cache::Cache;
use crate::controller::{ConfigError, ControllerContext, Parts, Running};
use crate::election::{Candidate, Lost};
use crate::events::EventSender;
use crate::inspect::{Elected, Inside, Inspector};
use crate::serve::Server;
use crate::webhook::Teller;
use crate::write::Schemas;
use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The last events are worth a moment, and not more.
const LAST_EVENTS: Duration = Duration::from_secs(2);

impl Manager {
    /// Runs until `shutdown` is ready, then lets reconciles and tasks end and leaves none behind. Dropping the returned future
    /// stops everything where it is.
    ///
    /// # Errors
    /// [`Error`] when it cannot start, or did not stop cleanly.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let mut life = self.begin().await?;
        let end = life.live(pin!(shutdown)).await;
        life.end(end).await
    }

    /// Connects everything; the caches begin to fill, and the pages are served.
    async fn begin(mut self) -> Result<Life> {
        self.set_concurrency()?;
        self.check()?;
        self.webhooks.check()?;
        let namespaces = self.scope();
        let Self { inspector, clock, .. } = self;
        let link = self.connection.link().await?;
        let requests = inspector.requests();
        let candidate = match self.election {
            Some(election) => Some(election.candidate(link.client(requests, None, &clock)?.0, clock.clone())),
            None => None,
        };
        let leadership = candidate.as_ref().map(Candidate::leadership);
        let (client, direct) = link.client(requests, leadership.as_ref(), &clock)?;
        let (mut watches, mut events, mut servers) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
        let bound = Server::bind(self.metrics_at, self.health_at).await;
        let bound = bound.map_err(|(address, source)| Error::NotServed { address, source })?;
        let served = Server::served(&bound);
        inspector.serves(served);
        let registration =
            link.host().zip(served.metrics).and_then(|(cluster, at)| Registration::write(cluster, at));
        for server in bound {
            servers.spawn(server.serve(inspector.clone(), clock.clone()));
        }
        let converted = self.webhooks.conversions.clone();
        // Not behind the guard: who stands by may have to make the first certificate, and it writes by compare-and-swap.
        let unguarded = link.client(requests, None, &clock)?.0;
        let teller =
            self.webhooks.begin(&inspector, unguarded, leadership.clone(), &clock, &mut servers).await?;
        let cache = self.cache.unwrap_or_else(|| Cache::new(self.cluster, namespaces));
        self.caching.into_iter().for_each(|with| with(&cache));
        let schemas = Arc::new(Schemas::new(client.clone(), clock.clone()));
        let watched_whole = self.controllers.iter().flat_map(Parts::watches_all_of).cloned().collect();
        let context = ControllerContext { client, direct, cache, clock, schemas, watched_whole, leadership };
        let context_of = |name: &str| -> Result<ControllerContext> {
            let Some(client) = self.clients.as_ref().and_then(|clients| clients(name)) else {
                return Ok(context.clone());
            };
            let link = Link::Given(client);
            let (client, direct) = link.client(requests, context.leadership.as_ref(), &context.clock)?;
            Ok(ControllerContext { client, direct, ..context.clone() })
        };
        let sender = EventSender::new();
        let mut started: Vec<Arc<Running>> = Vec::new();
        for controller in self.controllers {
            let recorder = sender.recorder(controller.name().into());
            let context = context_of(controller.name())?;
            started.push(controller.prepare(&context, recorder));
        }
        let election = candidate.as_ref().map(|candidate| Elected {
            lease: candidate.lease().to_owned(),
            identity: candidate.identity().to_owned(),
            leadership: candidate.leadership(),
        });
        inspector.opened(Inside {
            cache: context.cache.clone(),
            controllers: started.clone(),
            election,
            tasks: self.tasks.iter().map(|task| task.state.clone()).collect(),
            converted,
        });
        let stopped = CancellationToken::new();
        let mut tasks = Vec::new();
        for given in self.tasks {
            let task = Task {
                client: context_of(&given.name)?.client,
                clock: context.clock.clone(),
                cache: context.cache.clone(),
                recorder: sender.recorder(given.name.as_str().into()),
                stopped: stopped.clone(),
            };
            tasks.push((given, task));
        }
        context.cache.start(&context.client, &context.clock, &mut watches);
        events.spawn(sender.send(context.client.clone(), context.clock.clone()));
        Ok(Life {
            open: Open(inspector),
            _registration: registration,
            context,
            candidate,
            leading: false,
            rejoin_election: self.rejoin_election,
            started,
            tasks,
            stopped,
            cache_sync_timeout: self.cache_sync_timeout,
            graceful_shutdown_timeout: self.graceful_shutdown_timeout,
            workers: JoinSet::new(),
            watches,
            events,
            servers,
            teller,
        })
    }

    /// What the settings say of controllers counts over what the program says.
    fn set_concurrency(&mut self) -> Result<()> {
        for (name, workers) in &self.concurrency {
            match self.controllers.iter_mut().find(|controller| controller.name() == name) {
                Some(controller) => controller.set_concurrency(*workers),
                None => {
                    let known = self.controllers.iter().map(|controller| controller.name().to_owned());
                    return Err(Error::NoController { unknown: name.clone(), known: known.collect() });
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for controller in &self.controllers {
            controller.check()?;
            if !names.insert(controller.name().to_owned()) {
                return Err(ConfigError::Twice(controller.name().to_owned()).into());
            }
        }
        let mut names = BTreeSet::new();
        match self.tasks.iter().find(|task| !names.insert(&task.name)) {
            Some(twice) => Err(Error::TaskTwice(twice.name.clone())),
            None => Ok(()),
        }
    }
}

/// A manager that runs. Everything it started is in sets that it owns: when it is dropped, they end.
struct Life {
    open: Open,
    _registration: Option<Registration>,
    context: ControllerContext,
    candidate: Option<Candidate>,
    /// Whether the lease was won, and is to be held until work has ended.
    leading: bool,
    rejoin_election: bool,
    started: Vec<Arc<Running>>,
    /// With what they get to work with.
    tasks: Vec<(Given, Task)>,
    /// Tells tasks to end.
    stopped: CancellationToken,
    cache_sync_timeout: Duration,
    graceful_shutdown_timeout: Duration,
    /// Reconciles, and tasks.
    workers: JoinSet<()>,
    watches: JoinSet<()>,
    events: JoinSet<()>,
    servers: JoinSet<()>,
    /// Knows which webhook configurations lead to this process.
    teller: Option<Teller>,
}

impl Life {
    /// Works until it is told to stop, or cannot go on.
    async fn live(&mut self, mut shutdown: Pin<&mut impl Future<Output = ()>>) -> Result<()> {
        let synced = self.context.clock.timeout(self.cache_sync_timeout, self.context.cache.synced());
        tokio::select! {
            biased;
            synced = synced => synced.map_err(|_| Error::NotSynced {
                kinds: self.context.cache.unsynced(),
                after: self.cache_sync_timeout,
            })?,
            () = &mut shutdown => return Ok(()),
        }
        let mut everywhere = JoinSet::new();
        self.start_tasks(false, &mut everywhere);
        let end = self.lead(shutdown).await;
        self.stopped.cancel();
        // From here on they are waited for with the rest.
        self.workers.spawn(async move { join(&mut everywhere).await });
        end
    }

    /// Leads, or works without an election; as often as it may.
    async fn lead(&mut self, mut shutdown: Pin<&mut impl Future<Output = ()>>) -> Result<()> {
        loop {
            if let Some(candidate) = &mut self.candidate {
                tokio::select! {
                    biased;
                    () = &mut shutdown => return Ok(()),
                    _ = self.watches.join_next() => return Err(Error::Broken),
                    () = candidate.acquire() => self.leading = true,
                }
            }
            let mut workers = std::mem::take(&mut self.workers);
            for controller in &self.started {
                controller.work(&mut workers);
            }
            self.start_tasks(true, &mut workers);
            self.workers = workers;
            let lost = tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                // A watch ends only by a panic; going on with a cache that stands still would be worse than stopping.
                _ = self.watches.join_next() => return Err(Error::Broken),
                lost = lost(self.candidate.as_mut()) => lost,
            };
            if !self.rejoin_election {
                return Err(Error::NotLeading(lost));
            }
            tracing::warn!("standing by again: {lost}");
            self.leading = false;
            // Whatever they would still write is not sent.
            self.workers.shutdown().await;
            for controller in &self.started {
                controller.look_at_all();
            }
        }
    }

    fn start_tasks(&self, leading: bool, into: &mut JoinSet<()>) {
        for (given, task) in self.tasks.iter().filter(|(given, _)| given.leading == leading) {
            into.spawn(tasks::keep(given.work.clone(), given.state.clone(), task.clone()));
        }
    }

    /// Ends everything in order: work, pages, watches, events, lease.
    async fn end(mut self, end: Result<()>) -> Result<()> {
        for controller in &self.started {
            controller.stop();
        }
        let (clock, within) = (self.context.clock.clone(), self.graceful_shutdown_timeout);
        let ended = match &end {
            // Whatever they would still write is not sent.
            Err(Error::NotLeading(_)) => Ok(()),
            // The last writes of a leader need its lease, too.
            _ => tokio::select! {
                biased;
                ended = clock.timeout(within, join(&mut self.workers)) => ended.map_err(|_| Error::CutOff { within }),
                lost = lost(self.candidate.as_mut().filter(|_| self.leading)) => Err(Error::NotLeading(lost)),
            },
        };
        self.workers.shutdown().await;
        if let Some(teller) = &self.teller {
            let _ = clock.timeout(LAST_EVENTS, teller.end()).await;
        }
        self.servers.shutdown().await;
        drop(self.open);
        drop(self.started);
        drop(self.tasks);
        // The listeners in its stores hold recorders no more once the controllers are gone.
        drop(self.context);
        self.watches.shutdown().await;
        let _ = clock.timeout(LAST_EVENTS, join(&mut self.events)).await;
        self.events.shutdown().await;
        if let Some(candidate) = self.candidate {
            candidate.release().await;
        }
        end.and(ended)
    }
}

/// Closes what can be looked into when the manager ends, however it does.
struct Open(Inspector);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.closed();
    }
}

/// Waits until the lease is lost; for ever where there is none.
async fn lost(candidate: Option<&mut Candidate>) -> Lost {
    match candidate {
        Some(candidate) => candidate.renew().await,
        None => std::future::pending().await,
    }
}

async fn join(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}
