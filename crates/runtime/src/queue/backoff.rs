//! How long a key that failed waits before it is tried again.

use std::time::Duration;

/// A delay that doubles with every failure in a row, up to a limit.
///
/// ```
/// # use std::time::Duration;
/// # use windlass::queue::Backoff;
/// let backoff = Backoff { first: Duration::from_secs(1), limit: Duration::from_secs(60) };
/// let delays: Vec<u64> = (1..=8).map(|failures| backoff.delay(failures).as_secs()).collect();
/// assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// No delay is longer than this.
    pub limit: Duration,
}

impl Default for Backoff {
    /// 5 ms, doubling to 1,000 s: what operators written with controller-runtime are used to.
    fn default() -> Self {
        Self { first: Duration::from_millis(5), limit: Duration::from_secs(1000) }
    }
}

impl Backoff {
    /// The delay after `failures` failures in a row; none after none.
    pub fn delay(&self, failures: u32) -> Duration {
        if failures == 0 {
            return Duration::ZERO;
        }
        let mut delay = self.first;
        // A duration doubles at most 94 times from a nanosecond to the longest there is; zero would double for ever.
        for _ in 1..failures.min(96) {
            if delay >= self.limit {
                break;
            }
            delay = delay.saturating_mul(2);
        }
        delay.min(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_from_five_milliseconds_to_a_thousand_seconds() {
        let backoff = Backoff::default();
        assert_eq!(backoff.delay(0), Duration::ZERO);
        assert_eq!(backoff.delay(1), Duration::from_millis(5));
        assert_eq!(backoff.delay(2), Duration::from_millis(10));
        assert_eq!(backoff.delay(18), Duration::from_millis(655_360));
        assert_eq!(backoff.delay(19), Duration::from_secs(1000));
        assert_eq!(backoff.delay(u32::MAX), Duration::from_secs(1000));
    }

    #[test]
    fn odd_settings_neither_overflow_nor_hang() {
        let never = Backoff { first: Duration::from_nanos(1), limit: Duration::MAX };
        assert_eq!(never.delay(u32::MAX), Duration::MAX);
        let always = Backoff { first: Duration::ZERO, limit: Duration::MAX };
        assert_eq!(always.delay(u32::MAX), Duration::ZERO);
        let clipped = Backoff { first: Duration::from_secs(5), limit: Duration::from_secs(1) };
        assert_eq!(clipped.delay(1), Duration::from_secs(1));
    }
}
