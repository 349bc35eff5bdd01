//! Leader election: of several replicas one works, and the others stand by.
//!
//! The leader holds a `Lease` and renews it; a candidate takes it over when it did not change for as long as it lasts, as
//! seen on the candidate's own clock: nobody compares two machines' times. Every write carries the version that was read,
//! so of two candidates one loses.
//!
//! A leader that cannot renew stops before the others may begin: [`Leadership`] ends a while before its lease does, and a
//! client behind [`Leadership::guard`] starts no write after that. What remains possible is a write that was already on
//! its way; it is as old as a request may last.
//!
//! ```no_run
//! # async fn example(client: kube::Client, clock: windlass::clock::Clock) -> Result<(), Box<dyn std::error::Error>> {
//! use windlass::election::Election;
//!
//! let mut candidate = Election::new("default", "my-operator").candidate(client.clone(), clock);
//! let leadership = candidate.leadership();
//! candidate.acquire().await;
//! let client = leadership.guard(client); // for all work from here on
//! let lost = candidate.renew().await;
//! # drop(client); drop(lost); Ok(()) }
//! ```
//!
//! A manager with leader election puts all its clients behind the guard and fills its caches before it leads, so that a new
//! leader works at once. When it loses the lease it ends; with
//! [`Manager::rejoin_election`](crate::Manager::rejoin_election) it cancels its reconciles and becomes a candidate again.
//! `decide.rs` says who may lead, purely; `guard.rs` is the client.

mod decide;
mod guard;
mod lease;

pub(crate) use guard::Guard;
pub use guard::{Leadership, NotLeading};

use crate::error_chain::chain;
use decide::{Sighting, Step};
use kube::{Api, Client};
use lease::Leases;
use std::time::Duration;
use windlass_clock::{Clock, Moment};

/// Which lease to hold, in whose name, and for how long. The durations are Kubernetes' own.
#[derive(Debug, Clone)]
#[must_use = "an election does nothing until there is a candidate"]
pub struct Election {
    /// That of the client, if it is not said.
    namespace: Option<String>,
    name: String,
    identity: String,
    lasts: Duration,
    renew_within: Duration,
    retry: Duration,
}

impl Election {
    /// The lease of this name in this namespace. One operator, one name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self::within(Some(namespace.into()), name)
    }

    /// The lease of this name in the client's own namespace: that of the pod, where it runs in one.
    pub fn here(name: impl Into<String>) -> Self {
        Self::within(None, name)
    }

    pub(crate) fn within(namespace: Option<String>, name: impl Into<String>) -> Self {
        Self {
            namespace,
            name: name.into(),
            identity: own_identity(),
            lasts: Duration::from_secs(15),
            renew_within: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }

    /// The name to stand under; without it, the machine's with something random. No two candidates may share one.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// How long the lease lasts after it was last renewed (15 s), for how long a leader that cannot renew goes on (10 s),
    /// and how often it is renewed or looked at (2 s).
    ///
    /// # Panics
    /// When a leader would go on for as long as its lease lasts or longer, or would not try to renew meanwhile: two
    /// could lead at once.
    pub fn durations(mut self, lasts: Duration, renew_within: Duration, retry: Duration) -> Self {
        assert!(
            retry < renew_within && renew_within < lasts,
            "a lease of {lasts:?} must be longer than the {renew_within:?} that a leader goes on without renewing, \
             and those longer than the {retry:?} between two attempts"
        );
        (self.lasts, self.renew_within, self.retry) = (lasts, renew_within, retry);
        self
    }

    /// Stands for election; nothing is sent yet.
    pub fn candidate(self, client: Client, clock: Clock) -> Candidate {
        let namespace = self.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
        let lease = format!("{namespace}/{}", self.name);
        let leases = Leases::new(Api::namespaced(client, &namespace), &self.name, self.lasts);
        let leadership = Leadership::none(clock.clone());
        Candidate { election: self, lease, leases, clock, leadership, observed: None, logged: None }
    }
}

/// The host's name, which a pod shares with nobody, and something random for those that do share one.
fn own_identity() -> String {
    let host = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let host = host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty());
    let mut random = [0_u8; 8];
    // Without randomness two processes on one host could be taken for one.
    let random = match getrandom::fill(&mut random) {
        Ok(()) => u64::from_ne_bytes(random),
        Err(_) => u64::from(std::process::id()),
    };
    format!("{}_{random:016x}", host.as_deref().unwrap_or("windlass"))
}

/// Why a leader leads no more.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// Another one holds the lease.
    #[error("the lease is held by {by:?} now")]
    Taken {
        /// Who; empty when someone gave it away in our name.
        by: String,
    },
    /// It could not be renewed in time.
    #[error("the lease could not be renewed for {after:?}: {last}")]
    NotRenewed {
        /// How long it was tried.
        after: Duration,
        /// What came of the last attempt.
        last: String,
    },
}

/// One that stands for election, and may lead.
#[derive(Debug)]
pub struct Candidate {
    election: Election,
    /// `namespace/name`.
    lease: String,
    leases: Leases,
    clock: Clock,
    leadership: Leadership,
    observed: Option<Sighting>,
    /// The holder that was logged last.
    logged: Option<String>,
}

