//! What the store knows: the resources behind its lock, how a change is judged against them, and how it becomes visible.

use super::entry::{Entry, Event, Kind};
use super::feed::Feed;
use super::key::{Key, Revision};
use super::resource::ResourceState;
use super::{Change, CommitError, Options};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use windlass_clock::{Clock, Moment};

/// Everything that readers and the writer share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) options: Options,
    pub(super) clock: Clock,
    pub(super) resources: RwLock<Resources>,
    /// The revision that readers see, apart from the lock for those who only want the number.
    pub(super) published: Arc<AtomicU64>,
    pub(super) advanced: Notify,
    /// The last change could not be written.
    pub(super) failing: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Resources {
    pub(super) revision: u64,
    /// What [`Store::compact`](super::Store::compact) was last called with, or where a durable store was opened: holds for
    /// resources that have no objects yet.
    pub(super) compacted: u64,
    pub(super) by_resource: HashMap<Arc<str>, ResourceState>,
    next_expiry: Moment,
}

/// A change that was judged possible: where it goes, and what it will be in history.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) path: String,
    pub(super) event: Event,
}

/// What a change amounts to.
pub(super) enum Decision {
    Unchanged(Arc<Entry>),
    Changed(Decided),
}

// === impl State ===

impl State {
    /// Nothing in it yet, and nothing readable before `revision`.
    pub(super) fn new(options: Options, clock: Clock, revision: u64) -> Self {
        let resources = Resources {
            revision,
            compacted: revision,
            by_resource: HashMap::new(),
            next_expiry: clock.moment(),
        };
        Self {
            options,
            clock,
            resources: RwLock::new(resources),
            published: Arc::new(AtomicU64::new(revision)),
            advanced: Notify::new(),
            failing: AtomicBool::new(false),
        }
    }

    pub(super) fn revision(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Judges and makes one change at once, for a store that has nothing to wait for.
    pub(super) fn commit(&self, change: Change) -> Result<Arc<Entry>, CommitError> {
        let now = self.clock.moment();
        let (entry, feeds) = {
            let mut resources = self.resources.write();
            let revision = Revision(resources.revision + 1);
            let decision = decide(change, revision, now, |key, path| resources.current(key, path))?;
            let decided = match decision {
                Decision::Unchanged(entry) => return Ok(entry),
                Decision::Changed(decided) => decided,
            };
            let entry = decided.event.entry.clone();
            (entry, self.record(&mut resources, [decided], now))
        };
        // The JSON is wanted by whoever made the change and by every watcher: made here once, outside the lock.
        entry.json();
        self.wake(&feeds);
        Ok(entry)
    }

    /// Makes changes visible that were judged on the resources as they are, in their order and all at once.
    pub(super) fn publish(&self, changes: impl IntoIterator<Item = Decided>, now: Moment) {
        let feeds = {
            let mut resources = self.resources.write();
            self.record(&mut resources, changes, now)
        };
        self.wake(&feeds);
    }

    fn record(
        &self,
        resources: &mut Resources,
        changes: impl IntoIterator<Item = Decided>,
        now: Moment,
    ) -> Vec<Arc<Feed>> {
        let mut feeds: Vec<Arc<Feed>> = Vec::new();
        for Decided { path, event } in changes {
            let (revision, entry) = (event.revision().0, event.entry.clone());
            for feed in resources.resource(&entry.key().resource).record(path, event, &self.options) {
                // Neighbours in a batch are mostly of one resource: a look at the last few is enough to wake each once.
                if !feeds.iter().rev().take(4).any(|known| Arc::ptr_eq(known, &feed)) {
                    feeds.push(feed);
                }
            }
            resources.revision = revision;
        }
        resources.expire(now, &self.options);
        self.published.store(resources.revision, Ordering::Release);
        feeds
    }

    fn wake(&self, feeds: &[Arc<Feed>]) {
        feeds.iter().for_each(|feed| feed.wake());
        self.advanced.notify_waiters();
    }
}

// === impl Resources ===

impl Resources {
    pub(super) fn resource(&mut self, resource: &str) -> &mut ResourceState {
        if !self.by_resource.contains_key(resource) {
            self.by_resource.insert(resource.into(), ResourceState::new(self.compacted));
        }
        self.by_resource.get_mut(resource).expect("it was inserted if it was missing")
    }

    pub(super) fn oldest(&self, resource: &str) -> u64 {
        self.by_resource.get(resource).map_or(self.compacted, |objects| objects.compacted)
    }

    pub(super) fn current(&self, key: &Key, path: &str) -> Option<Arc<Entry>> {
        self.by_resource.get(&*key.resource)?.chains.get(path)?.current.clone()
    }

    fn expire(&mut self, now: Moment, options: &Options) {
        if now < self.next_expiry {
            return;
        }
        let pause = options.history_age / 10;
        self.next_expiry = now + pause.max(Duration::from_millis(1));
        for objects in self.by_resource.values_mut() {
            objects.expire(now, options.history_age);
        }
    }
}

/// The comparison of compare-and-swap: what the change amounts to, given what is there.
pub(super) fn decide(
    change: Change,
    revision: Revision,
    now: Moment,
    current: impl Fn(&Key, &str) -> Option<Arc<Entry>>,
) -> Result<Decision, CommitError> {
    let expect = |key: &Key, path: &str, expected: Revision| match current(key, path) {
        None => Err(CommitError::Missing),
        Some(found) if found.revision() != expected => Err(CommitError::Conflict(found)),
        Some(found) => Ok(found),
    };
    let changed = |path, kind, entry, before| {
        Ok(Decision::Changed(Decided { path, event: Event::new(kind, Arc::new(entry), before, now) }))
    };
    match change {
        Change::Create { key, body } => {
            let path = key.path();
            if let Some(found) = current(&key, &path) {
                return Err(CommitError::Exists(found));
            }
            changed(path, Kind::Created, Entry::new(key, revision, body), None)
        }
        Change::Update { key, expected, body } => {
            let path = key.path();
            let before = expect(&key, &path, expected)?;
            if before.same(&body) {
                return Ok(Decision::Unchanged(before));
            }
            // The old version's key is the same and already in memory.
            let entry = Entry::new(before.key().clone(), revision, body);
            changed(path, Kind::Updated, entry, Some(before))
        }
        Change::Delete { key, expected } => {
            let path = key.path();
            let before = expect(&key, &path, expected)?;
            changed(path, Kind::Deleted, before.at(revision), Some(before))
        }
    }
}
