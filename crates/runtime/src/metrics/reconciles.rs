//! What a controller's reconciles came to, counted: plain numbers that whoever exports metrics reads.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Upper bounds, in seconds, of the buckets that reconciles are filed in by how long they took: those of controller-runtime, so
/// that its dashboards fit. One more holds the rest.
pub const BOUNDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Well, with nothing more to do until something changes.
    Success,
    /// Well, and it looks again by itself later.
    RequeueAfter,
    /// Something was not as it was seen, and it looks again: expected, and no error.
    Requeue,
    /// With an error that is tried again.
    Error,
    /// With an error that nothing but a change can mend.
    Terminal,
    /// By a panic.
    Panic,
    /// After the time that a reconcile may take.
    Timeout,
}

/// Counts of one controller, from its first reconcile on. Reading takes no lock but the histogram's.
///
/// ```
/// # use std::time::Duration;
/// use windlass::{Counts, Ended};
/// let counts = Counts::default();
/// counts.began();
/// assert_eq!(counts.active(), 1);
/// counts.ended(Ended::Timeout, Duration::from_millis(20));
/// assert_eq!((counts.errors(), counts.timeouts(), counts.active()), (1, 1, 0));
/// ```
#[derive(Debug, Default)]
pub struct Counts {
    success: AtomicU64,
    requeue: AtomicU64,
    requeue_after: AtomicU64,
    errors: AtomicU64,
    terminal_errors: AtomicU64,
    panics: AtomicU64,
    timeouts: AtomicU64,
    active: AtomicUsize,
    times: Mutex<Times>,
}

/// How long reconciles took.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    /// How many fell at or below each of [`BOUNDS`] and above the one before; the last is for those above all. Empty before the
    /// first reconcile.
    pub buckets: Vec<u64>,
    /// All of them together.
    pub sum: Duration,
    /// How many there were.
    pub count: u64,
}

impl Counts {
    /// A reconcile began.
    pub fn began(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    /// A reconcile that began ended, with its result and its duration.
    pub fn ended(&self, how: Ended, after: Duration) {
        self.active.fetch_sub(1, Ordering::Relaxed);
        let more = |counter: &AtomicU64| {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        match how {
            Ended::Success => more(&self.success),
            Ended::RequeueAfter => more(&self.requeue_after),
            Ended::Requeue => more(&self.requeue),
            Ended::Error | Ended::Terminal | Ended::Panic | Ended::Timeout => more(&self.errors),
        }
        match how {
            Ended::Terminal => more(&self.terminal_errors),
            Ended::Panic => more(&self.panics),
            Ended::Timeout => more(&self.timeouts),
            _ => {}
        }
        let seconds = after.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        let mut times = self.times.lock();
        times.buckets.resize(BOUNDS.len() + 1, 0);
        times.buckets[bucket] += 1;
        times.sum += after;
        times.count += 1;
    }

    /// A reconcile that began was cut off from outside, as when leadership is lost: it came to nothing that could be counted.
    pub fn cut_off(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Reconciles by result, with the names that controller-runtime gives them.
    pub fn by_result(&self) -> [(&'static str, u64); 4] {
        [
            ("success", self.success.load(Ordering::Relaxed)),
            ("error", self.errors()),
            ("requeue", self.requeue.load(Ordering::Relaxed)),
            ("requeue_after", self.requeue_after.load(Ordering::Relaxed)),
        ]
    }

    /// Reconciles that ended with an error of any sort.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Of the errors, those that are not tried again.
    pub fn terminal_errors(&self) -> u64 {
        self.terminal_errors.load(Ordering::Relaxed)
    }

    /// Of the errors, panics.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Of the errors, reconciles that took too long.
    pub fn timeouts(&self) -> u64 {
        self.timeouts.load(Ordering::Relaxed)
    }

    /// Reconciles that run now.
    pub fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// How long reconciles took.
    pub fn times(&self) -> Times {
        self.times.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_counted_once_and_errors_by_their_sort_too() {
        let counts = Counts::default();
        let ends = [
            Ended::Success,
            Ended::RequeueAfter,
            Ended::Requeue,
            Ended::Error,
            Ended::Terminal,
            Ended::Panic,
        ];
        for end in ends {
            counts.began();
            counts.ended(end, Duration::from_millis(7));
        }
        assert_eq!(counts.by_result().map(|(_, number)| number), [1, 3, 1, 1]);
        assert_eq!((counts.terminal_errors(), counts.panics(), counts.timeouts()), (1, 1, 0));
        assert_eq!(counts.active(), 0);
    }

    #[test]
    fn a_reconcile_that_is_cut_off_is_over_and_nothing_else() {
        let counts = Counts::default();
        counts.began();
        counts.cut_off();
        assert_eq!((counts.active(), counts.errors(), counts.times().count), (0, 0, 0));
    }

    #[test]
    fn a_reconcile_is_filed_under_the_first_bound_that_it_does_not_exceed() {
        let counts = Counts::default();
        for millis in [0, 5, 6, 60_000, 60_001] {
            counts.began();
            counts.ended(Ended::Success, Duration::from_millis(millis));
        }
        let times = counts.times();
        assert_eq!((times.buckets[0], times.buckets[1], times.buckets[39], times.buckets[40]), (2, 1, 1, 1));
        assert_eq!(times.count, 5);
    }
}
