//! How often durations were how long: a few counters, safe to add to from anywhere.

use super::text::Family;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of durations by upper bound.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: Box<[f64]>,
    /// One per bound, and one for what is longer than all.
    counts: Box<[AtomicU64]>,
    nanos: AtomicU64,
}

impl Histogram {
    /// With these upper bounds, in seconds, smallest first.
    pub(crate) fn new(bounds: impl IntoIterator<Item = f64>) -> Self {
        let bounds: Box<[f64]> = bounds.into_iter().collect();
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, nanos: AtomicU64::new(0) }
    }

    pub(crate) fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let place = self.bounds.partition_point(|bound| *bound < seconds);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn write(&self, family: &mut Family<'_>, labels: &[(&str, &str)]) {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let sum = Duration::from_nanos(self.nanos.load(Ordering::Relaxed));
        family.histogram(labels, &self.bounds, &counts, sum);
    }
}

/// Bounds that grow tenfold from ten nanoseconds, twelve of them. Multiplied one by one: the rounding errors are part of
/// the names that existing queries use.
pub(super) fn tenfold() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(10e-9), |bound| Some(bound * 10.0)).take(12)
}
