//! Rest between turns over many pods: while thousands of them change, a turn per change would count them all each time.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use windlass::Key;
use windlass_clock::Moment;

/// Fewer pods than this are counted whenever one changes.
const FEW: usize = 200;
/// The rest after a turn, for each of the pods: 100 ms for ten thousand.
const PER_POD: Duration = Duration::from_micros(10);
/// Nobody waits longer than this.
const LONGEST: Duration = Duration::from_millis(200);
/// So many are remembered before those are forgotten whose rest is over.
const REMEMBERED: usize = 1024;

/// When each object with many pods had its last turn. Only a hint for speed: forgotten, a turn comes early.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<HashMap<Key, Moment>>);

impl Pace {
    /// How long the object, of so many pods, should still rest; `None`, and a new rest begins, if its turn is due.
    pub(crate) fn rest(&self, key: &Key, pods: usize, now: Moment) -> Option<Duration> {
        if pods < FEW {
            return None;
        }
        let rest = LONGEST.min(PER_POD * u32::try_from(pods).unwrap_or(u32::MAX));
        let mut last = self.0.lock();
        if let Some(last) = last.get(key)
            && now - *last < rest
        {
            return Some(rest - (now - *last));
        }
        if last.len() >= REMEMBERED {
            last.retain(|_, last| now - *last < LONGEST);
        }
        last.insert(key.clone(), now);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_pods_the_longer_the_rest() {
        let pace = Pace::default();
        let key = Key::new("c".into(), Some("ns"), "web");
        let mut now = Moment::default();
        assert_eq!(pace.rest(&key, 10, now), None);
        assert_eq!(pace.rest(&key, 10, now), None, "few are never made to wait");
        assert_eq!(pace.rest(&key, 10_000, now), None);
        now += Duration::from_millis(30);
        assert_eq!(pace.rest(&key, 10_000, now), Some(Duration::from_millis(70)));
        now += Duration::from_millis(70);
        assert_eq!(pace.rest(&key, 10_000, now), None);
    }
}
