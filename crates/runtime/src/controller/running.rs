//! A controller at work: its stores, its queue and its workers.

use super::actions::Actions;
use super::declared::Declared;
use super::facts::Facts;
use super::last_changes::LastChanges;
use super::parts::{Decide, Filter, Mode, Parts, Read};
use super::reconcile_error::ReconcileError;
use super::report::HasRoom;
use super::retry::Retry;
use super::triggers::{self, Enqueuer, Related, Triggers};
use super::waiting::WaitingObjects;
use super::{Adoption, Requeue};
use crate::cache::{AnyStore, Cache, Scope};
use crate::client::DirectClient;
use crate::election::Leadership;
use crate::error_chain::chain;
use crate::events::{Events, Recorder};
use crate::key::Key;
use crate::kind::Kind;
use crate::labels::CONTROLLER_LABEL;
use crate::metrics::{Counts, Ended, Measured, WorkqueueMetrics};
use crate::queue::{KeyState, Position, Priority, Queue};
use crate::relation::ReverseIndex;
use crate::write::{Schemas, Writer};
use futures::FutureExt;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinSet;
use tracing::Instrument;
use windlass_clock::Clock;

/// What a manager gives its controllers.
#[derive(Clone)]
pub(crate) struct ControllerContext {
    pub(crate) client: Client,
    /// The client's service, by itself.
    pub(crate) direct: DirectClient,
    pub(crate) cache: Cache,
    pub(crate) clock: Clock,
    pub(crate) schemas: Arc<Schemas>,
    /// The kinds of which some controller of the manager watches every object; who owns such a kind shares the store.
    pub(crate) watched_whole: BTreeSet<Kind>,
    /// Whether this process leads, where there is an election.
    pub(crate) leadership: Option<Leadership>,
}

impl Parts {
    /// Declares its watches and connects its queue; nothing runs yet.
    pub(crate) fn prepare(self, context: &ControllerContext, recorder: Recorder) -> Arc<Running> {
        let unreferenced = self.unreferenced();
        let (name, finalizer): (Arc<str>, String) = (self.name.as_str().into(), self.finalizer());
        let (declared, collected) = (self.declared(), self.collected());
        let queue = Queue::new(context.clock.clone(), self.backoff);
        let primary = (self.open)(&context.cache, Scope::default());
        let labelled: BTreeSet<Kind> = self.owns.iter().map(|watched| watched.kind.clone()).collect();
        let labelled = &labelled - &context.watched_whole;
        let owned: BTreeMap<Kind, Arc<AnyStore>> = self
            .owns
            .iter()
            .map(|watched| {
                let scope = if labelled.contains(&watched.kind) { children() } else { Scope::default() };
                (watched.kind.clone(), (watched.open)(&context.cache, scope))
            })
            .collect();
        let related: Vec<Related> = self
            .watches
            .iter()
            .map(|(watched, relate, by_name)| Related {
                by_name: *by_name,
                kind: watched.kind.clone(),
                store: (watched.open)(&context.cache, Scope::default()),
                relate: relate.clone(),
                index: Arc::new(Mutex::new(ReverseIndex::default())),
            })
            .collect();
        let related = Arc::new(related);
        let stores: Vec<_> = owned.values().cloned().collect();
        let writer = Writer::sharing(
            context.schemas.clone(),
            context.client.clone(),
            context.direct.clone(),
            context.cache.clone(),
            name.clone(),
            context.clock.clone(),
        )
        .conflicts(self.conflicts);
        let enqueuer =
            Enqueuer { controller: name.clone(), queue: queue.clone(), ledgers: writer.ledgers().clone() };
        let last_changes = LastChanges::new(&self.tracked, context.clock.clone());
        // Before the reconciles that a change starts.
        let others = related.iter().map(|related| &related.store);
        stores.iter().chain(others).for_each(|store| last_changes.listen(store));
        let triggers = Triggers { enqueuer: &enqueuer, predicates: &self.predicates };
        triggers.connect(&primary, self.filter.as_ref(), &stores, &related);
        triggers::forget_what_is_gone(&writer, &primary, &stores);
        let clock = &context.clock;
        let actions = Actions::new(self.actions, self.action_concurrency, clock.clone(), self.backoff);
        let facts = Facts::new(self.facts, self.fact_concurrency, clock.clone());
        let (actions, facts) = (Arc::new(actions), Arc::new(facts));
        triggers::connect_outside(&primary, &actions, &facts);
        Arc::new(Running {
            name,
            kind: self.kind,
            mode: self.mode,
            filter: self.filter,
            cleanup: self.cleanup,
            finalizer,
            prunes: self.prunes,
            declared,
            labelled,
            adoption: self.adoption,
            collected,
            anywhere: self.anywhere,
            retains: Arc::new(unreferenced),
            last_changes,
            concurrency: self.concurrency,
            reconcile_timeout: self.reconcile_timeout,
            resync_period: self.resync_period,
            counts: self.counts,
            primary,
            owned,
            related,
            writer,
            queue,
            recorder,
            workqueue: Arc::new(WorkqueueMetrics::new(context.clock.clone())),
            waiting: WaitingObjects::new(context.clock.clone()),
            clock: context.clock.clone(),
            actions,
            facts,
            leadership: context.leadership.clone(),
            pause: self.pause,
            concern: self.concern,
            room_for_conditions: OnceLock::new(),
            no_conditions: AtomicBool::new(false),
            events: self.events,
            read: self.read,
            has_room: self.has_room,
        })
    }
}

