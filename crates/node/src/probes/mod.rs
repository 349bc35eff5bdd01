//! Probes: whether containers have started, can serve, and live.

mod grpc;
pub(crate) mod handler;
pub(crate) mod tracker;

use handler::{Handler, Reach};
use k8s_openapi::api::core::v1::Probe;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tracker::{Kind, Tracker, Verdict};

/// What a probe found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// Enough looks in a row agree.
    Verdict(Kind, Verdict),
    /// A look was bad.
    Unhealthy(Kind, String),
}

/// Looks at a container again and again, and tells what it finds. It ends with the container, or when there is no more to be
/// found out. `age` is how long the container ran already; probes other than that for its start wait until `started` says so.
pub(crate) async fn keep_looking<T>(
    reach: Reach,
    kind: Kind,
    probe: Probe,
    age: Duration,
    mut started: watch::Receiver<bool>,
    tell: mpsc::Sender<T>,
    wrap: impl Fn(Found) -> T,
) {
    let mut tracker = Tracker::new(kind, &probe);
    let handler = Handler::of_probe(&probe);
    let clock = reach.clock.clone();
    clock.sleep(tracker.delay().saturating_sub(age)).await;
    if kind != Kind::Startup && started.wait_for(|started| *started).await.is_err() {
        return;
    }
    loop {
        let next = clock.moment() + tracker.period();
        let looked = reach.once(&handler, tracker.timeout()).await;
        if let Err(why) = &looked
            && tell.send(wrap(Found::Unhealthy(kind, why.clone()))).await.is_err()
        {
            return;
        }
        if let Some(verdict) = tracker.looked(looked.is_ok())
            && tell.send(wrap(Found::Verdict(kind, verdict))).await.is_err()
        {
            return;
        }
        if tracker.is_over() {
            return;
        }
        clock.sleep_until(next).await;
    }
}
