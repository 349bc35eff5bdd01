//! The queue as workers see it: waiting, waking, one timer, and the clock.
//!
//! Nobody is woken in vain: what becomes ready wakes one idle worker, and a worker that takes a key while more is ready
//! wakes one more. Of the idle workers one keeps time for all, sleeping until the next due moment; when it leaves, with a
//! key or cancelled, it wakes another to keep time instead.

use super::backoff::Backoff;
use super::core::{Core, Depth, Handed, KeyState, Tally};
use super::lanes::Slot;
use super::priority::Priority;
use parking_lot::Mutex;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use windlass_clock::{Clock, Moment};

/// Keys to be worked on. Clones are handles to the same queue.
///
/// A key is cloned once each time it is taken: make that cheap.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use windlass::queue::{Backoff, Priority, Queue};
/// use windlass_clock::Clock;
///
/// let queue = Queue::new(Clock::real(), Backoff::default());
/// queue.add("default/orders", Priority::NORMAL);
/// queue.add("default/orders", Priority::HIGH);
///
/// let taken = queue.next().await.unwrap();
/// assert_eq!(*taken, "default/orders");
/// assert_eq!(taken.priority(), Priority::HIGH);
/// drop(taken);
/// assert!(queue.is_empty());
/// # });
/// ```
pub struct Queue<K>(Arc<Shared<K>>);

struct Shared<K> {
    clock: Clock,
    state: Mutex<State<K>>,
    /// For idle workers: there is a key to take, or a due time that nobody keeps.
    work: Notify,
    /// For the one that keeps time: an earlier due time came.
    earlier: Notify,
}

struct State<K> {
    core: Core<K>,
    stopped: bool,
    /// The moment that the timekeeper sleeps until, while there is one.
    kept: Option<Moment>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash + Send> Queue<K> {
    /// An empty queue on `clock`.
    pub fn new(clock: Clock, backoff: Backoff) -> Self {
        let state = State { core: Core::new(backoff), stopped: false, kept: None };
        Self(Arc::new(Shared {
            clock,
            state: Mutex::new(state),
            work: Notify::new(),
            earlier: Notify::new(),
        }))
    }

    /// Queues `key` for now.
    pub fn add(&self, key: K, priority: Priority) {
        self.0.change(|core, now| core.add(key, now, priority, now));
    }

    /// Queues `key` for `due`. If it is queued already, the earlier due time and the higher priority win; raised, it
    /// goes behind those that were ready at its new priority.
    pub fn add_at(&self, key: K, due: Moment, priority: Priority) {
        self.0.change(|core, now| core.add(key, due, priority, now));
    }

    /// Queues `key` for after its back-off, which doubles each time until [`Queue::forget`], and returns how long that
    /// is. It keeps the priority it was taken with. After [`Queue::shutdown`] nothing is queued.
    pub fn retry(&self, key: K) -> Duration {
        self.retry_after(key, Duration::ZERO)
    }

    /// As [`Queue::retry`], and not before `at_least` has passed: as long as a server asks to be left alone.
    pub fn retry_after(&self, key: K, at_least: Duration) -> Duration {
        self.0.change(|core, now| core.retry(key, at_least, now)).unwrap_or_default()
    }

    /// Resets the back-off of `key`: it succeeded, or is gone. Until then a key that failed takes memory.
    pub fn forget(&self, key: &K) {
        self.0.state.lock().core.forget(key);
    }

    /// Waits for a key that is due and takes it: highest priority first, then whichever became due first. `None` once
    /// the queue is shut down.
    ///
    /// Cancel safe: dropped before it is ready, it has taken nothing.
    pub async fn next(&self) -> Option<Taken<K>> {
        // A worker that always finds a key would otherwise never let others on its thread run. This is the only wait
        // before the loop, and in it nothing is held: from being woken to taking a key or sleeping again there is none.
        tokio::task::coop::consume_budget().await;
        let shared = &self.0;
        if let Look::Found(found) = shared.look(false) {
            return found.map(|handed| Taken::new(handed, shared));
        }
        loop {
            let mut woken = pin!(shared.work.notified());
            // Listed before the look: what is added after it wakes someone listed.
            woken.as_mut().enable();
            match shared.look(true) {
                Look::Found(found) => return found.map(|handed| Taken::new(handed, shared)),
                Look::Idle => woken.await,
                Look::KeepTime(due) => {
                    let timekeeper = Timekeeper(Some(shared));
                    tokio::select! {
                        biased;
                        () = woken => {}
                        () = shared.earlier.notified() => {}
                        () = shared.clock.sleep_until(due) => {}
                    }
                    timekeeper.look_again();
                }
            }
        }
    }

    /// Ends the queue: [`Queue::next`] returns `None` to everyone, now and later, and nothing is added any more. What is
    /// taken stays so until it is dropped.
    pub fn shutdown(&self) {
        self.0.state.lock().stopped = true;
        self.0.work.notify_waiters();
    }

    /// How many keys are queued: ready, waiting for their due time, or waiting for the worker that has them.
    pub fn len(&self) -> usize {
        self.0.state.lock().core.len()
    }

    /// Whether nothing is queued. Workers may still have keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys are where.
    pub fn depth(&self) -> Depth {
        let mut state = self.0.state.lock();
        let now = self.0.clock.moment();
        state.core.depth(now)
    }

    /// Where a key is.
    pub fn state_of(&self, key: &K) -> KeyState {
        let mut state = self.0.state.lock();
        let now = self.0.clock.moment();
        state.core.state_of(key, now)
    }

    /// What was done since the queue was made.
    pub fn tally(&self) -> Tally {
        self.0.state.lock().core.tally()
    }

    /// How long the key that is next at its priority has been due, of all priorities the longest: if it grows, workers
    /// do not keep up.
    pub fn oldest(&self) -> Option<Duration> {
        let mut state = self.0.state.lock();
        let now = self.0.clock.moment();
        state.core.oldest(now)
    }
}

/// What a worker found when it looked for a key.
enum Look<K> {
    /// A key, or the end.
    Found(Option<Handed<K>>),
    /// Nothing, and someone else keeps time, or there is no time to keep.
    Idle,
    /// Nothing yet: it is now the timekeeper, until this moment.
    KeepTime(Moment),
}

impl<K> Shared<K> {
    /// Changes what is queued, and wakes those who are needed for it. `None` if the queue is shut down.
    fn change<T>(&self, change: impl FnOnce(&mut Core<K>, Moment) -> T) -> Option<T> {
        let mut state = self.state.lock();
        if state.stopped {
            return None;
        }
        let ready_before = state.core.ready();
        let output = change(&mut state.core, self.clock.moment());
        let more_ready = state.core.ready() > ready_before;
        let (kept, next_due) = (state.kept, state.core.next_due());
        drop(state);
        if more_ready || (kept.is_none() && next_due.is_some()) {
            self.wake_one();
        }
        if kept.is_some_and(|kept| next_due.is_some_and(|due| due < kept)) {
            self.earlier.notify_one();
        }
        Some(output)
    }

