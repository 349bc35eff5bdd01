//! The objects of one resource: a chain of versions per key, and the history that they share.

use super::Options;
use super::entry::{Entry, Event};
use super::feed::Feed;
use super::key::Revision;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Moment;

/// All versions of one object that can still be read.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// The object now; absent if it was deleted.
    pub(super) current: Option<Arc<Entry>>,
    /// The revision that made it so.
    since: u64,
    /// What was before, oldest first.
    past: VecDeque<(u64, Option<Arc<Entry>>)>,
}

#[derive(Debug)]
pub(super) struct ResourceState {
    pub(super) chains: BTreeMap<Arc<str>, Chain>,
    /// The oldest revision that can be read.
    pub(super) compacted: u64,
    pub(super) feed: Arc<Feed>,
    namespaces: HashMap<Arc<str>, Arc<Feed>>,
    /// The cost of what is in `feed`.
    cost: usize,
}

// === impl Chain ===

impl Chain {
    /// The object as it was at `revision`, which must not have been compacted.
    pub(super) fn at(&self, revision: u64) -> Option<&Arc<Entry>> {
        if self.since <= revision {
            return self.current.as_ref();
        }
        let after = self.past.partition_point(|(since, _)| *since <= revision);
        self.past.get(after.checked_sub(1)?)?.1.as_ref()
    }

    fn put(&mut self, revision: u64, current: Option<Arc<Entry>>) {
        let before = std::mem::replace(&mut self.current, current);
        if self.since > 0 {
            self.past.push_back((self.since, before));
        }
        self.since = revision;
    }

    /// Forgets what nobody can read who reads at `oldest` or later. Says whether anything is left.
    fn trim(&mut self, oldest: u64) -> bool {
        while let Some((since, object)) = self.past.front() {
            let next = self.past.get(1).map_or(self.since, |(since, _)| *since);
            let unreachable = next <= oldest;
            let absent = object.is_none() && *since <= oldest;
            if !unreachable && !absent {
                break;
            }
            self.past.pop_front();
        }
        if self.past.is_empty() {
            self.past.shrink_to_fit();
        }
        self.current.is_some() || self.since > oldest || !self.past.is_empty()
    }
}

// === impl ResourceState ===

impl ResourceState {
    pub(super) fn new(compacted: u64) -> Self {
        Self { chains: BTreeMap::new(), compacted, feed: Arc::default(), namespaces: HashMap::new(), cost: 0 }
    }

    /// The feed of one namespace. What it holds is in the resource's feed as well.
    pub(super) fn namespace_feed(&mut self, namespace: &Arc<str>) -> Arc<Feed> {
        self.namespaces.entry(namespace.clone()).or_default().clone()
    }

    /// Makes a change part of the current state and of history. Returns the feeds to wake.
    pub(super) fn record(&mut self, path: String, event: Event, options: &Options) -> [Arc<Feed>; 2] {
        let event = Arc::new(event);
        let revision = event.revision().0;
        let current = (event.kind != super::Kind::Deleted).then(|| event.entry.clone());
        match self.chains.get_mut(path.as_str()) {
            Some(chain) => chain.put(revision, current),
            None => self.chains.entry(path.into()).or_default().put(revision, current),
        }
        let namespaced = self.namespace_feed(&event.entry.key().namespace);
        self.cost += event.cost;
        namespaced.append(event.clone());
        if let Some(passed) = self.feed.append(event) {
            passed.retire();
        }
        while self.feed.len() > options.history_events.max(1)
            || (self.cost > options.history_bytes && self.feed.len() > 1)
        {
            let Some(oldest) = self.feed.oldest() else { break };
            self.compact(oldest.revision().0);
        }
        [self.feed.clone(), namespaced]
    }

    /// Puts back an object that was stored before, or takes out what was deleted. Only for a objects that nobody reads yet:
    /// it makes no history.
    pub(super) fn restore(&mut self, path: &str, entry: Option<Entry>) {
        match entry {
            Some(entry) => {
                let since = entry.revision().0;
                let chain = Chain { current: Some(Arc::new(entry)), since, past: VecDeque::new() };
                self.chains.insert(path.into(), chain);
            }
            None => drop(self.chains.remove(path)),
        }
    }

    /// Forgets what came before `oldest`, which stays readable.
    pub(super) fn compact(&mut self, oldest: u64) {
        while let Some(event) = self.feed.forget_oldest(oldest) {
            let key = event.entry.key();
            self.cost = self.cost.saturating_sub(event.cost);
            if let Some(namespaced) = self.namespaces.get(&key.namespace) {
                namespaced.forget_oldest(oldest);
            }
            let path = key.path();
            if let Some(chain) = self.chains.get_mut(path.as_str())
                && !chain.trim(oldest)
            {
                self.chains.remove(path.as_str());
            }
        }
        self.compacted = self.compacted.max(oldest);
    }

    /// Forgets what is older than `age`, and the feeds that nobody reads or writes.
    pub(super) fn expire(&mut self, now: Moment, age: Duration) {
        while let Some(oldest) = self.feed.oldest().filter(|oldest| now.since(oldest.at) > age) {
            self.compact(oldest.revision().0);
        }
        self.namespaces.retain(|_, feed| feed.len() > 0 || Arc::strong_count(feed) > 1);
    }

    /// At most `chunk` of the objects as they were at `revision`, in order, with the bound to go on from. `None` when
    /// there is nothing further.
    pub(super) fn scan(
        &self,
        range: (Bound<&str>, Bound<&str>),
        revision: Revision,
        chunk: usize,
    ) -> (Vec<Arc<Entry>>, Option<Arc<str>>) {
        let mut entries = Vec::new();
        let mut last = None;
        for (seen, (path, chain)) in self.chains.range::<str, _>(range).enumerate() {
            if seen == chunk {
                return (entries, last);
            }
            last = Some(path.clone());
            entries.extend(chain.at(revision.0).cloned());
        }
        (entries, None)
    }
}
