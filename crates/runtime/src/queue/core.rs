//! What is queued and what comes next: the queue without locks, clock or waiting.
//!
//! In come keys and the time; out come keys and the next time to look. Each key has one entry from when it is first
//! added until it is neither queued, nor taken, nor failing; then it is idle. A key is hashed and compared once, when it
//! is added; from then on its slot is its name.
//!
//! Most keys come again. So what is idle keeps its slot and its place in the index until another key needs the slot: a
//! key that comes again is found, not inserted, and at the end of its work nothing is removed. There are never more slots
//! than keys were queued, taken or failing at one time.

use super::backoff::Backoff;
use super::due::DueTimes;
use super::index::Index;
use super::lanes::{Lanes, NONE, Slot};
use super::priority::Priority;
use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;
use windlass_clock::Moment;

/// How many keys are where.
///
/// ```
/// # use windlass::queue::{Backoff, Priority, Queue};
/// let queue = Queue::new(windlass::clock::Clock::real(), Backoff::default());
/// queue.add("now", Priority::NORMAL);
/// queue.retry("later");
/// let depth = queue.depth();
/// assert_eq!((depth.ready, depth.waiting), (vec![(Priority::NORMAL, 1)], 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Depth {
    /// Due, and waiting for a worker: highest priority first, priorities with none left out.
    pub ready: Vec<(Priority, usize)>,
    /// Waiting for their due time.
    pub waiting: usize,
    /// Due, and waiting for the worker that has them to finish.
    pub held: usize,
    /// With a worker.
    pub taken: usize,
}

/// Where a key is.
///
/// ```
/// # use std::time::Duration;
/// # use windlass::queue::{Backoff, Position, Queue};
/// let queue = Queue::new(windlass::clock::Clock::real(), Backoff::default());
/// queue.retry("orders");
/// let state = queue.state_of(&"orders");
/// assert!(matches!(state.position, Position::Waiting(delay) if delay > Duration::ZERO));
/// assert_eq!(state.failures, 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyState {
    /// Whether it is queued.
    pub position: Position,
    /// Whether a worker has it.
    pub taken: bool,
    /// How often it was retried since it was last forgotten.
    pub failures: u32,
}

/// Whether a key is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// It is not.
    Out,
    /// It is, and is due after this time.
    Waiting(Duration),
    /// It is due, and waits for a worker.
    Ready,
}

/// What was done since the queue was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Keys that were queued and had not been.
    pub adds: u64,
    /// Keys that were queued for later: after a failure, or for a time.
    pub later: u64,
}

/// A key that was handed out, until [`Core::done`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Handed<K> {
    pub(super) key: K,
    pub(super) slot: Slot,
    pub(super) priority: Priority,
    pub(super) waited: Duration,
    pub(super) failures: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not queued.
    Out,
    /// In the due times.
    Waiting,
    /// In a lane.
    Ready,
    /// Due, but a worker has it: it joins its lane when that worker is done.
    Held,
}

struct Entry<K> {
    key: K,
    /// Kept so that its removal does not hash the key again.
    hash: u32,
    /// When it is, or was, due. Without meaning while it is out.
    due: Moment,
    failures: u32,
    /// What it is queued with. Without meaning while it is out.
    priority: Priority,
    place: Place,
    /// The priority it was handed out with, while a worker has it.
    taken: Option<Priority>,
}

impl<K> Entry<K> {
    fn is_idle(&self) -> bool {
        self.place == Place::Out && self.taken.is_none() && self.failures == 0
    }
}

/// See the module's text.
pub(super) struct Core<K> {
    backoff: Backoff,
    hasher: RandomState,
    index: Index,
    entries: Vec<Entry<K>>,
    lanes: Lanes,
    due_times: DueTimes,
    held: usize,
    taken: usize,
    tally: Tally,
    /// The latest moment seen: moments that callers read before they got here may be older.
    now: Moment,
}

impl<K: Eq + Hash> Core<K> {
    /// Queues `key` for `due`; a moment that has passed is now. If it is queued already, the earlier due time and the
    /// higher priority win; one that is ready and raised goes to the end of its new lane.
    pub(super) fn add(&mut self, key: K, due: Moment, priority: Priority, now: Moment) {
        self.advance(now);
        let slot = self.slot_of(key);
        self.queue(slot, due, priority);
    }

