//! What flow control counts, by the names that a stock server has.

use super::Levels;
use super::priority_level::Rejected;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// What became of the requests of a flow schema.
#[derive(Debug, Default)]
pub(super) struct Counts {
    dispatched: AtomicU64,
    concurrency_limit: AtomicU64,
    queue_full: AtomicU64,
    time_out: AtomicU64,
}

impl Counts {
    /// A request that may run, or that was turned away.
    pub(super) fn note(&self, rejected: Option<&Rejected>) {
        let count = match rejected {
            None => &self.dispatched,
            Some(Rejected::ConcurrencyLimit) => &self.concurrency_limit,
            Some(Rejected::QueueFull) => &self.queue_full,
            Some(Rejected::TimeOut) => &self.time_out,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// All of it, in the text format of Prometheus.
pub(super) fn text(levels: &Levels) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, samples: Vec<(String, u64)>| {
        let name = format!("apiserver_flowcontrol_{name}");
        // Writing to a text cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{{{labels}}} {value}");
        }
    };
    let by_level = |value: &dyn Fn(&super::PriorityLevel) -> Option<u64>| -> Vec<(String, u64)> {
        let sample = |level: &super::PriorityLevel| {
            Some((format!("priority_level=\"{}\"", level.name), value(level)?))
        };
        levels.levels.values().filter_map(|level| sample(level)).collect()
    };
    metric(
        "nominal_limit_seats",
        "gauge",
        "Requests of a priority level that may run at a time",
        by_level(&|level| level.seats()),
    );
    metric(
        "current_executing_requests",
        "gauge",
        "Requests of a priority level that run now",
        by_level(&|level| u64::try_from(level.executing.load(Ordering::Relaxed)).ok()),
    );
    metric(
        "current_inqueue_requests",
        "gauge",
        "Requests of a priority level that wait now",
        by_level(&|level| u64::try_from(level.waiting()).ok()),
    );
    let labels = |schema: &super::FlowSchema| {
        format!("flow_schema=\"{}\",priority_level=\"{}\"", schema.name, schema.level)
    };
    let dispatched = levels.schemas.values();
    metric(
        "dispatched_requests_total",
        "counter",
        "Requests of a flow schema that ran",
        dispatched.map(|schema| (labels(schema), schema.counts.dispatched.load(Ordering::Relaxed))).collect(),
    );
    let mut rejected = Vec::new();
    for schema in levels.schemas.values() {
        let counts = &schema.counts;
        for (reason, count) in [
            ("concurrency-limit", &counts.concurrency_limit),
            ("queue-full", &counts.queue_full),
            ("time-out", &counts.time_out),
        ] {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                rejected.push((format!("{},reason=\"{reason}\"", labels(schema)), count));
            }
        }
    }
    metric("rejected_requests_total", "counter", "Requests of a flow schema that were turned away", rejected);
    text
}
