//! Facts at work: polled beside the reconciles, for every object whose decisions read them, one poll of one fact at a time.
//!
//! Each fact has a queue and workers of its own, so that one that is slow to find out keeps no other from being known. What polls
//! find is observed by the next reconcile and is safe to lose. A fact that a decision no longer reads is no longer polled, and
//! forgotten: read again, it is not known until it was polled again.

use super::actions_and_facts::{Context, Failure};
use super::owning::Parent;
use super::running::{Running, panic_text};
use crate::cache::AnyObject;
use crate::fact::Fact;
use crate::key::Key;
use crate::queue::{Backoff, Priority, Queue};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
    lanes: BTreeMap<String, Lane>,
    /// Of each fact.
    pub(super) concurrency: usize,
    known: Mutex<HashMap<Key, OfObject>>,
    stopped: CancellationToken,
}

struct Lane {
    poller: Poller,
    queue: Queue<Key>,
}

#[derive(Default)]
struct OfObject {
    uid: String,
    facts: BTreeMap<String, Fact<Value>>,
    /// Those that its last decision read.
    wanted: BTreeSet<String>,
}

impl Facts {
    pub(super) fn new(pollers: BTreeMap<String, Poller>, concurrency: usize, clock: Clock) -> Self {
        let lane = |poller| Lane { poller, queue: Queue::new(clock.clone(), Backoff::default()) };
        let lanes = pollers.into_iter().map(|(name, poller)| (name, lane(poller))).collect();
        Self { lanes, concurrency, known: Mutex::default(), stopped: CancellationToken::new() }
    }

    /// Stops: what is being polled is dropped.
    pub(super) fn stop(&self) {
        self.lanes.values().for_each(|lane| lane.queue.shutdown());
        self.stopped.cancel();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.lanes.keys()
    }

    /// An object declares something else: what its decisions read about it is asked for at once.
    pub(super) fn ask(&self, key: &Key) {
        let wanted = self.known.lock().get(key).map(|of_object| of_object.wanted.clone()).unwrap_or_default();
        self.poll_now(key, wanted.iter());
    }

    fn poll_now<'a>(&self, key: &Key, names: impl Iterator<Item = &'a String>) {
        for lane in names.filter_map(|name| self.lanes.get(name)) {
            lane.queue.add(key.clone(), Priority::NORMAL);
        }
    }

    /// A decision about an object read these: those that none read before are asked for at once, and others no longer.
    pub(super) fn want(&self, key: &Key, uid: &str, names: BTreeSet<String>) {
        let news: Vec<String> = {
            let mut known = self.known.lock();
            let of_object = OfObject::of(&mut known, key, uid);
            let news = names.difference(&of_object.wanted).cloned().collect();
            of_object.facts.retain(|name, _| names.contains(name));
            of_object.wanted = names;
            news
        };
        self.poll_now(key, news.iter());
    }

    fn is_wanted(&self, key: &Key, uid: &str, name: &str) -> bool {
        let known = self.known.lock();
        known.get(key).is_some_and(|of_object| of_object.uid == uid && of_object.wanted.contains(name))
    }

    pub(super) fn forget(&self, key: &Key) {
        self.known.lock().remove(key);
    }

    /// All facts about one object, those that are not known too.
    pub(super) fn about(&self, key: &Key, uid: &str) -> BTreeMap<String, Fact<Value>> {
        let known = self.known.lock();
        let of_object = known.get(key).filter(|of_object| of_object.uid == uid);
        let fact = |name: &String| of_object.and_then(|of_object| of_object.facts.get(name)).cloned();
        self.lanes.keys().map(|name| (name.clone(), fact(name).unwrap_or_else(Fact::not_yet))).collect()
    }

    /// Takes a fact in; whether it is news.
    fn learn(&self, key: &Key, uid: &str, name: &str, fact: Fact<Value>) -> bool {
        let mut known = self.known.lock();
        let of_object = OfObject::of(&mut known, key, uid);
        if !of_object.wanted.contains(name) {
            // Nobody reads it any more.
            return false;
        }
        let before = of_object.facts.insert(name.to_owned(), fact.clone());
        !before.unwrap_or_else(Fact::not_yet).says_the_same(&fact)
    }
}

impl OfObject {
    /// What is known of this object, and not of an earlier one of its name.
    fn of<'a>(known: &'a mut HashMap<Key, Self>, key: &Key, uid: &str) -> &'a mut Self {
        let of_object = known.entry(key.clone()).or_default();
        if of_object.uid != uid {
            *of_object = Self { uid: uid.to_owned(), ..Self::default() };
        }
        of_object
    }
}

/// A poll that has begun. Dropped before its end, because leadership was lost, it is asked for again.
struct Open<'a> {
    queue: &'a Queue<Key>,
    asked: Option<Key>,
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
    /// A decision about an object read these facts.
    pub(super) fn want_facts(&self, parent: &Parent, names: BTreeSet<String>) {
        if self.facts.is_empty() {
            return;
        }
        self.facts.want(&parent.key, &parent.uid, names);
        if self.primary.get(&parent.key).is_none() {
            // Gone meanwhile: nobody else tells.
            self.facts.forget(&parent.key);
        }
    }

    /// Polls one fact until stopped.
    pub(super) async fn work_on_fact(self: Arc<Self>, name: String) {
        let Some(Lane { poller, queue }) = self.facts.lanes.get(&name) else { return };
        while let Some(taken) = queue.next().await {
            let key = Key::clone(&taken);
            let Some(object) = self.primary.get(&key) else {
                // Gone, and with it the reason to ask.
                self.facts.forget(&key);
                continue;
            };
            let uid = object.meta().uid.clone().unwrap_or_default();
            if !self.facts.is_wanted(&key, &uid, &name) {
                continue;
            }
            let open = Open { queue, asked: Some(key.clone()) };
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
            queue.add_at(key, self.clock.moment() + poller.every, Priority::NORMAL);
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
        assert!(!facts.learn(&key(), "u", "lag", known(1)), "nobody reads it");
        let wanted = || BTreeSet::from(["lag".to_owned()]);
        facts.want(&key(), "u", wanted());
        assert_eq!(facts.lanes["lag"].queue.len(), 1, "what is read is asked for");
        assert!(facts.learn(&key(), "u", "lag", known(1)));
        assert!(!facts.learn(&key(), "u", "lag", known(1)), "the same is no news");
        assert_eq!(facts.about(&key(), "u")["lag"], known(1));
        assert!(facts.about(&key(), "v")["lag"].known().is_none());
        facts.want(&key(), "v", wanted());
        assert!(facts.learn(&key(), "v", "lag", known(1)), "of another object it is news");
        facts.want(&key(), "v", BTreeSet::new());
        assert!(facts.about(&key(), "v")["lag"].known().is_none(), "what is read no longer is forgotten");
        facts.want(&key(), "v", wanted());
        assert!(facts.learn(&key(), "v", "lag", known(1)));
        facts.forget(&key());
        assert!(facts.about(&key(), "v")["lag"].known().is_none());
    }

    #[test]
    fn a_poll_that_was_cut_off_is_asked_for_again() {
        let facts = facts();
        let queue = &facts.lanes["lag"].queue;
        let open = || Open { queue, asked: Some(key()) };
        open().end();
        assert!(queue.is_empty());
        drop(open());
        assert_eq!(queue.len(), 1);
    }
}