    /// Queues `key` for after its back-off, which grows, or later if it must wait so long at least. It keeps the priority it
    /// was taken with.
    pub(super) fn retry(&mut self, key: K, at_least: Duration, now: Moment) -> Duration {
        self.advance(now);
        let slot = self.slot_of(key);
        let entry = self.entry(slot);
        entry.failures = entry.failures.saturating_add(1);
        let failures = entry.failures;
        let priority = match (entry.taken, entry.place) {
            (Some(taken), _) => taken,
            (None, Place::Out) => Priority::NORMAL,
            (None, _) => entry.priority,
        };
        let delay = self.backoff.delay(failures).max(at_least);
        self.queue(slot, self.now + delay, priority);
        delay
    }

    /// Resets the back-off of `key`.
    pub(super) fn forget(&mut self, key: &K) {
        let hash = self.hash(key);
        if let Some(slot) = self.find(key, hash)
            && !self.entry(slot).is_idle()
        {
            self.entry(slot).failures = 0;
            self.rest_if_idle(slot);
        }
    }

    /// Where `key` is.
    pub(super) fn state_of(&mut self, key: &K, now: Moment) -> KeyState {
        self.advance(now);
        let hash = self.hash(key);
        let Some(slot) = self.find(key, hash) else {
            return KeyState { position: Position::Out, taken: false, failures: 0 };
        };
        let entry = &self.entries[slot as usize];
        let position = match entry.place {
            Place::Out => Position::Out,
            Place::Waiting => Position::Waiting(entry.due.since(self.now)),
            Place::Ready | Place::Held => Position::Ready,
        };
        KeyState { position, taken: entry.taken.is_some(), failures: entry.failures }
    }

    /// The lower half of a hash, which is enough to tell four billion slots apart.
    fn hash(&self, key: &K) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn find(&self, key: &K, hash: u32) -> Option<Slot> {
        self.index.find(hash, |slot| self.entries[slot as usize].key == *key)
    }

    /// The slot of a key that is about to be queued: its own, that of the key that has been idle for longest, or a new one.
    fn slot_of(&mut self, key: K) -> Slot {
        let hash = self.hash(&key);
        if let Some(slot) = self.find(&key, hash) {
            if self.entry(slot).is_idle() {
                self.lanes.rouse(slot);
            }
            return slot;
        }
        let entry = Entry {
            key,
            hash,
            due: Moment::default(),
            failures: 0,
            priority: Priority::NORMAL,
            place: Place::Out,
            taken: None,
        };
        let slot = match self.lanes.longest_idle() {
            Some(slot) => {
                self.lanes.rouse(slot);
                let before = std::mem::replace(self.entry(slot), entry);
                self.index.remove(before.hash, slot);
                slot
            }
            None => {
                let slot = self.entries.len() as Slot;
                assert!(slot != NONE, "a queue holds fewer than four billion keys");
                self.entries.push(entry);
                slot
            }
        };
        self.index.insert(hash, slot);
        slot
    }
}

