//! Rest between reconciles over many pods: while thousands of them change, a reconcile per change would count them all each time.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use windlass::Key;
use windlass_clock::Moment;

/// Fewer pods than this are counted whenever one changes.
const FEW: usize = 200;
/// The rest after a reconcile, for each of the pods: 100 ms for ten thousand.
const PER_POD: Duration = Duration::from_micros(10);
/// Nobody waits longer than this.
const LONGEST: Duration = Duration::from_millis(200);
/// So many are remembered before those are forgotten whose rest is over.
const REMEMBERED: usize = 1024;

/// Until when each object with many pods rests. Only a hint for speed: forgotten, a reconcile comes early.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<HashMap<Key, Moment>>);

impl Pace {
    /// How long the object should still rest: asked before anything is looked at.
    pub(crate) fn rests(&self, key: &Key, now: Moment) -> Option<Duration> {
        let until = *self.0.lock().get(key)?;
        (until > now).then(|| until - now)
    }

    /// A reconcile over so many pods begins; the object rests after it.
    pub(crate) fn begin(&self, key: &Key, pods: usize, now: Moment) {
        let mut all = self.0.lock();
        if pods < FEW {
            all.remove(key);
            return;
        }
        if all.len() >= REMEMBERED {
            all.retain(|_, until| *until > now);
        }
        let rest = LONGEST.min(PER_POD * u32::try_from(pods).unwrap_or(u32::MAX));
        all.insert(key.clone(), now + rest);
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
        pace.begin(&key, 10, now);
        assert_eq!(pace.rests(&key, now), None, "few are never made to wait");
        pace.begin(&key, 10_000, now);
        now += Duration::from_millis(30);
        assert_eq!(pace.rests(&key, now), Some(Duration::from_millis(70)));
        now += Duration::from_millis(70);
        assert_eq!(pace.rests(&key, now), None);
        pace.begin(&key, 1_000_000, now);
        assert_eq!(pace.rests(&key, now), Some(LONGEST));
        pace.begin(&key, 10, now);
        assert_eq!(pace.rests(&key, now), None);
    }
}
