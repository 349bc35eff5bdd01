//! The store of the embedded Kubernetes API: every object, every version that can still be read, and the order in which they
//! came to be. It knows keys and JSON, and nothing of kinds or requests.
//!
//! One lock guards the resources and is held for a compare, a swap and an append; bodies are encoded before it is taken and
//! encodings are made after it was given back. [`Store::new`] keeps everything in memory; behind [`Store::open`] a log on
//! disk takes each change first, and nothing is visible before it is durable: that is why [`Store::commit`] is
//! asynchronous.
//!
//! The store keeps bytes, not trees. An object is encoded once, outside every lock and without its resourceVersion, which
//! is inserted when it is committed (`body.rs`). A watcher is a place in a shared, bounded log (`feed.rs`), and the
//! encodings of an event are made once for all watchers (`entry.rs`). `log` is the durable form: one writer, a batch of
//! changes to a checksummed frame, a sync, and only then are they visible; `log/simulated.rs` is the disk that it is tested
//! on.

mod body;
mod entry;
mod feed;
mod key;
mod list;
mod log;
mod resource;
mod state;
mod template;
#[cfg(test)]
mod tests;

pub use body::Body;
pub use entry::{Entry, Event, Form, Kind};
pub use feed::{Lagged, Watcher};
pub use key::{Key, Revision};
pub use list::{At, ListQuery, Page};
pub use log::OpenError;
pub use template::ObjectTemplate;

use log::WriterThread;
use state::State;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Clock;

/// How much history is kept, for each resource on its own: a busy one does not push out what watchers of a quiet one need.
/// And how durable a store in a directory is.
#[derive(Debug, Clone)]
pub struct Options {
    /// The largest number of events that are kept of one resource.
    pub history_events: usize,
    /// The largest number of bytes, roughly, that superseded and deleted objects of one resource may take.
    pub history_bytes: usize,
    /// Nothing older than this, give or take a tenth.
    pub history_age: Duration,
    /// Whether a change is on the disk before it is acknowledged. Without it, what the process wrote outlives the process,
    /// but not the machine: for tests.
    pub fsync: bool,
    /// Whether to open a directory of which the end of what was acknowledged is missing. What is missing is lost then.
    pub accept_data_loss: bool,
}

impl Default for Options {
    /// As long as Kubernetes keeps it: five minutes; and no more than a small machine can hold.
    fn default() -> Self {
        Self {
            history_events: 16_384,
            history_bytes: 32 << 20,
            history_age: Duration::from_secs(300),
            fsync: true,
            accept_data_loss: false,
        }
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
    /// The disk did not take it. Nothing changed; it may be tried again.
    #[error("the change could not be stored: {0}")]
    NotStored(Arc<std::io::Error>),
}

/// The store. Cheap to share; all its methods take `&self`.
#[derive(Debug)]
pub struct Store {
    state: Arc<State>,
    /// Who takes changes to the disk first; nobody, if everything is in memory.
    writing: Option<WriterThread>,
}

impl Store {
    /// An empty store in memory, at revision 1: 0 means "any version" to clients.
    pub fn new(options: Options, clock: Clock) -> Arc<Self> {
        Arc::new(Self { state: Arc::new(State::new(options, clock, 1)), writing: None })
    }

    /// The store in `directory`, which is made if it is missing, with everything that was ever acknowledged. Revisions go
    /// on where they were. History does not: what came before counts as compacted.
    ///
    /// It reads files and may take a while: call it where blocking is allowed. Dropping the store waits for the change
    /// that is being written, if there is one.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong with the directory.
    pub fn open(directory: &Path, options: Options, clock: Clock) -> Result<Arc<Self>, OpenError> {
        let (state, writing) = log::open(directory, options, clock)?;
        Ok(Arc::new(Self { state, writing: Some(writing) }))
    }

    /// The clock that history ages by.
    pub fn clock(&self) -> &Clock {
        &self.state.clock
    }

    /// Does it outlive the process?
    pub fn is_durable(&self) -> bool {
        self.writing.is_some()
    }

    /// The newest revision.
    pub fn revision(&self) -> Revision {
        Revision(self.state.revision())
    }

    /// Whether the last change that was made could be written. It says nothing of the next.
    pub fn can_write(&self) -> bool {
        !self.state.failing.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The oldest revision at which `resource` can be read, and after which it can be watched.
    pub fn oldest(&self, resource: &str) -> Revision {
        Revision(self.state.resources.read().oldest(resource))
    }

    /// The object as it is.
    pub fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        self.state.resources.read().current(key, &key.path())
    }

    /// The object as it was at `revision`; a revision that is still to come means as it is.
    ///
    /// # Errors
    /// [`Compacted`] when that is forgotten.
    pub fn get_at(&self, key: &Key, revision: Revision) -> Result<Option<Arc<Entry>>, Compacted> {
        let resources = self.state.resources.read();
        Compacted::check(revision, resources.oldest(&key.resource))?;
        let Some(objects) = resources.by_resource.get(&*key.resource) else { return Ok(None) };
        Ok(objects.chains.get(key.path().as_str()).and_then(|chain| chain.at(revision.0)).cloned())
    }

    /// Makes one change, if what is there is what it expects. Returns the object as it is after it; for a deletion, its
    /// last form at the deletion's revision. If the future is dropped, the change may be made all the same.
    ///
    /// # Errors
    /// [`CommitError`] says what was found instead.
    pub async fn commit(&self, change: Change) -> Result<Arc<Entry>, CommitError> {
        match &self.writing {
            None => self.state.commit(change),
            Some(writing) => writing.commit(change).await,
        }
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
        let mut resources = self.state.resources.write();
        let objects = resources.resource(resource);
        Compacted::check(after, objects.compacted)?;
        let feed = match namespace {
            Some(namespace) => objects.namespace_feed(&namespace.into()),
            None => objects.feed.clone(),
        };
        Ok(Watcher::new(feed, after, self.state.published.clone()))
    }

    /// Forgets all history before `up_to`. What was current at `up_to` can still be read.
    pub fn compact(&self, up_to: Revision) {
        let mut resources = self.state.resources.write();
        let up_to = up_to.0.min(resources.revision);
        resources.compacted = resources.compacted.max(up_to);
        for objects in resources.by_resource.values_mut() {
            objects.compact(up_to);
        }
    }

    /// Waits until the store has reached `revision`.
    pub async fn wait_for(&self, revision: Revision) {
        loop {
            let mut advanced = pin!(self.state.advanced.notified());
            advanced.as_mut().enable();
            if self.revision() >= revision {
                return;
            }
            advanced.await;
        }
    }
}
