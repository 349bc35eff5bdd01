//! What a cache holds and what became of its watches, in numbers.

use super::scope::Scope;
use crate::kind::Kind;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of objects that cannot be read and are named; the others are only counted.
const NAMED: usize = 16;

/// What is held of one kind and scope, and what became of its watch until now.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::cache::{Cache, Namespaces};
///
/// let cache = Cache::new("local".into(), Namespaces::All);
/// cache.store::<ConfigMap>();
/// let stats = cache.stats();
/// assert_eq!((stats[0].kind.kind.as_ref(), stats[0].objects, stats[0].synced), ("ConfigMap", 0, false));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The kind.
    pub kind: Kind,
    /// Which of its objects.
    pub scope: String,
    /// Whether only their metadata is held.
    pub metadata_only: bool,
    /// Whether the first list is in.
    pub synced: bool,
    /// How many objects are held.
    pub objects: usize,
    /// About how many bytes they take.
    pub bytes: u64,
    /// Events of watches, bookmarks apart; a list counts none.
    pub events: u64,
    /// Lists after the first one.
    pub relists: u64,
    /// Watches and lists that ended otherwise than the server announced.
    pub disconnects: u64,
    /// How often an object could not be read, and was passed over.
    pub undecodable: u64,
    /// Which objects cannot be read now, and why; the first few.
    pub unreadable: BTreeMap<String, String>,
    /// What keeps the watch from running now.
    pub trouble: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) events: AtomicU64,
    pub(super) lists: AtomicU64,
    pub(super) disconnects: AtomicU64,
    pub(super) undecodable: AtomicU64,
    unreadable: Mutex<BTreeMap<String, String>>,
    /// By the namespace of a watch.
    troubles: Mutex<BTreeMap<String, String>>,
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
    pub(super) fn unreadable(&self, name: &str, why: String) {
        count(&self.undecodable);
        let mut unreadable = self.unreadable.lock();
        if unreadable.len() < NAMED || unreadable.contains_key(name) {
            unreadable.insert(name.to_owned(), why);
        }
    }

    /// An object can be read, or is gone.
    pub(super) fn readable(&self, name: &dyn std::fmt::Display) {
        let mut unreadable = self.unreadable.lock();
        if !unreadable.is_empty() {
            unreadable.remove(&name.to_string());
        }
    }

    /// A list is about to tell anew what cannot be read.
    pub(super) fn forget_unreadable(&self, namespace: Option<&str>) {
        let within = namespace.map(|namespace| format!("{namespace}/"));
        self.unreadable
            .lock()
            .retain(|name, _| within.as_ref().is_some_and(|within| !name.starts_with(within)));
    }

    pub(super) fn trouble(&self, part: Option<&str>, why: Option<String>) {
        let part = part.unwrap_or_default();
        let mut troubles = self.troubles.lock();
        match why {
            Some(why) => drop(troubles.insert(part.to_owned(), why)),
            None => drop(troubles.remove(part)),
        }
    }

    pub(super) fn stats(&self, kind: &Kind, scope: &Scope, parts: usize) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            kind: kind.clone(),
            scope: scope.to_string(),
            metadata_only: false,
            synced: false,
            objects: 0,
            bytes: 0,
            events: read(&self.events),
            relists: read(&self.lists).saturating_sub(parts as u64),
            disconnects: read(&self.disconnects),
            undecodable: read(&self.undecodable),
            unreadable: self.unreadable.lock().clone(),
            trouble: self.troubles.lock().values().next().cloned(),
        }
    }
}