/// The objects that plans made, of this controller or another: those with the library's label.
fn children() -> Scope {
    // The label is a selector by itself.
    Scope::default().labelled(CONTROLLER_LABEL).unwrap_or_default()
}

/// A controller at work. Its reconciles are in the sibling modules.
pub(crate) struct Running {
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    pub(super) mode: Mode,
    pub(super) filter: Option<Filter>,
    pub(super) cleanup: Option<Decide>,
    pub(super) finalizer: String,
    pub(super) prunes: BTreeSet<Kind>,
    pub(super) declared: Declared,
    /// The kinds of children of which the cache holds only those with the library's label.
    pub(super) labelled: BTreeSet<Kind>,
    pub(super) adoption: BTreeMap<Kind, Adoption>,
    /// The kinds of children that outlive their parent.
    pub(super) retains: Arc<BTreeSet<Kind>>,
    pub(super) last_changes: LastChanges,
    /// The kinds of children that may be where they cannot name their owner.
    pub(super) anywhere: BTreeSet<Kind>,
    /// Those of them that go with their parent.
    pub(super) collected: BTreeSet<Kind>,
    concurrency: usize,
    reconcile_timeout: Duration,
    resync_period: Option<Duration>,
    counts: Arc<Counts>,
    pub(super) primary: Arc<AnyStore>,
    pub(super) owned: BTreeMap<Kind, Arc<AnyStore>>,
    pub(super) related: Arc<Vec<Related>>,
    pub(super) writer: Writer,
    pub(super) queue: Queue<Key>,
    pub(super) recorder: Recorder,
    workqueue: Arc<WorkqueueMetrics>,
    pub(super) waiting: WaitingObjects,
    pub(super) clock: Clock,
    pub(super) actions: Arc<Actions>,
    pub(super) facts: Arc<Facts>,
    pub(super) leadership: Option<Leadership>,
    pub(super) pause: String,
    /// The one condition by which it tells how objects stand, if it is not the first controller of its kind.
    pub(super) concern: Option<String>,
    /// Whether the status has room for conditions, once that is known.
    pub(super) room_for_conditions: OnceLock<bool>,
    /// Whether there was none when a status was last to be written.
    pub(super) no_conditions: AtomicBool,
    pub(super) events: Events,
    pub(super) read: Read,
    pub(super) has_room: Option<HasRoom>,
}

impl Running {
    /// The kind of the objects that it is about.
    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where an object is in its queue, as JSON.
    pub(crate) fn queue_state(&self, key: &Key) -> Value {
        let KeyState { position, taken, failures } = self.queue.state_of(key);
        let due = match position {
            Position::Waiting(delay) => self.clock.now().checked_add(delay).ok(),
            Position::Out | Position::Ready => None,
        };
        json!({
            "queued": position != Position::Out,
            "due": due.map(|time| time.to_string()),
            "reconciling": taken,
            "failures": failures,
        })
    }

    /// What is counted of it, now.
    pub(crate) fn measured(&self) -> Measured {
        Measured {
            name: self.name.clone(),
            workers: self.concurrency,
            depth: self.queue.depth(),
            oldest: self.queue.oldest(),
            tally: self.queue.tally(),
            counts: self.counts.clone(),
            workqueue: self.workqueue.clone(),
        }
    }

    /// Who waits, and for what.
    pub(crate) fn waiting(&self) -> &WaitingObjects {
        &self.waiting
    }

    /// The state of its actions, at most this number.
    pub(crate) fn show_actions(&self, most: usize) -> Vec<Value> {
        self.actions.show(most)
    }

    /// Starts its workers.
    pub(crate) fn work(self: &Arc<Self>, tasks: &mut JoinSet<()>) {
        for _ in 0..self.concurrency {
            tasks.spawn(self.clone().work_until_stopped());
        }
        for name in self.actions.names() {
            for _ in 0..self.actions.concurrency {
                tasks.spawn(self.clone().work_on_action(name.clone()));
            }
        }
        for name in self.facts.names() {
            for _ in 0..self.facts.concurrency {
                tasks.spawn(self.clone().work_on_fact(name.clone()));
            }
        }
    }

    /// Lets its workers end after their current reconciles.
    pub(crate) fn stop(&self) {
        self.queue.shutdown();
        self.actions.stop();
        self.facts.stop();
    }

