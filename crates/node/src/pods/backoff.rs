//! How long a container that ended waits before it is started again. Pure.

use jiff::{SignedDuration, Timestamp};

/// The first wait; it doubles each time.
const FIRST: SignedDuration = SignedDuration::from_secs(10);
/// The longest.
const LONGEST: SignedDuration = SignedDuration::from_mins(5);
/// One that ran so long fails for the first time again.
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(10);

/// What is remembered of a container that is started again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backoff {
    delay: SignedDuration,
    since: Timestamp,
}

impl Backoff {
    /// Until when one that ended then has to wait, and how long that is in all; none where it may start.
    pub(crate) fn wait(
        before: Option<&Self>,
        ended: Timestamp,
        now: Timestamp,
    ) -> Option<(Timestamp, SignedDuration)> {
        let before = before.filter(|before| !before.is_forgotten(ended))?;
        let due = later(ended, before.delay);
        (now < due).then_some((due, before.delay))
    }

    /// What to remember when it is started again after it ended.
    pub(crate) fn next(before: Option<&Self>, ended: Timestamp, now: Timestamp) -> Self {
        let delay = match before.filter(|before| !before.is_forgotten(ended)) {
            Some(before) => before.delay.saturating_mul(2).min(LONGEST),
            None => FIRST,
        };
        Self { delay, since: now }
    }

    fn is_forgotten(&self, ended: Timestamp) -> bool {
        ended.duration_since(self.since) > FORGOTTEN
    }
}

/// A moment so long after another.
pub(crate) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// How long to wait before an image is looked for, or volumes are made, once more: doubling from one to the other.
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
        let long = Backoff { delay: LONGEST, since: at(0) };
        assert_eq!(Backoff::wait(Some(&long), at(601), at(601)), None);
        assert_eq!(Backoff::next(Some(&long), at(601), at(601)).delay, FIRST);
        assert!(Backoff::wait(Some(&long), at(600), at(601)).is_some());
    }
}
