//! The log of changes that watchers follow: one per resource and one per namespace in it.
//!
//! A watcher keeps a place in the shared log, not a buffer of its own. The writer appends and wakes; it never waits and
//! never copies. The log is bounded, and a watcher whose place has been forgotten is cut off.
//!
//! Encodings that were made for one watcher are kept for the others while the event is among the newest; after that hardly
//! anyone asks for them, and they would only take memory.

use super::Compacted;
use super::entry::Event;
use super::key::Revision;
use parking_lot::RwLock;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// The number of events back beyond which hardly any watcher still is.
const FRESH: usize = 256;

/// The watcher was too slow: history has forgotten what it should see next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the watcher fell behind the history that is kept")]
pub struct Lagged;

#[derive(Debug, Default)]
pub(super) struct Feed {
    log: RwLock<Log>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Log {
    /// The place of `events[0]`, counted from the first event ever.
    first: u64,
    events: VecDeque<Arc<Event>>,
}

/// A place in the history of one resource, or of one namespace in it.
#[derive(Debug)]
pub struct Watcher {
    feed: Arc<Feed>,
    /// The place of the event to deliver next.
    place: u64,
    /// Everything up to here was delivered or was not wanted.
    delivered: Revision,
    published: Arc<AtomicU64>,
}

// === impl Feed ===

impl Feed {
    /// Returns the event that is no longer fresh now.
    pub(super) fn append(&self, event: Arc<Event>) -> Option<Arc<Event>> {
        let mut log = self.log.write();
        log.events.push_back(event);
        let passed = log.events.len().checked_sub(FRESH + 1)?;
        Some(log.events[passed].clone())
    }

    /// Wakes who waits. Apart from [`Feed::append`], so that it can happen outside the store's lock.
    pub(super) fn wake(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn len(&self) -> usize {
        self.log.read().events.len()
    }

    pub(super) fn oldest(&self) -> Option<Arc<Event>> {
        self.log.read().events.front().cloned()
    }

    /// Forgets the oldest event if it is of `up_to` or before.
    pub(super) fn forget_oldest(&self, up_to: u64) -> Option<Arc<Event>> {
        let mut log = self.log.write();
        if log.events.front()?.revision().0 > up_to {
            return None;
        }
        log.first += 1;
        let event = log.events.pop_front();
        if log.events.is_empty() {
            log.events.shrink_to_fit();
        }
        event
    }

    fn place_after(&self, revision: Revision) -> u64 {
        let log = self.log.read();
        log.first + log.events.partition_point(|event| event.revision() <= revision) as u64
    }
}

// === impl Watcher ===

impl Watcher {
    pub(super) fn new(feed: Arc<Feed>, after: Revision, published: Arc<AtomicU64>) -> Self {
        Self { place: feed.place_after(after), feed, delivered: after, published }
    }

    /// The next event, if there is one already.
    ///
    /// # Errors
    /// [`Lagged`] when it has been forgotten.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, Lagged> {
        loop {
            let event = {
                let log = self.feed.log.read();
                let index = self.place.checked_sub(log.first).ok_or(Lagged)?;
                let Some(event) = usize::try_from(index).ok().and_then(|index| log.events.get(index)) else {
                    return Ok(None);
                };
                event.clone()
            };
            self.place += 1;
            // A watcher that starts in the future is not shown what happens until then.
            if event.revision() > self.delivered {
                self.delivered = event.revision();
                return Ok(Some(event));
            }
        }
    }

    /// The next event, once there is one. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// [`Lagged`] when it has been forgotten.
    pub async fn next(&mut self) -> Result<Arc<Event>, Lagged> {
        let feed = self.feed.clone();
        loop {
            let mut changed = pin!(feed.changed.notified());
            changed.as_mut().enable();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            changed.await;
        }
    }

    /// Whether there is an event that was not delivered yet, or was forgotten before it was.
    pub fn is_behind(&self) -> bool {
        let log = self.feed.log.read();
        self.place != log.first + log.events.len() as u64
    }

    /// The revision up to which every event was delivered: what a bookmark may say.
    pub fn progress(&self) -> Revision {
        // The revision is published after its event was appended, so it must be read before the log.
        let published = Revision(self.published.load(Ordering::Acquire));
        let log = self.feed.log.read();
        let all_delivered = self.place == log.first + log.events.len() as u64;
        if all_delivered { self.delivered.max(published) } else { self.delivered }
    }
}

impl Compacted {
    pub(super) fn check(asked: Revision, oldest: u64) -> Result<(), Self> {
        if asked.0 < oldest { Err(Self { oldest: Revision(oldest) }) } else { Ok(()) }
    }
}
