//! A controller at work: its stores, its queue and its workers.

use super::actions::Actions;
use super::facts::Facts;
use super::triggers::{self, Doorbell, Related};
use super::turn::TurnError;
use super::{Adoption, ConfigError, Controller, Counts, Decide, Ended, Mode, Next};
use crate::act::{Hand, Schemas, chain};
use crate::cache::{AnyStore, Cache, Store};
use crate::election::Leadership;
use crate::events::Recorder;
use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::queue::{Priority, Queue};
use crate::relation::ReverseIndex;
use futures::FutureExt;
use kube::Client;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass_clock::Clock;

/// What a manager gives its controllers to stand on.
pub(crate) struct Ground {
    pub(crate) client: Client,
    pub(crate) cache: Cache,
    pub(crate) clock: Clock,
    pub(crate) schemas: Arc<Schemas>,
    /// Whether this process leads, where there is an election.
    pub(crate) leadership: Option<Leadership>,
}

/// A controller whose kind is forgotten, as a manager holds it.
pub(crate) trait Runnable: Send {
    fn name(&self) -> &str;
    fn check(&self) -> Result<(), ConfigError>;
    /// What its turns come to.
    #[allow(dead_code, reason = "for whoever exports metrics")]
    fn counts(&self) -> Arc<Counts>;
    /// How many turns it runs at once.
    #[allow(dead_code, reason = "for whoever exports metrics")]
    fn concurrency(&self) -> usize;
    /// Declares its watches and connects its queue; nothing runs yet.
    fn prepare(self: Box<Self>, ground: &Ground, recorder: Recorder) -> Box<dyn Started>;
}

/// A controller that is connected.
pub(crate) trait Started: Send {
    /// Starts its workers.
    fn work(&self, tasks: &mut JoinSet<()>);
    /// Lets its workers end after their current turns.
    fn stop(&self);
    /// Whose turns are awaited.
    #[allow(dead_code, reason = "for whoever exports metrics")]
    fn queue(&self) -> &Queue<Key>;
}

impl<K: Object> Runnable for Controller<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), ConfigError> {
        Self::check(self)
    }

    fn counts(&self) -> Arc<Counts> {
        Self::counts(self)
    }

    fn concurrency(&self) -> usize {
        self.concurrency
    }

    fn prepare(self: Box<Self>, ground: &Ground, recorder: Recorder) -> Box<dyn Started> {
        let name: Arc<str> = self.name.as_str().into();
        let queue = Queue::new(ground.clock.clone(), self.backoff);
        let primary = ground.cache.store::<K>();
        let owned: BTreeMap<Kind, Arc<dyn AnyStore>> =
            self.owns.iter().map(|watched| (watched.kind.clone(), (watched.open)(&ground.cache))).collect();
        let related: Vec<Related<K>> = self
            .sees
            .iter()
            .map(|(watched, relate, refers)| Related {
                refers: *refers,
                kind: watched.kind.clone(),
                store: (watched.open)(&ground.cache),
                relate: relate.clone(),
                index: Arc::new(Mutex::new(ReverseIndex::default())),
            })
            .collect();
        let related = Arc::new(related);
        let stores: Vec<_> = owned.values().cloned().collect();
        let hand = Hand::sharing(
            ground.schemas.clone(),
            ground.client.clone(),
            ground.cache.clone(),
            name.clone(),
            ground.clock.clone(),
        )
        .conflicts(self.conflicts);
        let doorbell =
            Doorbell { controller: name.clone(), queue: queue.clone(), ledgers: hand.ledgers().clone() };
        triggers::connect(&doorbell, &primary, &stores, &related);
        let clock = &ground.clock;
        let actions = Actions::new(self.actions, self.action_concurrency, clock.clone(), self.backoff);
        let facts = Facts::new(self.facts, self.fact_concurrency, clock.clone());
        let (actions, facts) = (Arc::new(actions), Arc::new(facts));
        triggers::connect_outside(&primary, &actions, &facts);
        let finalizer = format!("windlass.dev/{name}");
        Box::new(Arc::new(Running {
            name,
            kind: Kind::of::<K>(),
            mode: self.mode,
            undo: self.undo,
            finalizer,
            prunes: self.prunes,
            adoption: self.adoption,
            concurrency: self.concurrency,
            turn_within: self.turn_within,
            at_least_every: self.at_least_every,
            counts: self.counts,
            primary,
            owned,
            related,
            hand,
            queue,
            recorder,
            clock: ground.clock.clone(),
            actions,
            facts,
            leadership: ground.leadership.clone(),
            pause: self.pause,
        }))
    }
}

