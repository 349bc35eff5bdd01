//! A controller at work: its stores, its queue and its workers.

use super::triggers::{self, Doorbell, Related};
use super::turn::{Next, TurnError};
use super::{Adoption, ConfigError, Controller, Decide, Mode};
use crate::act::{Hand, Schemas, chain};
use crate::cache::{AnyStore, Cache, Store};
use crate::events::Recorder;
use crate::inspect::Book;
use crate::key::Key;
use crate::kind::{Kind, Object};
use crate::metrics::{Measured, Outcome, Turns};
use crate::queue::{Priority, Queue};
use crate::relation::ReverseIndex;
use futures::FutureExt;
use kube::Client;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::task::JoinSet;
use windlass_clock::Clock;

/// What a manager gives its controllers to stand on.
pub(crate) struct Ground {
    pub(crate) client: Client,
    pub(crate) cache: Cache,
    pub(crate) clock: Clock,
    pub(crate) schemas: Arc<Schemas>,
}

/// A controller whose kind is forgotten, as a manager holds it.
pub(crate) trait Runnable: Send {
    fn name(&self) -> &str;
    fn check(&self) -> Result<(), ConfigError>;
    /// Declares its watches and connects its queue; nothing runs yet.
    fn prepare(self: Box<Self>, ground: &Ground, recorder: Recorder) -> Arc<dyn Started>;
}

/// A controller that is connected.
pub(crate) trait Started: Send + Sync {
    /// The kind of the objects that it is about.
    fn kind(&self) -> &Kind;
    /// What is counted of it, now.
    fn measured(&self) -> Measured;
    /// Who waits, and for what.
    fn book(&self) -> &Book;
    /// Starts its workers.
    fn work(&self, tasks: &mut JoinSet<()>);
    /// Lets its workers end after their current turns.
    fn stop(&self);
    /// Queues every object there is, because others may have worked on them meanwhile.
    fn look_at_all(&self);
}

impl<K: Object> Runnable for Controller<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), ConfigError> {
        Self::check(self)
    }

    fn prepare(self: Box<Self>, ground: &Ground, recorder: Recorder) -> Arc<dyn Started> {
        let name: Arc<str> = self.name.as_str().into();
        let queue = Queue::new(ground.clock.clone(), self.backoff);
        let primary = ground.cache.store::<K>();
        let owned: BTreeMap<Kind, Arc<dyn AnyStore>> =
            self.owns.iter().map(|watched| (watched.kind.clone(), (watched.open)(&ground.cache))).collect();
        let related: Vec<Related<K>> = self
            .sees
            .iter()
            .map(|(watched, relate)| Related {
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
        );
        let doorbell =
            Doorbell { controller: name.clone(), queue: queue.clone(), ledgers: hand.ledgers().clone() };
        triggers::connect(&doorbell, &primary, &stores, &related);
        let finalizer = format!("windlass.dev/{name}");
        Arc::new(Arc::new(Running {
            name,
            kind: Kind::of::<K>(),
            mode: self.mode,
            undo: self.undo,
            finalizer,
            prunes: self.prunes,
            adoption: self.adoption,
            concurrency: self.concurrency,
            primary,
            owned,
            related,
            hand,
            queue,
            recorder,
            turns: Arc::new(Turns::new(ground.clock.clone())),
            book: Book::new(ground.clock.clone()),
            clock: ground.clock.clone(),
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
    pub(super) primary: Arc<Store<K>>,
    pub(super) owned: BTreeMap<Kind, Arc<dyn AnyStore>>,
    pub(super) related: Arc<Vec<Related<K>>>,
    pub(super) hand: Hand,
    pub(super) queue: Queue<Key>,
    pub(super) recorder: Recorder,
    turns: Arc<Turns>,
    pub(super) book: Book,
    pub(super) clock: Clock,
}

impl<K: Object> Started for Arc<Running<K>> {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn measured(&self) -> Measured {
        Measured {
            name: self.name.clone(),
            workers: self.concurrency,
            depth: self.queue.depth(),
            oldest: self.queue.oldest(),
            tally: self.queue.tally(),
            turns: self.turns.clone(),
        }
    }

    fn book(&self) -> &Book {
        &self.book
    }

    fn work(&self, tasks: &mut JoinSet<()>) {
        for _ in 0..self.concurrency {
            tasks.spawn(self.clone().work_until_stopped());
        }
    }

    fn stop(&self) {
        self.queue.shutdown();
    }

    fn look_at_all(&self) {
        for object in self.primary.list() {
            self.queue.add(Key::of(self.primary.cluster().clone(), object.meta()), Priority::LOW);
        }
    }
}

impl<K: Object> Running<K> {
    async fn work_until_stopped(self: Arc<Self>) {
        while let Some(taken) = self.queue.next().await {
            let key = Key::clone(&taken);
            let work = self.turns.begin(taken.waited());
            // A panic ends its turn and nothing else: what the turn shares is behind locks that do not poison.
            let open = OpenTurn::begin(&self, &key, taken.priority());
            let turn = AssertUnwindSafe(self.turn(&key)).catch_unwind().await;
            open.end();
            work.ended(outcome(&turn));
            match turn {
                Ok(Ok(next)) => {
                    self.queue.forget(&key);
                    if let Some(after) = next.after() {
                        self.queue.add_at(key, self.clock.moment() + after, Priority::NORMAL);
                    }
                }
                Ok(Err(error)) => self.retry(key, &error),
                Err(panic) => self.retry(key, &TurnError::Panic(panic_text(&*panic))),
            }
        }
    }

    fn retry(&self, key: Key, error: &TurnError) {
        let (why, expected) = (chain(error), error.is_conflict());
        let delay = self.queue.retry(key.clone());
        self.book.fails(&key, error.label(), &why, delay);
        let (controller, kind) = (&*self.name, &self.kind.kind);
        if expected {
            tracing::debug!(controller, kind, object = %key, ?delay, "trying again: {why}");
        } else {
            tracing::warn!(controller, kind, object = %key, ?delay, "trying again: {why}");
        }
    }
}

/// A turn that runs. Cut off before its end, when leadership is lost, its object is queued again for when it is regained.
struct OpenTurn<'a, K: Object> {
    running: &'a Running<K>,
    key: Key,
    priority: Priority,
    ended: bool,
}

impl<'a, K: Object> OpenTurn<'a, K> {
    fn begin(running: &'a Running<K>, key: &Key, priority: Priority) -> Self {
        running.hand.ledgers().begin(key);
        Self { running, key: key.clone(), priority, ended: false }
    }

    fn end(mut self) {
        self.ended = true;
    }
}

impl<K: Object> Drop for OpenTurn<'_, K> {
    fn drop(&mut self) {
        let news = self.running.hand.ledgers().end(&self.key);
        if news || !self.ended {
            self.running.queue.add(self.key.clone(), self.priority);
        }
    }
}

/// A turn as it came back, or the panic that ended it.
type Ended = Result<Result<Next, TurnError>, Box<dyn std::any::Any + Send>>;

fn outcome(ended: &Ended) -> Outcome {
    match ended {
        Ok(Ok(next)) if next.after().is_some() => Outcome::LooksAgain,
        Ok(Ok(_)) => Outcome::Success,
        Ok(Err(error)) => Outcome::Failed { terminal: error.is_terminal() },
        Err(_) => Outcome::Panicked,
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
