//! The machine's time: the one place that calls the clocks which the linter forbids elsewhere.
#![expect(clippy::disallowed_methods, reason = "this is what the ban's replacement is made of")]

use crate::{Moment, Timestamp};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Where real moments are counted from: the first one asked for in this process.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

pub(crate) fn moment() -> Moment {
    let origin = origin();
    Moment::from_origin(Instant::now().saturating_duration_since(origin))
}

pub(crate) async fn sleep_until(due: Moment) {
    let left = due.since(moment());
    if left.is_zero() {
        return;
    }
    match origin().checked_add(due.since_origin()) {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => tokio::time::sleep(Duration::MAX).await,
    }
}
