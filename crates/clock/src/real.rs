//! The machine's time: the one place that calls the clocks which the linter forbids elsewhere.
//!
//! Real moments count the time that the machine is suspended, where the system has a clock for it (Linux has): a lease goes
//! on lapsing while its holder sleeps. The timers of tokio do not count it; so a sleep is slept in slices, and looks after
//! each how much is left.
#![expect(clippy::disallowed_methods, reason = "this is what the ban's replacement is made of")]

use crate::{Moment, Timestamp};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Sleeps that are shorter are slept in one go.
const SHORTEST_SLICE: Duration = Duration::from_secs(5);

/// Where real moments are counted from: the first one asked for in this process.
enum Origin {
    /// On the clock that counts suspend.
    #[cfg_attr(not(any(target_os = "linux", target_os = "android")), expect(dead_code))]
    Boot(Duration),
    Monotonic(Instant),
}

fn origin() -> &'static Origin {
    static ORIGIN: OnceLock<Origin> = OnceLock::new();
    ORIGIN.get_or_init(|| since_boot().map_or_else(|| Origin::Monotonic(Instant::now()), Origin::Boot))
}

/// Time since the machine was started, suspend included. Nothing where there is no such clock.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn since_boot() -> Option<Duration> {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_BOOTTIME).ok().map(Duration::from)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn since_boot() -> Option<Duration> {
    None
}

pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

pub(crate) fn moment() -> Moment {
    Moment::from_origin(match origin() {
        Origin::Boot(origin) => since_boot().unwrap_or_default().saturating_sub(*origin),
        Origin::Monotonic(origin) => Instant::now().saturating_duration_since(*origin),
    })
}

pub(crate) async fn sleep_until(due: Moment) {
    loop {
        let left = due.since(moment());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(slice(left)).await;
    }
}

/// How long to sleep before looking again. A sleep of hours need not notice a suspend as soon as one of seconds, and
/// thousands of them must not wake a machine all the time: it is a quarter of what is left.
fn slice(left: Duration) -> Duration {
    left.min(SHORTEST_SLICE.max(left / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_slept_in_slices_that_are_few() {
        assert_eq!(slice(Duration::from_secs(2)), Duration::from_secs(2));
        assert_eq!(slice(Duration::from_secs(15)), Duration::from_secs(5));
        assert_eq!(slice(Duration::from_secs(3600)), Duration::from_secs(900));
        let mut left = Duration::from_secs(24 * 3600);
        let mut slices = 0;
        while !left.is_zero() {
            left -= slice(left);
            slices += 1;
        }
        assert!(slices < 50, "{slices}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn moments_are_on_the_clock_that_counts_suspend() {
        let (before, boot) = (moment(), since_boot().unwrap());
        std::thread::sleep(Duration::from_millis(20));
        let (after, later) = (moment(), since_boot().unwrap());
        let (passed, counted) = (after.since(before), later - boot);
        assert!(passed >= Duration::from_millis(20) && counted >= Duration::from_millis(20));
        assert!(matches!(origin(), Origin::Boot(_)));
    }
}