    /// Takes a key if there is one; if not, and if it `may_keep_time`, becomes the timekeeper if one is needed.
    fn look(&self, may_keep_time: bool) -> Look<K>
    where
        K: Clone,
    {
        let mut state = self.state.lock();
        if state.stopped {
            return Look::Found(None);
        }
        if let Some(handed) = state.core.take(self.clock.moment()) {
            let wanted = state.wants_worker();
            drop(state);
            if wanted {
                self.wake_one();
            }
            return Look::Found(Some(handed));
        }
        match state.core.next_due() {
            Some(due) if may_keep_time && state.kept.is_none() => {
                state.kept = Some(due);
                Look::KeepTime(due)
            }
            _ => Look::Idle,
        }
    }

    /// Wakes the worker that went idle last: its memory is warm, and the timekeeper, idle for longest, sleeps on.
    fn wake_one(&self) {
        self.work.notify_last();
    }
}

impl<K> State<K> {
    /// Whether an idle worker, if there is one, has something to do: a key to take or time to keep.
    fn wants_worker(&self) -> bool {
        !self.stopped && (self.core.ready() > 0 || (self.kept.is_none() && self.core.next_due().is_some()))
    }
}

/// The one idle worker that sleeps until the next due moment. Dropped in its sleep, it wakes another to do so.
struct Timekeeper<'a, K>(Option<&'a Shared<K>>);

impl<K> Timekeeper<'_, K> {
    /// Gives the role up to look for a key, or to take it again.
    fn look_again(mut self) {
        if let Some(shared) = self.0.take() {
            shared.state.lock().kept = None;
        }
    }
}

impl<K> Drop for Timekeeper<'_, K> {
    fn drop(&mut self) {
        let Some(shared) = self.0 else { return };
        let mut state = shared.state.lock();
        state.kept = None;
        let wanted = state.wants_worker();
        drop(state);
        if wanted {
            shared.wake_one();
        }
    }
}

/// A key that a worker has, and nobody else until this is dropped: at the end of its work, or in a panic.
///
/// ```
/// # use windlass::queue::{Backoff, Priority, Queue};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let queue = Queue::new(windlass::clock::Clock::real(), Backoff::default());
/// queue.add("a", Priority::NORMAL);
/// let taken = queue.next().await.unwrap();
/// queue.add("a", Priority::NORMAL); // it changed meanwhile: nobody gets it yet
/// assert!(futures::FutureExt::now_or_never(queue.next()).is_none());
/// drop(taken);
/// assert_eq!(*queue.next().await.unwrap(), "a");
/// # });
/// ```
pub struct Taken<K> {
    key: K,
    slot: Slot,
    priority: Priority,
    waited: Duration,
    failures: u32,
    shared: Arc<Shared<K>>,
}

impl<K> Taken<K> {
    fn new(handed: Handed<K>, shared: &Arc<Shared<K>>) -> Self {
        let Handed { key, slot, priority, waited, failures } = handed;
        Self { key, slot, priority, waited, failures, shared: shared.clone() }
    }

    /// The priority it was taken with.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// How long it was due before it was taken.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// How often it was retried since it was last forgotten, when it was taken.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

impl<K> Deref for Taken<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: fmt::Debug> fmt::Debug for Taken<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Taken").field(&self.key).finish()
    }
}

impl<K> Drop for Taken<K> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let ready_before = state.core.ready();
        state.core.done(self.slot);
        let wanted = !state.stopped && state.core.ready() > ready_before;
        drop(state);
        if wanted {
            self.shared.wake_one();
        }
    }
}
