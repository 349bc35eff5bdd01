//! How long objects waited for a worker, and how long workers had them.

use super::histogram::{Histogram, tenfold};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::{Clock, Moment};

/// What is measured of the queue and the workers of one controller.
#[derive(Debug)]
pub(crate) struct WorkqueueMetrics {
    clock: Clock,
    pub(super) waited: Histogram,
    pub(super) worked: Histogram,
    /// When each reconcile that runs now began; as many as there are workers.
    running: Mutex<Vec<Option<Moment>>>,
}

impl WorkqueueMetrics {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            waited: Histogram::new(tenfold()),
            worked: Histogram::new(tenfold()),
            running: Mutex::default(),
        }
    }

    /// A reconcile begins, for an object that waited this long for a worker.
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
        Work { metrics: self.clone(), place, began }
    }

    /// How long each reconcile that runs now has been running.
    pub(crate) fn running(&self) -> Vec<Duration> {
        let now = self.clock.moment();
        self.running.lock().iter().flatten().map(|began| now.since(*began)).collect()
    }
}

/// A reconcile that runs. Dropped before it ended, as when the manager is dropped, it is not counted.
#[derive(Debug)]
pub(crate) struct Work {
    metrics: Arc<WorkqueueMetrics>,
    place: usize,
    began: Moment,
}

impl Work {
    pub(crate) fn ended(self) {
        self.metrics.worked.observe(self.metrics.clock.moment().since(self.began));
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.metrics.running.lock()[self.place] = None;
    }
}