/// A controller at work. Its turns are in the sibling modules.
pub(super) struct Running<K> {
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    pub(super) mode: Mode<K>,
    pub(super) undo: Option<Decide<K>>,
    pub(super) finalizer: String,
    pub(super) prunes: BTreeSet<Kind>,
    pub(super) adoption: Adoption,
    concurrency: usize,
    turn_within: Duration,
    at_least_every: Option<Duration>,
    counts: Arc<Counts>,
    pub(super) primary: Arc<Store<K>>,
    pub(super) owned: BTreeMap<Kind, Arc<dyn AnyStore>>,
    pub(super) related: Arc<Vec<Related<K>>>,
    pub(super) hand: Hand,
    pub(super) queue: Queue<Key>,
    pub(super) recorder: Recorder,
    pub(super) clock: Clock,
    pub(super) actions: Arc<Actions<K>>,
    pub(super) facts: Arc<Facts<K>>,
    pub(super) leadership: Option<Leadership>,
    pub(super) pause: String,
}

impl<K: Object> Started for Arc<Running<K>> {
    fn work(&self, tasks: &mut JoinSet<()>) {
        for _ in 0..self.concurrency {
            tasks.spawn(self.clone().work_until_stopped());
        }
        if !self.actions.is_empty() {
            for _ in 0..self.actions.concurrency {
                tasks.spawn(self.clone().work_on_actions());
            }
        }
        if !self.facts.is_empty() {
            for _ in 0..self.facts.concurrency {
                tasks.spawn(self.clone().work_on_facts());
            }
        }
    }

    fn stop(&self) {
        self.queue.shutdown();
        self.actions.stop();
        self.facts.stop();
    }

    fn queue(&self) -> &Queue<Key> {
        &self.queue
    }
}

impl<K: Object> Running<K> {
    async fn work_until_stopped(self: Arc<Self>) {
        while let Some(taken) = self.queue.next().await {
            let key = Key::clone(&taken);
            self.hand.ledgers().begin(&key);
            self.counts.began();
            let began = self.clock.moment();
            let turn = self.guarded_turn(&key).await;
            if self.hand.ledgers().end(&key) {
                self.queue.add(key.clone(), taken.priority());
            }
            let ended = self.what_next(key, turn);
            self.counts.ended(ended, self.clock.moment() - began);
        }
    }

    /// A turn that ends in time, and whose panic ends it and nothing else: what it shares is behind locks that do not poison.
    async fn guarded_turn(self: &Arc<Self>, key: &Key) -> Result<Next, TurnError> {
        let turn = AssertUnwindSafe(self.turn(key)).catch_unwind();
        match self.clock.timeout(self.turn_within, turn).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(panic)) => Err(TurnError::Panic(panic_text(&*panic))),
            Err(_) => Err(TurnError::Timeout(self.turn_within)),
        }
    }

    /// Queues the key again if it is to be looked at without a change.
    fn what_next(&self, key: Key, turn: Result<Next, TurnError>) -> Ended {
        let error = match turn {
            Ok(next) => {
                self.queue.forget(&key);
                let longest = self.at_least_every.filter(|_| self.primary.get(&key).is_some());
                let after = next.after().into_iter().chain(longest).min();
                if let Some(after) = after {
                    self.queue.add_at(key, self.clock.moment() + after, Priority::NORMAL);
                }
                return if next.after().is_some() { Ended::RequeueAfter } else { Ended::Success };
            }
            Err(error) => error,
        };
        let (controller, kind) = (&*self.name, &self.kind.kind);
        let why = chain(&error);
        if error.is_terminal() {
            self.queue.forget(&key);
            tracing::warn!(controller, kind, object = %key, "not tried again until something changes: {why}");
        } else if let Some(after) = error.retry_after() {
            self.queue.forget(&key);
            self.queue.add_at(key.clone(), self.clock.moment() + after, Priority::NORMAL);
            tracing::warn!(controller, kind, object = %key, ?after, "trying again: {why}");
        } else if error.is_conflict() {
            let delay = self.queue.retry(key.clone());
            tracing::debug!(controller, kind, object = %key, ?delay, "trying again: {why}");
        } else {
            let delay = self.queue.retry(key.clone());
            tracing::warn!(controller, kind, object = %key, ?delay, "trying again: {why}");
        }
        error.ended()
    }
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
