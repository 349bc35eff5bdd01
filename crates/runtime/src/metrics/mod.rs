//! Metrics, under the names, labels and buckets of controller-runtime: existing dashboards and alerts work.
//!
//! The text is our own ([`Page`]) and not a library's: the ones there are write OpenMetrics, whose counters lose `_total`
//! in the lines that name their type; and most of what is shown is not counted for its own sake but read, when asked for,
//! from the queues and caches that know it.
//!
//! An operator adds metrics of its own with [`Manager::metrics`](crate::Manager::metrics).
//!
//! Names, labels and the texts of buckets are controller-runtime's to the letter.

mod histogram;
mod reconciles;
mod requests;
mod tasks;
mod text;
mod workqueue;

pub(crate) use histogram::Histogram;
pub use reconciles::{BOUNDS, Counts, Ended, Times};
pub(crate) use requests::Requests;
pub(crate) use tasks::TaskState;
pub use text::{CONTENT_TYPE, Family, Page, Type};
pub(crate) use workqueue::WorkqueueMetrics;

use crate::cache::Stats;
use crate::kind::Kind;
use crate::queue::{Depth, Priority, Tally};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A controller, as far as it is measured.
pub(crate) struct Measured {
    pub(crate) name: Arc<str>,
    pub(crate) workers: usize,
    pub(crate) depth: Depth,
    /// How long the key that waits longest for a worker has been due.
    pub(crate) oldest: Option<Duration>,
    pub(crate) tally: Tally,
    pub(crate) counts: Arc<Counts>,
    pub(crate) workqueue: Arc<WorkqueueMetrics>,
}

/// Writes what is known of controllers and their queues.
pub(crate) fn write_controllers(page: &mut Page, controllers: &[Measured]) {
    let mut total = page.family(
        "controller_runtime_reconcile_total",
        Type::Counter,
        "Total number of reconciles per controller and result.",
    );
    for Measured { name, counts, .. } in controllers {
        for (result, count) in counts.by_result() {
            total.sample(&[("controller", name), ("result", result)], count as f64);
        }
    }
    type Count = fn(&Counts) -> u64;
    let counts: [(&str, &str, Count); 4] = [
        (
            "controller_runtime_reconcile_errors_total",
            "Total number of reconcile errors per controller.",
            Counts::errors,
        ),
        (
            "controller_runtime_terminal_reconcile_errors_total",
            "Total number of terminal reconcile errors per controller: those that are not retried.",
            Counts::terminal_errors,
        ),
        (
            "controller_runtime_reconcile_panics_total",
            "Total number of reconcile panics per controller.",
            Counts::panics,
        ),
        (
            "controller_runtime_reconcile_timeouts_total",
            "Total number of reconcile timeouts per controller.",
            Counts::timeouts,
        ),
    ];
    for (name, help, count) in counts {
        let mut family = page.family(name, Type::Counter, help);
        for controller in controllers {
            family.sample(&[("controller", &controller.name)], count(&controller.counts) as f64);
        }
    }
    let mut took = page.family(
        "controller_runtime_reconcile_time_seconds",
        Type::Histogram,
        "Length of time per reconcile per controller.",
    );
    for controller in controllers {
        let times = controller.counts.times();
        took.histogram(&[("controller", &controller.name)], &BOUNDS, &times.buckets, times.sum);
    }
    let mut most = page.family(
        "controller_runtime_max_concurrent_reconciles",
        Type::Gauge,
        "Maximum number of concurrent reconciles per controller.",
    );
    for controller in controllers {
        most.sample(&[("controller", &controller.name)], controller.workers as f64);
    }
    let mut active = page.family(
        "controller_runtime_active_workers",
        Type::Gauge,
        "Number of currently used workers per controller.",
    );
    for controller in controllers {
        active.sample(&[("controller", &controller.name)], controller.workqueue.running().len() as f64);
    }
    write_queues(page, controllers);
}

