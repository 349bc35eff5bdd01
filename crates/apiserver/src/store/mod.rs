//! The store: every object of the API, every version that can still be read, and the order in which they came to be.
//!
//! One lock guards the tables and is held for a compare, a swap and an append; bodies are encoded before it is taken and
//! encodings are made after it was given back. A durable form will stand behind the same interface: that is why
//! [`Store::commit`] is asynchronous.

mod body;
mod entry;
mod feed;
mod key;
mod list;
mod table;
#[cfg(test)]
mod tests;

pub use body::Body;
pub use entry::{Entry, Event, Form, Kind};
pub use feed::{Lagged, Watcher};
pub use key::{Key, Revision};
pub use list::{At, ListQuery, Page};

use parking_lot::RwLock;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use table::Table;
use tokio::sync::Notify;
use windlass_clock::{Clock, Moment};

/// How much history is kept, for each resource on its own: a busy one does not push out what watchers of a quiet one need.
#[derive(Debug, Clone)]
pub struct Options {
    /// At most so many events of one resource.
    pub history_events: usize,
    /// At most about so many bytes of superseded and deleted objects of one resource.
    pub history_bytes: usize,
    /// Nothing older than this, give or take a tenth.
    pub history_age: Duration,
}

impl Default for Options {
    /// As long as Kubernetes keeps it: five minutes; and no more than a small machine can hold.
    fn default() -> Self {
        Self { history_events: 16_384, history_bytes: 32 << 20, history_age: Duration::from_secs(300) }
    }
}

/// What was asked for lies before the history that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("history before revision {oldest} has been compacted")]
pub struct Compacted {
    /// The oldest revision that can be read.
    pub oldest: Revision,
}

/// One change to one object, conditional on what is there.
#[derive(Debug)]
pub enum Change {
    /// Adds an object that must not be there.
    Create {
        /// Which object.
        key: Key,
        /// What it becomes.
        body: Body,
    },
    /// Replaces an object that must be at `expected`. If it already is equal to `body`, no revision is made.
    Update {
        /// Which object.
        key: Key,
        /// The version that `body` was made from.
        expected: Revision,
        /// What it becomes.
        body: Body,
    },
    /// Removes an object that must be at `expected`. What is shown of it afterwards is what was stored, whatever the
    /// write that removed it would have made of it.
    Delete {
        /// Which object.
        key: Key,
        /// The version on which it was decided.
        expected: Revision,
    },
}

/// Why a change was not made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// To be created, but already there.
    #[error("the object exists at revision {}", .0.revision())]
    Exists(Arc<Entry>),
    /// There, but at another version than expected.
    #[error("the object is at revision {}", .0.revision())]
    Conflict(Arc<Entry>),
    /// Not there.
    #[error("the object does not exist")]
    Missing,
}

/// The store. Cheap to share; all its methods take `&self`.
#[derive(Debug)]
pub struct Store {
    options: Options,
    clock: Clock,
    tables: RwLock<Tables>,
    /// The revision that readers see, apart from the lock for those who only want the number.
    published: Arc<AtomicU64>,
    advanced: Notify,
}

#[derive(Debug)]
struct Tables {
    revision: u64,
    /// What [`Store::compact`] was last called with: holds for resources that have no table yet.
    compacted: u64,
    by_resource: HashMap<Arc<str>, Table>,
    next_expiry: Moment,
}

impl Tables {
    fn table(&mut self, resource: &str) -> &mut Table {
        if !self.by_resource.contains_key(resource) {
            self.by_resource.insert(resource.into(), Table::new(self.compacted));
        }
        self.by_resource.get_mut(resource).expect("it was inserted if it was missing")
    }

    fn oldest(&self, resource: &str) -> u64 {
        self.by_resource.get(resource).map_or(self.compacted, |table| table.compacted)
    }

    fn expire(&mut self, now: Moment, options: &Options) {
        if now < self.next_expiry {
            return;
        }
        let pause = options.history_age / 10;
        self.next_expiry = now + pause.max(Duration::from_millis(1));
        for table in self.by_resource.values_mut() {
            table.expire(now, options.history_age);
        }
    }
}

impl Store {
    /// An empty store, at revision 1: 0 means "any version" to clients.
    pub fn new(options: Options, clock: Clock) -> Arc<Self> {
        let next_expiry = clock.moment();
        Arc::new(Self {
            options,
            clock,
            tables: RwLock::new(Tables {
                revision: 1,
                compacted: 1,
                by_resource: HashMap::new(),
                next_expiry,
            }),
            published: Arc::new(AtomicU64::new(1)),
            advanced: Notify::new(),
        })
    }

    /// The clock that history ages by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The newest revision.
    pub fn revision(&self) -> Revision {
        Revision(self.published.load(Ordering::Acquire))
    }

    /// The oldest revision at which `resource` can be read, and after which it can be watched.
    pub fn oldest(&self, resource: &str) -> Revision {
        Revision(self.tables.read().oldest(resource))
    }

