//! Startup, readiness and liveness probes.

mod grpc;
pub(crate) mod handler;
pub(crate) mod tracker;

use handler::{Handler, ProbeTarget};
use k8s_openapi::api::core::v1::Probe;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tracker::{Kind, Tracker, Verdict};

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProbeResult {
    /// The threshold was reached: enough consecutive attempts agree.
    Verdict(Kind, Verdict),
    /// An attempt failed, with this output.
    Failure(Kind, String),
}

/// Runs a probe periodically and sends its results. It ends with the container, or after the startup probe's verdict. `age` is how
/// long the container has been running; other probes wait until `started` is true.
pub(crate) async fn run_probe<T>(
    target: ProbeTarget,
    kind: Kind,
    probe: Probe,
    age: Duration,
    mut started: watch::Receiver<bool>,
    results: mpsc::Sender<T>,
    wrap: impl Fn(ProbeResult) -> T,
) {
    let mut tracker = Tracker::new(kind, &probe);
    let handler = Handler::of_probe(&probe);
    let clock = target.clock.clone();
    clock.sleep(tracker.delay().saturating_sub(age)).await;
    if kind != Kind::Startup && started.wait_for(|started| *started).await.is_err() {
        return;
    }
    loop {
        let next = clock.moment() + tracker.period();
        let attempt = target.run(&handler, tracker.timeout()).await;
        if let Err(why) = &attempt
            && results.send(wrap(ProbeResult::Failure(kind, why.clone()))).await.is_err()
        {
            return;
        }
        if let Some(verdict) = tracker.attempt(attempt.is_ok())
            && results.send(wrap(ProbeResult::Verdict(kind, verdict))).await.is_err()
        {
            return;
        }
        if tracker.is_over() {
            return;
        }
        clock.sleep_until(next).await;
    }
}