impl<K> Core<K> {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            hasher: RandomState::new(),
            index: Index::default(),
            entries: Vec::new(),
            lanes: Lanes::new(),
            due_times: DueTimes::new(),
            held: 0,
            taken: 0,
            tally: Tally::default(),
            now: Moment::default(),
        }
    }

    /// Hands out the next key that is due: highest priority first, then whichever became ready first.
    pub(super) fn take(&mut self, now: Moment) -> Option<Handed<K>>
    where
        K: Clone,
    {
        self.advance(now);
        let now = self.now;
        let (slot, priority) = self.lanes.first()?;
        let entry = self.entry(slot);
        let handed = Handed {
            key: entry.key.clone(),
            slot,
            priority,
            waited: now.since(entry.due),
            failures: entry.failures,
        };
        entry.place = Place::Out;
        entry.taken = Some(priority);
        self.lanes.remove(slot, priority);
        self.taken += 1;
        Some(handed)
    }

    /// Takes back what was handed out as `slot`. If it was added meanwhile and is due, it is ready again.
    pub(super) fn done(&mut self, slot: Slot) {
        let entry = self.entry(slot);
        entry.taken = None;
        let (place, priority) = (entry.place, entry.priority);
        self.taken -= 1;
        match place {
            Place::Held => {
                self.entry(slot).place = Place::Ready;
                self.held -= 1;
                self.lanes.push(slot, priority);
            }
            Place::Out => self.rest_if_idle(slot),
            Place::Waiting | Place::Ready => {}
        }
    }

    /// The next moment at which a key becomes due, if one waits for that.
    pub(super) fn next_due(&self) -> Option<Moment> {
        self.due_times.first().map(|(due, _)| due)
    }

    /// How many keys could be taken, as of the latest moment seen.
    pub(super) fn ready(&self) -> usize {
        self.lanes.len()
    }

    /// How many keys are queued: ready, waiting for their time, or for the worker that has them.
    pub(super) fn len(&self) -> usize {
        self.lanes.len() + self.due_times.len() + self.held
    }

    /// How many keys are not idle.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.index.len() - self.lanes.idle()
    }

    /// How many slots there are, idle ones included.
    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        assert_eq!(self.index.len(), self.entries.len());
        self.entries.len()
    }

    pub(super) fn depth(&mut self, now: Moment) -> Depth {
        self.advance(now);
        Depth {
            ready: self.lanes.busy().map(|(priority, len, _)| (priority, len)).collect(),
            waiting: self.due_times.len(),
            held: self.held,
            taken: self.taken,
        }
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// How long the first of any lane has been due.
    pub(super) fn oldest(&mut self, now: Moment) -> Option<Duration> {
        self.advance(now);
        let firsts = self.lanes.busy().map(|(_, _, slot)| &self.entries[slot as usize]);
        firsts.map(|entry| entry.due).min().map(|due| self.now.since(due))
    }

    /// Makes ready, in the order of their due times, all that have become due. Every operation starts with it, so that
    /// a lane's order is the order in which its keys became due.
    fn advance(&mut self, now: Moment) {
        self.now = self.now.max(now);
        while let Some((due, slot)) = self.due_times.first()
            && due <= self.now
        {
            self.due_times.remove(slot);
            self.make_ready(slot);
        }
    }

    /// Moves `slot`, which is in neither order, to where a key that is due belongs.
    fn make_ready(&mut self, slot: Slot) {
        let entry = self.entry(slot);
        let priority = entry.priority;
        if entry.taken.is_some() {
            entry.place = Place::Held;
            self.held += 1;
        } else {
            entry.place = Place::Ready;
            self.lanes.push(slot, priority);
        }
    }

    fn queue(&mut self, slot: Slot, due: Moment, priority: Priority) {
        let now = self.now;
        let due = due.max(now);
        self.tally.later += u64::from(due > now);
        let entry = self.entry(slot);
        let (before, place) = (entry.priority, entry.place);
        entry.priority = if place == Place::Out { priority } else { before.max(priority) };
        match place {
            Place::Out => {
                entry.due = due;
                if due <= now {
                    self.make_ready(slot);
                } else {
                    entry.place = Place::Waiting;
                    self.due_times.push(slot, due);
                }
                self.tally.adds += 1;
            }
            Place::Waiting if due < entry.due => {
                entry.due = due;
                if due <= now {
                    self.due_times.remove(slot);
                    self.make_ready(slot);
                } else {
                    self.due_times.hasten(slot, due);
                }
            }
            Place::Ready if priority > before => {
                self.lanes.remove(slot, before);
                self.lanes.push(slot, priority);
            }
            Place::Waiting | Place::Ready | Place::Held => {}
        }
    }

    fn entry(&mut self, slot: Slot) -> &mut Entry<K> {
        &mut self.entries[slot as usize]
    }

    /// Puts `slot`, which was not idle, with those that are if it is now.
    fn rest_if_idle(&mut self, slot: Slot) {
        if self.entry(slot).is_idle() {
            self.lanes.rest(slot);
        }
    }
}
