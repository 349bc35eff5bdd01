//! The back-off before a failed daemon pod is replaced on a node: none the first time, then doubling, so that a node which
//! rejects the pod is not tried without end.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use windlass_clock::Moment;

const INITIAL: Duration = Duration::from_secs(1);
const MAX: Duration = Duration::from_secs(15 * 60);
/// The most entries before expired ones are dropped.
const MAX_ENTRIES: usize = 4096;

/// When a daemon pod was last replaced on a node, and the current delay. Safe to lose: a pod is then replaced early.
#[derive(Debug, Default)]
pub(super) struct Backoffs(Mutex<HashMap<(String, String), (Moment, Duration)>>);

impl Backoffs {
    /// Whether a failed pod of this set may be replaced on this node now; else in how long.
    ///
    /// # Errors
    /// How long it must wait.
    pub(super) fn may_replace(&self, set: &str, node: &str, now: Moment) -> Result<(), Duration> {
        let mut all = self.0.lock();
        let past = |(last, delay): &(Moment, Duration)| now - *last > *delay + MAX;
        if all.len() >= MAX_ENTRIES {
            all.retain(|_, entry| !past(entry));
        }
        let key = (set.to_owned(), node.to_owned());
        let delay = match all.get(&key).filter(|entry| !past(entry)) {
            None => INITIAL,
            Some((last, delay)) if now - *last < *delay => return Err(*delay - (now - *last)),
            Some((_, delay)) => MAX.min(*delay * 2),
        };
        all.insert(key, (now, delay));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_it_takes_twice_as_long_until_it_held_for_a_while() {
        let backoffs = Backoffs::default();
        let mut now = Moment::default();
        let may = |now| backoffs.may_replace("set", "node", now);
        assert_eq!(may(now), Ok(()));
        assert_eq!(may(now), Err(INITIAL));
        assert_eq!(backoffs.may_replace("set", "other", now), Ok(()));
        now += INITIAL;
        assert_eq!(may(now), Ok(()));
        assert_eq!(may(now), Err(INITIAL * 2));
        now += MAX * 2;
        assert_eq!(may(now), Ok(()));
        assert_eq!(may(now), Err(INITIAL), "forgiven");
    }
}
