//! How soon a failed daemon is replaced: at once the first time, then ever later, or a node that refuses it would be asked without
//! end.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use windlass_clock::Moment;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// So many are remembered before those are forgotten that are long past.
const REMEMBERED: usize = 4096;

/// When a daemon was last replaced on a node, and how long the next waits. Only a brake: forgotten, one is replaced early.
#[derive(Debug, Default)]
pub(super) struct Backoffs(Mutex<HashMap<(String, String), (Moment, Duration)>>);

impl Backoffs {
    /// Whether a failed pod of this set may be replaced on this node now; else in how long.
    ///
    /// # Errors
    /// How long it must wait.
    pub(super) fn may_replace(&self, set: &str, node: &str, now: Moment) -> Result<(), Duration> {
        let mut all = self.0.lock();
        let past = |(last, delay): &(Moment, Duration)| now - *last > *delay + LONGEST;
        if all.len() >= REMEMBERED {
            all.retain(|_, entry| !past(entry));
        }
        let key = (set.to_owned(), node.to_owned());
        let delay = match all.get(&key).filter(|entry| !past(entry)) {
            None => FIRST,
            Some((last, delay)) if now - *last < *delay => return Err(*delay - (now - *last)),
            Some((_, delay)) => LONGEST.min(*delay * 2),
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
        assert_eq!(may(now), Err(FIRST));
        assert_eq!(backoffs.may_replace("set", "other", now), Ok(()));
        now += FIRST;
        assert_eq!(may(now), Ok(()));
        assert_eq!(may(now), Err(FIRST * 2));
        now += LONGEST * 2;
        assert_eq!(may(now), Ok(()));
        assert_eq!(may(now), Err(FIRST), "forgiven");
    }
}