impl Candidate {
    /// Whether it leads, now and later.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Which lease: `namespace/name`.
    pub fn lease(&self) -> &str {
        &self.lease
    }

    /// The name it stands under.
    pub fn identity(&self) -> &str {
        &self.election.identity
    }

    /// Waits until it leads. Safe to drop: a lease taken meanwhile lapses, or is renewed by the next call.
    pub async fn acquire(&mut self) {
        loop {
            let begun = self.clock.moment();
            let (clock, limit) = (self.clock.clone(), self.election.renew_within);
            match clock.timeout(limit, self.attempt(begun)).await {
                Ok(Ok(Step::Hold)) => return,
                Ok(Ok(Step::Wait(until))) => {
                    self.clock.sleep_until(until.min(begun + self.election.retry)).await;
                    continue;
                }
                Ok(Err(error)) => tracing::warn!(lease = %self.leases, "cannot stand for election: {error}"),
                Err(late) => tracing::warn!(lease = %self.leases, "cannot stand for election: {late}"),
            }
            self.clock.sleep(self.election.retry).await;
        }
    }

    /// Looks at the lease, and takes it if it may be taken.
    async fn attempt(&mut self, begun: Moment) -> Result<Step, String> {
        self.look().await?;
        let step = decide::next(&self.election.identity, self.observed.as_ref(), self.clock.moment());
        if step == Step::Hold {
            // What was seen is what is replaced: if another one was faster, this is refused.
            self.write(begun).await?;
            tracing::info!(lease = %self.leases, identity = self.election.identity, "leading");
        } else if let Some(observed) = &self.observed
            && self.logged.as_ref() != Some(&observed.holder)
        {
            tracing::info!(lease = %self.leases, leader = observed.holder, "standing by");
            self.logged = Some(observed.holder.clone());
        }
        Ok(step)
    }

    /// Renews the lease until that fails for too long, or another one holds it.
    pub async fn renew(&mut self) -> Lost {
        let mut last = "not tried yet".to_owned();
        loop {
            let deadline = self.leadership.deadline();
            self.clock.sleep_until(deadline.min(self.clock.moment() + self.election.retry)).await;
            let begun = self.clock.moment();
            let left = deadline.since(begun);
            if left.is_zero() {
                self.leadership.end();
                return Lost::NotRenewed { after: self.election.renew_within, last };
            }
            match self.clock.clone().timeout(left, self.renew_once(begun)).await {
                Ok(Ok(None)) => continue,
                Ok(Ok(Some(lost))) => {
                    self.leadership.end();
                    return lost;
                }
                Ok(Err(error)) => last = error,
                Err(late) => last = late.to_string(),
            }
            tracing::warn!(lease = %self.leases, "cannot renew the lease: {last}");
            // Its version may be another one now, whatever came back.
            self.observed = None;
        }
    }

    async fn renew_once(&mut self, begun: Moment) -> Result<Option<Lost>, String> {
        if self.observed.is_none() {
            self.look().await?;
        }
        let holder = self.observed.as_ref().map(|observed| observed.holder.as_str());
        if let Some(other) = holder.filter(|holder| *holder != self.election.identity) {
            return Ok(Some(Lost::Taken { by: other.to_owned() }));
        }
        // Looking may have taken until now: a process that was stopped meanwhile must not write when it goes on.
        if !self.leadership.leads() {
            return Err("it was too late to renew".to_owned());
        }
        self.write(begun).await.map(|()| None)
    }

    async fn look(&mut self) -> Result<(), String> {
        let found = self.leases.read().await.map_err(|error| chain(&error))?;
        self.observed =
            decide::sighted(self.observed.take(), found, self.clock.moment(), self.election.lasts);
        Ok(())
    }

    async fn write(&mut self, begun: Moment) -> Result<(), String> {
        let written = self
            .leases
            .hold(&self.election.identity, self.observed.as_ref(), self.clock.now())
            .await
            .map_err(|error| chain(&error))?;
        self.observed = decide::sighted(None, Some(written), self.clock.moment(), self.election.lasts);
        // Counted from before the request: the others count from after it.
        self.leadership.lead_until(begun + self.election.renew_within);
        Ok(())
    }

    /// Gives the lease back, so that another one need not wait for it to lapse. Call it when all work has ended.
    pub async fn release(mut self) {
        let led = self.leadership.deadline().since(self.clock.moment());
        self.leadership.end();
        if led.is_zero() {
            return;
        }
        let clock = self.clock.clone();
        let giving_back = async {
            // A renewal that was cut off may have made another version.
            self.look().await?;
            match self.observed.as_ref().filter(|observed| observed.holder == self.election.identity) {
                Some(observed) => {
                    self.leases.give_back(observed, self.clock.now()).await.map_err(|error| chain(&error))
                }
                None => Ok(()),
            }
        };
        match clock.timeout(led, giving_back).await {
            Ok(Ok(())) => tracing::info!(lease = %self.leases, "gave the lease back"),
            Ok(Err(error)) => tracing::warn!(lease = %self.leases, "cannot give the lease back: {error}"),
            Err(late) => tracing::warn!(lease = %self.leases, "cannot give the lease back: {late}"),
        }
    }
}