    /// The object as it is.
    pub fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        let tables = self.tables.read();
        tables.by_resource.get(&*key.resource)?.chains.get(key.path().as_str())?.current.clone()
    }

    /// The object as it was at `revision`; a revision that is still to come means as it is.
    ///
    /// # Errors
    /// [`Compacted`] when that is forgotten.
    pub fn get_at(&self, key: &Key, revision: Revision) -> Result<Option<Arc<Entry>>, Compacted> {
        let tables = self.tables.read();
        Compacted::check(revision, tables.oldest(&key.resource))?;
        let Some(table) = tables.by_resource.get(&*key.resource) else { return Ok(None) };
        Ok(table.chains.get(key.path().as_str()).and_then(|chain| chain.at(revision.0)).cloned())
    }

    /// Makes one change, if what is there is what it expects. Returns the object as it is after it; for a deletion, its
    /// last form at the deletion's revision.
    ///
    /// # Errors
    /// [`CommitError`] says what was found instead.
    pub async fn commit(&self, change: Change) -> Result<Arc<Entry>, CommitError> {
        let now = self.clock.moment();
        let (entry, feeds) = {
            let mut tables = self.tables.write();
            let revision = Revision(tables.revision + 1);
            let (path, event) = match tables.decide(change, revision, now)? {
                Decision::Unchanged(entry) => return Ok(entry),
                Decision::Changed { path, event } => (path, event),
            };
            let entry = event.entry.clone();
            let feeds = tables.table(&entry.key().resource).record(path, event, &self.options);
            tables.revision = revision.0;
            tables.expire(now, &self.options);
            self.published.store(revision.0, Ordering::Release);
            (entry, feeds)
        };
        // The JSON is wanted by whoever made the change and by every watcher: made here once, outside the lock.
        entry.json();
        feeds.iter().for_each(|feed| feed.wake());
        self.advanced.notify_waiters();
        Ok(entry)
    }

    /// Follows the changes of `resource` that come after `after`, in all namespaces or in one.
    ///
    /// # Errors
    /// [`Compacted`] when some of them are forgotten.
    pub fn watch(
        &self,
        resource: &str,
        namespace: Option<&str>,
        after: Revision,
    ) -> Result<Watcher, Compacted> {
        let mut tables = self.tables.write();
        let table = tables.table(resource);
        Compacted::check(after, table.compacted)?;
        let feed = match namespace {
            Some(namespace) => table.namespace_feed(&namespace.into()),
            None => table.feed.clone(),
        };
        Ok(Watcher::new(feed, after, self.published.clone()))
    }

    /// Forgets all history before `up_to`. What was current at `up_to` can still be read.
    pub fn compact(&self, up_to: Revision) {
        let mut tables = self.tables.write();
        let up_to = up_to.0.min(tables.revision);
        tables.compacted = tables.compacted.max(up_to);
        for table in tables.by_resource.values_mut() {
            table.compact(up_to);
        }
    }

    /// Waits until the store has reached `revision`.
    pub async fn wait_for(&self, revision: Revision) {
        loop {
            let mut advanced = pin!(self.advanced.notified());
            advanced.as_mut().enable();
            if self.revision() >= revision {
                return;
            }
            advanced.await;
        }
    }
}

enum Decision {
    Unchanged(Arc<Entry>),
    Changed { path: String, event: Event },
}

impl Tables {
    /// The comparison of compare-and-swap: what the change amounts to, given what is there.
    fn decide(&self, change: Change, revision: Revision, now: Moment) -> Result<Decision, CommitError> {
        let current = |key: &Key, path: &str| {
            let table = self.by_resource.get(&*key.resource)?;
            table.chains.get(path)?.current.clone()
        };
        let expect = |key: &Key, path: &str, expected: Revision| match current(key, path) {
            None => Err(CommitError::Missing),
            Some(found) if found.revision() != expected => Err(CommitError::Conflict(found)),
            Some(found) => Ok(found),
        };
        match change {
            Change::Create { key, body } => {
                let path = key.path();
                if let Some(found) = current(&key, &path) {
                    return Err(CommitError::Exists(found));
                }
                let entry = Arc::new(Entry::new(key, revision, body));
                Ok(Decision::Changed { path, event: Event::new(Kind::Created, entry, None, now) })
            }
            Change::Update { key, expected, body } => {
                let path = key.path();
                let before = expect(&key, &path, expected)?;
                if before.same(&body) {
                    return Ok(Decision::Unchanged(before));
                }
                // The old version's key is the same and already in memory.
                let entry = Arc::new(Entry::new(before.key().clone(), revision, body));
                Ok(Decision::Changed { path, event: Event::new(Kind::Updated, entry, Some(before), now) })
            }
            Change::Delete { key, expected } => {
                let path = key.path();
                let before = expect(&key, &path, expected)?;
                let entry = Arc::new(before.at(revision));
                Ok(Decision::Changed { path, event: Event::new(Kind::Deleted, entry, Some(before), now) })
            }
        }
    }
}