fn write_queues(page: &mut Page, controllers: &[Measured]) {
    let mut depth = page.family(
        "workqueue_depth",
        Type::Gauge,
        "Number of objects in the queue that wait for a worker, by priority.",
    );
    for Measured { name, depth: found, .. } in controllers {
        // There whether something waits or not: an absent series is no zero to an alert.
        if found.ready.iter().all(|(priority, _)| *priority != Priority::NORMAL) {
            depth.sample(&[("name", name), ("controller", name), ("priority", "0")], 0.0);
        }
        for (priority, count) in &found.ready {
            let priority = priority.0.to_string();
            depth.sample(&[("name", name), ("controller", name), ("priority", &priority)], *count as f64);
        }
    }
    let mut gauge = |name: &str, of: Type, help: &str, value: &dyn Fn(&Measured) -> f64| {
        let mut family = page.family(name, of, help);
        for controller in controllers {
            let name = &*controller.name;
            family.sample(&[("name", name), ("controller", name)], value(controller));
        }
    };
    let running = |controller: &Measured| controller.workqueue.running();
    gauge("workqueue_adds_total", Type::Counter, "Total number of objects added to the queue.", &|one| {
        one.tally.adds as f64
    });
    gauge(
        "workqueue_retries_total",
        Type::Counter,
        "Total number of retries: objects that were queued for later.",
        &|one| one.tally.later as f64,
    );
    gauge(
        "workqueue_unfinished_work_seconds",
        Type::Gauge,
        "How long the reconciles that run now have taken, together.",
        &|one| running(one).iter().sum::<Duration>().as_secs_f64(),
    );
    gauge(
        "workqueue_longest_running_processor_seconds",
        Type::Gauge,
        "How long the longest reconcile that runs now has taken.",
        &|one| running(one).into_iter().max().unwrap_or_default().as_secs_f64(),
    );
    type Took = fn(&WorkqueueMetrics) -> &histogram::Histogram;
    let histograms: [(&str, &str, Took); 2] = [
        (
            "workqueue_queue_duration_seconds",
            "How long in seconds an object stays in the queue before a worker takes it.",
            |workqueue| &workqueue.waited,
        ),
        (
            "workqueue_work_duration_seconds",
            "How long in seconds a reconcile takes, from the queue to its end.",
            |workqueue| &workqueue.worked,
        ),
    ];
    for (name, help, took) in histograms {
        let mut family = page.family(name, Type::Histogram, help);
        for controller in controllers {
            let labels = [("name", &*controller.name), ("controller", &*controller.name)];
            took(&controller.workqueue).write(&mut family, &labels);
        }
    }
}

/// Writes what the caches hold, and how their watches fare.
pub(crate) fn write_caches(page: &mut Page, stores: &[Stats]) {
    type Value = fn(&Stats) -> f64;
    let families: [(&str, Type, &str, Value); 7] = [
        ("windlass_cache_objects", Type::Gauge, "Number of cached objects.", |stats| stats.objects as f64),
        (
            "windlass_cache_bytes",
            Type::Gauge,
            "Approximate number of bytes that the cached objects take.",
            |stats| stats.bytes as f64,
        ),
        ("windlass_cache_unsynced", Type::Gauge, "Number of stores that are not synced.", |stats| {
            (!stats.synced).into()
        }),
        ("windlass_cache_events_total", Type::Counter, "Total number of watch events.", |stats| {
            stats.events as f64
        }),
        (
            "windlass_cache_relists_total",
            Type::Counter,
            "Total number of lists after the first one.",
            |stats| stats.relists as f64,
        ),
        (
            "windlass_cache_disconnects_total",
            Type::Counter,
            "Total number of watches and lists that were cut off.",
            |stats| stats.disconnects as f64,
        ),
        (
            "windlass_cache_undecodable_total",
            Type::Counter,
            "Total number of objects that could not be decoded, and were skipped.",
            |stats| stats.undecodable as f64,
        ),
    ];
    for (name, of, help, value) in families {
        // Two types for one kind have a store each; to a reader of metrics they are one.
        let mut sums = BTreeMap::<(&Kind, &str), f64>::new();
        for stats in stores {
            *sums.entry((&stats.kind, &stats.scope)).or_default() += value(stats);
        }
        let mut family = page.family(name, of, help);
        for ((kind, scope), sum) in sums {
            let labels = [("group", &*kind.group), ("version", &*kind.version), ("kind", &*kind.kind)];
            family.sample(&[&labels[..], &[("scope", scope)]].concat(), sum);
        }
    }
}

/// Writes how tasks fare.
pub(crate) fn write_tasks(page: &mut Page, tasks: &[Arc<TaskState>]) {
    type Value = fn(&TaskState) -> f64;
    let families: [(&str, Type, &str, Value); 3] = [
        ("windlass_task_running", Type::Gauge, "Whether a task runs.", |task| task.is_running().into()),
        ("windlass_task_failures_total", Type::Counter, "Total number of failures of a task.", |task| {
            task.failures() as f64
        }),
        ("windlass_task_panics_total", Type::Counter, "Total number of panics of a task.", |task| {
            task.panics() as f64
        }),
    ];
    for (name, of, help, value) in families {
        let mut family = page.family(name, of, help);
        for task in tasks {
            family.sample(&[("task", task.name())], value(task));
        }
    }
}

/// Writes which requests were made.
pub(crate) fn write_requests(page: &mut Page, requests: &Requests) {
    let mut family = page.family(
        "rest_client_requests_total",
        Type::Counter,
        "Number of HTTP requests, partitioned by status code, method, and host.",
    );
    for (sort, count) in requests.read() {
        // The word for no answer is client-go's.
        let code = sort.code.map_or("<error>".to_owned(), |code| code.to_string());
        family.sample(&[("code", &code), ("method", sort.method), ("host", &sort.host)], count as f64);
    }
}

/// Writes whether this process leads.
pub(crate) fn write_leadership(page: &mut Page, lease: &str, leads: bool) {
    let help = "Whether this process holds the lease: 1, or stands by: 0.";
    page.family("leader_election_master_status", Type::Gauge, help).sample(&[("name", lease)], leads.into());
}
