//! What is counted of one controller's turns.

use super::histogram::{Histogram, tenfold};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use windlass_clock::{Clock, Moment};

/// In seconds: what controller-runtime has, so that its dashboards fit.
const TURN_BOUNDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing until something changes.
    Success,
    /// Another turn at a time of its own choice.
    LooksAgain,
    /// An error; it is tried again.
    Failed {
        /// Whether trying again alone cannot mend it.
        terminal: bool,
    },
    /// The code of the decision panicked.
    Panicked,
}

/// The counts of one controller.
#[derive(Debug)]
pub(crate) struct Turns {
    clock: Clock,
    pub(super) success: AtomicU64,
    pub(super) looks_again: AtomicU64,
    pub(super) errors: AtomicU64,
    pub(super) terminal: AtomicU64,
    pub(super) panics: AtomicU64,
    pub(super) took: Histogram,
    pub(super) waited: Histogram,
    pub(super) worked: Histogram,
    /// When each turn that runs now began; as many as there are workers.
    running: Mutex<Vec<Option<Moment>>>,
}

impl Turns {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            success: AtomicU64::default(),
            looks_again: AtomicU64::default(),
            errors: AtomicU64::default(),
            terminal: AtomicU64::default(),
            panics: AtomicU64::default(),
            took: Histogram::new(TURN_BOUNDS),
            waited: Histogram::new(tenfold()),
            worked: Histogram::new(tenfold()),
            running: Mutex::default(),
        }
    }

    /// A turn begins, for an object that was due for so long.
    pub(crate) fn begin(self: &Arc<Self>, waited: Duration) -> Work {
        self.waited.observe(waited);
        let began = self.clock.moment();
        let mut running = self.running.lock();
        let place = match running.iter().position(Option::is_none) {
            Some(place) => place,
            None => {
                running.push(None);
                running.len() - 1
            }
        };
        running[place] = Some(began);
        Work { turns: self.clone(), place, began }
    }

    /// How long each turn that runs now has been running.
    pub(crate) fn running(&self) -> Vec<Duration> {
        let now = self.clock.moment();
        self.running.lock().iter().flatten().map(|began| now.since(*began)).collect()
    }
}

/// A turn that runs. Dropped before it ended, as when the manager is dropped, it is not counted.
#[derive(Debug)]
pub(crate) struct Work {
    turns: Arc<Turns>,
    place: usize,
    began: Moment,
}

impl Work {
    pub(crate) fn ended(self, outcome: Outcome) {
        let turns = &self.turns;
        let took = turns.clock.moment().since(self.began);
        turns.took.observe(took);
        turns.worked.observe(took);
        let one_more = |count: &AtomicU64| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        match outcome {
            Outcome::Success => one_more(&turns.success),
            Outcome::LooksAgain => one_more(&turns.looks_again),
            Outcome::Failed { terminal } => {
                one_more(&turns.errors);
                if terminal {
                    one_more(&turns.terminal);
                }
            }
            Outcome::Panicked => {
                one_more(&turns.errors);
                one_more(&turns.panics);
            }
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.turns.running.lock()[self.place] = None;
    }
}
