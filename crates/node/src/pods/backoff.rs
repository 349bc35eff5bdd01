//! The restart back-off of a container. Pure.

use jiff::{SignedDuration, Timestamp};

/// The initial back-off; it doubles with each restart.
const INITIAL: SignedDuration = SignedDuration::from_secs(10);
/// The maximum.
const MAX: SignedDuration = SignedDuration::from_mins(5);
/// A container that ran this long starts again with the initial back-off.
const RESET_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// The back-off of a container that is restarted repeatedly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backoff {
    delay: SignedDuration,
    since: Timestamp,
}

impl Backoff {
    /// Until when a container that terminated then has to wait, and the whole delay; `None` if it can be restarted.
    pub(crate) fn wait(
        before: Option<&Self>,
        ended: Timestamp,
        now: Timestamp,
    ) -> Option<(Timestamp, SignedDuration)> {
        let before = before.filter(|before| !before.is_reset(ended))?;
        let due = later(ended, before.delay);
        (now < due).then_some((due, before.delay))
    }

    /// The back-off after a restart.
    pub(crate) fn next(before: Option<&Self>, ended: Timestamp, now: Timestamp) -> Self {
        let delay = match before.filter(|before| !before.is_reset(ended)) {
            Some(before) => before.delay.saturating_mul(2).min(MAX),
            None => INITIAL,
        };
        Self { delay, since: now }
    }

    fn is_reset(&self, ended: Timestamp) -> bool {
        ended.duration_since(self.since) > RESET_AFTER
    }
}

/// The time after a duration; never past the last representable one.
pub(crate) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// The back-off of retries: doubling from one duration to the other.
pub(crate) fn doubling(first: SignedDuration, longest: SignedDuration, tries: u32) -> SignedDuration {
    first.saturating_mul(1 << tries.min(16)).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    #[test]
    fn the_first_restart_is_at_once_and_each_later_one_waits_twice_as_long() {
        let (mut backoff, mut now, mut waits) = (None, at(0), Vec::new());
        for _ in 0..8 {
            let ended = now;
            if let Some((due, whole)) = Backoff::wait(backoff.as_ref(), ended, now) {
                waits.push(whole.as_secs());
                now = due;
            } else {
                waits.push(0);
            }
            assert_eq!(Backoff::wait(backoff.as_ref(), ended, now), None, "it is due");
            backoff = Some(Backoff::next(backoff.as_ref(), ended, now));
        }
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn one_that_ran_well_begins_anew() {
        let long = Backoff { delay: MAX, since: at(0) };
        assert_eq!(Backoff::wait(Some(&long), at(601), at(601)), None);
        assert_eq!(Backoff::next(Some(&long), at(601), at(601)).delay, INITIAL);
        assert!(Backoff::wait(Some(&long), at(600), at(601)).is_some());
    }
}