    /// Queues every object there is, because others may have worked on them meanwhile.
    pub(crate) fn look_at_all(&self) {
        for key in self.primary.keys() {
            self.queue.add(key, Priority::LOW);
        }
    }
}

impl Running {
    async fn work_until_stopped(self: Arc<Self>) {
        while let Some(taken) = self.queue.next().await {
            let key = Key::clone(&taken);
            let work = self.workqueue.begin(taken.waited());
            let open = OpenReconcile::begin(&self, &key, taken.priority());
            let began = self.clock.moment();
            // At the highest level: whatever is logged, it is known whose reconcile it was.
            let span = tracing::error_span!(
                "reconcile",
                controller = %self.name,
                kind = %self.kind.kind,
                object = %key,
                reconcile_id = %ReconcileId::next(),
            );
            // Boxed: a worker that waits, and most do, takes no room for a reconcile.
            let reconciled = Box::pin(self.guarded_reconcile(&key)).instrument(span.clone()).await;
            open.end();
            let ended = span.in_scope(|| self.what_next(key, reconciled));
            self.counts.ended(ended, self.clock.moment() - began);
            work.ended();
        }
    }

    /// A reconcile that ends in time, and whose panic ends it and nothing else: what it shares is behind locks that do not poison.
    async fn guarded_reconcile(self: &Arc<Self>, key: &Key) -> Result<Requeue, ReconcileError> {
        let reconciled = AssertUnwindSafe(self.reconcile(key)).catch_unwind();
        match self.clock.timeout(self.reconcile_timeout, reconciled).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(panic)) => Err(ReconcileError::Panic(panic_text(&*panic))),
            Err(_) => Err(ReconcileError::Timeout(self.reconcile_timeout)),
        }
    }

    /// Queues the key again if it is to be looked at without a change.
    fn what_next(&self, key: Key, reconciled: Result<Requeue, ReconcileError>) -> Ended {
        let error = match reconciled {
            Ok(next) => {
                self.queue.forget(&key);
                let longest = self.resync_period.filter(|_| self.primary.get(&key).is_some());
                let after = next.delay().into_iter().chain(longest).min();
                if let Some(after) = after {
                    self.queue.add_at(key, self.clock.moment() + after, Priority::NORMAL);
                }
                return if next.delay().is_some() { Ended::RequeueAfter } else { Ended::Success };
            }
            Err(error) => error,
        };
        let why = chain(&error);
        let label = error.label();
        match Retry::of(&error) {
            Retry::OnChange => {
                self.queue.forget(&key);
                self.waiting.fails(&key, label, &why, None);
                tracing::warn!("not tried again until something changes: {why}");
            }
            Retry::After(after) => {
                self.queue.forget(&key);
                self.queue.add_at(key.clone(), self.clock.moment() + after, Priority::NORMAL);
                self.waiting.fails(&key, label, &why, Some(after));
                tracing::warn!(?after, "trying again: {why}");
            }
            Retry::Conflict => {
                let delay = self.queue.retry(key.clone());
                self.waiting.fails(&key, label, &why, Some(delay));
                tracing::debug!(?delay, "trying again: {why}");
            }
            Retry::Backoff { at_least } => {
                let delay = self.queue.retry_after(key.clone(), at_least);
                self.waiting.fails(&key, label, &why, Some(delay));
                tracing::warn!(?delay, "trying again: {why}");
            }
        }
        error.ended()
    }
}

/// A reconcile that runs. Cut off before its end, when leadership is lost, its object is queued again for when it is regained.
struct OpenReconcile<'a> {
    running: &'a Running,
    key: Key,
    priority: Priority,
    ended: bool,
}

impl<'a> OpenReconcile<'a> {
    fn begin(running: &'a Running, key: &Key, priority: Priority) -> Self {
        running.writer.ledgers().begin(key);
        running.counts.began();
        Self { running, key: key.clone(), priority, ended: false }
    }

    fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for OpenReconcile<'_> {
    fn drop(&mut self) {
        let news = self.running.writer.ledgers().end(&self.key);
        if !self.ended {
            self.running.counts.cut_off();
        }
        if news || !self.ended {
            self.running.queue.add(self.key.clone(), self.priority);
        }
    }
}

/// Another one each reconcile, and in each process: what joins the lines of one reconcile.
struct ReconcileId(u64);

impl ReconcileId {
    fn next() -> Self {
        static NEXT: OnceLock<AtomicU64> = OnceLock::new();
        let next = NEXT.get_or_init(|| {
            let mut random = [0; 8];
            // Without randomness two processes count from the same number, and their times tell them apart.
            let _ = getrandom::fill(&mut random);
            AtomicU64::new(u64::from_ne_bytes(random))
        });
        Self(next.fetch_add(1, Ordering::Relaxed))
    }
}

impl std::fmt::Display for ReconcileId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
