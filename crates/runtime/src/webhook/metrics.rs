//! How often webhooks were asked and what came of it, under controller-runtime's names.

use crate::metrics::{Histogram, Page, Type};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The buckets that Prometheus' libraries have unless told otherwise.
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Counts of one path.
#[derive(Debug)]
pub(super) struct Counts {
    path: String,
    codes: Mutex<BTreeMap<u16, u64>>,
    in_flight: AtomicU64,
    panics: AtomicU64,
    latency: Histogram,
}

impl Counts {
    pub(super) fn new(path: &str) -> Self {
        // There from the start: an absent series is no zero to an alert.
        let codes = Mutex::new([(200, 0), (500, 0)].into());
        let (in_flight, panics) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { path: path.to_owned(), codes, in_flight, panics, latency: Histogram::new(BOUNDS) }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// A question is being answered as long as this is held.
    pub(super) fn begin(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(&self.in_flight)
    }

    pub(super) fn ended(&self, code: u16, took: Duration) {
        *self.codes.lock().entry(code).or_default() += 1;
        self.latency.observe(took);
    }

    pub(super) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }
}

/// A question that is being answered.
pub(super) struct InFlight<'a>(&'a AtomicU64);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Writes what is known of all paths.
pub(super) fn write<'a>(page: &mut Page, paths: impl Iterator<Item = &'a Counts> + Clone) {
    let mut total = page.family(
        "controller_runtime_webhook_requests_total",
        Type::Counter,
        "Total number of admission requests by HTTP status code.",
    );
    for path in paths.clone() {
        for (code, count) in &*path.codes.lock() {
            total.sample(&[("webhook", &path.path), ("code", &code.to_string())], *count as f64);
        }
    }
    let mut latency = page.family(
        "controller_runtime_webhook_latency_seconds",
        Type::Histogram,
        "Histogram of the latency of processing admission requests.",
    );
    for path in paths.clone() {
        path.latency.write(&mut latency, &[("webhook", &path.path)]);
    }
    let mut in_flight = page.family(
        "controller_runtime_webhook_requests_in_flight",
        Type::Gauge,
        "Current number of admission requests being served.",
    );
    for path in paths.clone() {
        in_flight.sample(&[("webhook", &path.path)], path.in_flight.load(Ordering::Relaxed) as f64);
    }
    let panics = paths.map(|path| path.panics.load(Ordering::Relaxed)).sum::<u64>();
    page.family("controller_runtime_webhook_panics_total", Type::Counter, "Total number of webhook panics.")
        .sample(&[], panics as f64);
}
