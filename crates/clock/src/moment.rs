//! A point on a monotonic clock.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point on a [`Clock`](crate::Clock)'s monotonic clock. Comparable only with moments of the same clock.
///
/// ```
/// # use std::time::Duration;
/// # use windlass_clock::{Clock, Moment};
/// let clock = Clock::real();
/// let deadline = clock.moment() + Duration::from_secs(5);
/// assert!(clock.moment() < deadline && deadline < Moment::NEVER);
/// assert_eq!(clock.moment().since(deadline), Duration::ZERO);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// Further away than any sleep lasts.
    pub const NEVER: Self = Self(Duration::MAX);

    pub(crate) const fn from_origin(since: Duration) -> Self {
        Self(since)
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The last full second of the clock that is not after this.
    pub fn whole_seconds(self) -> Self {
        Self(Duration::from_secs(self.0.as_secs()))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// Saturates at [`Moment::NEVER`].
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl AddAssign<Duration> for Moment {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Moment {
    type Output = Duration;

    /// As [`Moment::since`].
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}
