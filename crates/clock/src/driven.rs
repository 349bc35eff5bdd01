//! Time that a test drives: it stands still until the [`Driver`] moves it, then wakes the tasks that are due, in order.

use crate::{Moment, Timestamp};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The state that a driven clock's clones and its driver share.
#[derive(Debug)]
pub(crate) struct Driven(Mutex<State>);

#[derive(Debug)]
struct State {
    moment: Moment,
    wall: Timestamp,
    /// The sleeping tasks by due moment; the number orders those of one moment.
    sleepers: BTreeMap<(Moment, u64), Sleeper>,
    next_number: u64,
    /// Sleepers that were woken and have not run since.
    waking: usize,
}

#[derive(Debug)]
struct Sleeper {
    waker: Waker,
    /// The moment at which the clock must stop for it: when it is due, or later for `sleep_between`.
    stop: Moment,
}

impl Driven {
    pub(crate) fn new(start: Timestamp) -> Self {
        Self(Mutex::new(State {
            moment: Moment::default(),
            wall: start,
            sleepers: BTreeMap::new(),
            next_number: 0,
            waking: 0,
        }))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.lock().wall
    }

    pub(crate) fn moment(&self) -> Moment {
        self.0.lock().moment
    }

    /// Moves time to `target` and wakes everyone due by then. Wakers run outside the lock: one may poll at once.
    fn move_to(&self, target: Moment) {
        let woken = {
            let mut state = self.0.lock();
            if target > state.moment {
                let passed = target - state.moment;
                state.moment = target;
                state.wall = state.wall.checked_add(passed).unwrap_or(Timestamp::MAX);
            }
            let still_asleep = state.sleepers.split_off(&(target, u64::MAX));
            let woken = std::mem::replace(&mut state.sleepers, still_asleep);
            state.waking += woken.len();
            woken
        };
        woken.into_values().for_each(|sleeper| sleeper.waker.wake());
    }

    /// The earliest moment at which the clock must stop. Sleepers that are due later cannot make it earlier.
    fn next_due(&self) -> Option<Moment> {
        let mut earliest = Moment::NEVER;
        for ((due, _), sleeper) in &self.0.lock().sleepers {
            if *due >= earliest {
                break;
            }
            earliest = earliest.min(sleeper.stop);
        }
        (earliest != Moment::NEVER).then_some(earliest)
    }
}

/// A sleep on a driven clock.
pub(crate) struct Sleep {
    clock: Arc<Driven>,
    due: Moment,
    stop: Moment,
    /// Its number among the sleepers, once it is registered.
    number: Option<u64>,
}

impl Sleep {
    /// Wakes from `due` on, whenever time stops there; at `stop` it must.
    pub(crate) fn new(clock: Arc<Driven>, due: Moment, stop: Moment) -> Self {
        Self { clock, due, stop: stop.max(due), number: None }
    }

    /// Leaves the sleepers; if it was woken already, it counts as having run.
    fn deregister(&mut self, state: &mut State) {
        if let Some(number) = self.number.take()
            && state.sleepers.remove(&(self.due, number)).is_none()
        {
            state.waking -= 1;
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut state = clock.0.lock();
        if self.due <= state.moment {
            self.deregister(&mut state);
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            state.next_number += 1;
            state.next_number
        });
        let sleeper = Sleeper { waker: context.waker().clone(), stop: self.stop };
        state.sleepers.insert((self.due, number), sleeper);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let clock = self.clock.clone();
        self.deregister(&mut clock.0.lock());
    }
}

/// Moves a driven clock. Dropping it leaves time standing still.
///
/// ```
/// # use std::time::Duration;
/// # use windlass_clock::Clock;
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
/// let rings = tokio::spawn({
///     let clock = clock.clone();
///     async move {
///         let mut rings = 0;
///         while rings < 60 {
///             clock.sleep(Duration::from_secs(60)).await;
///             rings += 1;
///         }
///         rings
///     }
/// });
/// driver.run_for(Duration::from_secs(3600)).await; // takes no time
/// assert_eq!(rings.await.unwrap(), 60);
/// # });
/// ```
#[derive(Debug)]
pub struct Driver(Arc<Driven>);

/// How often [`Driver::run_for`] lets other tasks run at each stop. What a woken task sets off in others (a message, a
/// request in process) takes a few rounds of the scheduler; this bound is generous and costs microseconds.
const YIELDS_PER_STOP: usize = 64;

/// How much longer it waits for sleepers that were woken and have not run: those on other threads need a while, and one
/// that nobody polls any more never will.
const MAX_EXTRA_YIELDS: usize = 10_000;

impl Driver {
    pub(crate) fn new(clock: Arc<Driven>) -> Self {
        Self(clock)
    }

    /// Moves time by `duration` in one jump, and wakes everyone due by then, earliest first. A task that sleeps in a
    /// loop notices once; see [`Driver::run_for`].
    pub fn advance(&self, duration: Duration) {
        self.0.move_to(self.0.moment() + duration);
    }

    /// Lets `duration` pass as it really would: stops at each moment that someone sleeps until, and lets them and those
    /// they set off run before it goes on. A loop with a sleep of a minute runs sixty times in an hour.
    pub async fn run_for(&self, duration: Duration) {
        let end = self.0.moment() + duration;
        self.settle().await;
        while let Some(due) = self.0.next_due().filter(|due| *due <= end) {
            self.0.move_to(due);
            self.settle().await;
        }
        self.0.move_to(end);
        self.settle().await;
    }

    /// Moves the wall clock alone, as an administrator or a time server would: the monotonic clock does not notice.
    pub fn set_wall(&self, wall: Timestamp) {
        self.0.0.lock().wall = wall;
    }

    /// The earliest moment that someone sleeps until; for [`sleep_between`](crate::Clock::sleep_between), its latest.
    pub fn next_due(&self) -> Option<Moment> {
        self.0.next_due()
    }

    /// The number of sleeping tasks.
    pub fn sleepers(&self) -> usize {
        self.0.0.lock().sleepers.len()
    }

    /// Lets the tasks that were woken run, and those that they set off.
    async fn settle(&self) {
        for _ in 0..YIELDS_PER_STOP {
            tokio::task::yield_now().await;
        }
        for _ in 0..MAX_EXTRA_YIELDS {
            if self.0.0.lock().waking == 0 {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}
