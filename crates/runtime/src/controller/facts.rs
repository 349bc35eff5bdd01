//! Facts at work: polled beside the reconciles, for every object that is there, one poll of one fact at a time.
//!
//! Polls have a queue of their own, like reconciles. What they find is observed by the next reconcile and is safe to lose.

use super::actions_and_facts::{Context, Failure};
use super::running::{Running, panic_text};
use crate::cache::AnyObject;
use crate::fact::Fact;
use crate::key::Key;
use crate::queue::{Backoff, Priority, Queue};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

type Poll =
    Arc<dyn Fn(Arc<dyn AnyObject>, Context) -> BoxFuture<'static, Result<Value, Failure>> + Send + Sync>;

/// How a fact is found out.
pub(super) struct Poller {
    pub(super) poll: Poll,
    pub(super) every: Duration,
    pub(super) within: Duration,
}

/// The facts of one controller.
pub(super) struct Facts {
    pollers: BTreeMap<String, Poller>,
    pub(super) concurrency: usize,
    queue: Queue<(Key, String)>,
    known: Mutex<HashMap<Key, OfObject>>,
    stopped: CancellationToken,
}

#[derive(Default)]
struct OfObject {
    uid: String,
    facts: BTreeMap<String, Fact<Value>>,
}

impl Facts {
    pub(super) fn new(pollers: BTreeMap<String, Poller>, concurrency: usize, clock: Clock) -> Self {
        let queue = Queue::new(clock, Backoff::default());
        Self { pollers, concurrency, queue, known: Mutex::default(), stopped: CancellationToken::new() }
    }

    /// Stops: what is being polled is dropped.
    pub(super) fn stop(&self) {
        self.queue.shutdown();
        self.stopped.cancel();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pollers.is_empty()
    }

    /// An object is new, or declares something else: all about it is asked for at once.
    pub(super) fn ask(&self, key: &Key) {
        for name in self.pollers.keys() {
            self.queue.add((key.clone(), name.clone()), Priority::NORMAL);
        }
    }

    pub(super) fn forget(&self, key: &Key) {
        self.known.lock().remove(key);
    }

    /// All facts about one object, those that are not known too.
    pub(super) fn about(&self, key: &Key, uid: &str) -> BTreeMap<String, Fact<Value>> {
        let known = self.known.lock();
        let of_object = known.get(key).filter(|of_object| of_object.uid == uid);
        let fact = |name: &String| of_object.and_then(|of_object| of_object.facts.get(name)).cloned();
        self.pollers.keys().map(|name| (name.clone(), fact(name).unwrap_or_else(Fact::not_yet))).collect()
    }

    /// Takes a fact in; whether it is news.
    fn learn(&self, key: &Key, uid: &str, name: &str, fact: Fact<Value>) -> bool {
        let mut known = self.known.lock();
        let of_object = known.entry(key.clone()).or_default();
        if of_object.uid != uid {
            *of_object = OfObject { uid: uid.to_owned(), ..OfObject::default() };
        }
        let before = of_object.facts.insert(name.to_owned(), fact.clone());
        !before.unwrap_or_else(Fact::not_yet).says_the_same(&fact)
    }
}

/// A poll that has begun. Dropped before its end, because leadership was lost, it is asked for again.
struct Open<'a> {
    queue: &'a Queue<(Key, String)>,
    asked: Option<(Key, String)>,
}

impl Open<'_> {
    fn end(mut self) {
        self.asked = None;
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.queue.add(asked, Priority::NORMAL);
        }
    }
}

impl Running {
    /// Polls until stopped.
    pub(super) async fn work_on_facts(self: Arc<Self>) {
        while let Some(taken) = self.facts.queue.next().await {
            let (key, name) = <(Key, String)>::clone(&taken);
            let Some(object) = self.primary.get(&key) else {
                // Gone, and with it the reason to ask.
                self.facts.forget(&key);
                continue;
            };
            let Some(poller) = self.facts.pollers.get(&name) else { continue };
            let open = Open { queue: &self.facts.queue, asked: Some((key.clone(), name.clone())) };
            let uid = object.meta().uid.clone().unwrap_or_default();
            let fact = tokio::select! {
                biased;
                () = self.facts.stopped.cancelled() => return,
                fact = Box::pin(self.poll(poller, &key, object)) => fact,
            };
            if let Fact::Unknown { why } = &fact {
                tracing::debug!(controller = %self.name, object = %key, fact = name, "not known: {why}");
            }
            open.end();
            if self.facts.learn(&key, &uid, &name, fact) {
                self.queue.add(key.clone(), Priority::NORMAL);
            }
            if self.primary.get(&key).is_none() {
                self.facts.forget(&key);
                continue;
            }
            self.facts.queue.add_at((key, name), self.clock.moment() + poller.every, Priority::NORMAL);
        }
    }

    async fn poll(&self, poller: &Poller, key: &Key, object: Arc<dyn AnyObject>) -> Fact<Value> {
        let context =
            Context { client: self.writer.client().clone(), clock: self.clock.clone(), key: key.clone() };
        let poll = AssertUnwindSafe(async { (poller.poll)(object, context).await }).catch_unwind();
        let why = match self.clock.timeout(poller.within, poll).await {
            Ok(Ok(Ok(value))) => return Fact::Known { value, at: self.clock.now() },
            Ok(Ok(Err(failure))) => failure.chain(),
            Ok(Err(panic)) => format!("the poll panicked: {}", panic_text(&*panic)),
            Err(late) => format!("the poll was {late}"),
        };
        Fact::Unknown { why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let poll: Poll = Arc::new(|_, _| Box::pin(async { Ok(Value::Null) }));
        let second = Duration::from_secs(1);
        let poller = Poller { poll, every: second, within: second };
        Facts::new([("lag".to_owned(), poller)].into(), 1, Clock::real())
    }

    fn key() -> Key {
        Key::new("c".into(), Some("ns"), "n")
    }

    fn known(value: i32) -> Fact<Value> {
        Fact::Known { value: value.into(), at: windlass_clock::Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn a_fact_is_about_one_object_and_not_about_the_next_of_its_name() {
        let facts = facts();
        assert!(
            facts.about(&key(), "u")["lag"].known().is_none(),
            "not asked for is unknown, and not absent"
        );
        assert!(facts.learn(&key(), "u", "lag", known(1)));
        assert!(!facts.learn(&key(), "u", "lag", known(1)), "the same is no news");
        assert_eq!(facts.about(&key(), "u")["lag"], known(1));
        assert!(facts.about(&key(), "v")["lag"].known().is_none());
        assert!(facts.learn(&key(), "v", "lag", known(1)), "of another object it is news");
        facts.forget(&key());
        assert!(facts.about(&key(), "v")["lag"].known().is_none());
    }

    #[test]
    fn a_poll_that_was_cut_off_is_asked_for_again() {
        let facts = facts();
        let open = || Open { queue: &facts.queue, asked: Some((key(), "lag".to_owned())) };
        open().end();
        assert!(facts.queue.is_empty());
        drop(open());
        assert_eq!(facts.queue.len(), 1);
    }
}
