//! A pause between reconciles over many pods: while thousands of pods change, a reconcile per change would count all of them
//! each time.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use windlass::Key;
use windlass_clock::Moment;

/// Below this number of pods there is no pause.
const UNTHROTTLED_PODS: usize = 200;
/// The pause per pod: 100 ms for ten thousand.
const PAUSE_PER_POD: Duration = Duration::from_micros(10);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_millis(200);
/// The most entries before expired ones are dropped.
const MAX_ENTRIES: usize = 1024;

/// Until when the reconciles of each object with many pods pause. Safe to lose: a reconcile is then early.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<HashMap<Key, Moment>>);

impl Throttle {
    /// How much of the pause remains: asked before anything else.
    pub(crate) fn remaining(&self, key: &Key, now: Moment) -> Option<Duration> {
        let until = *self.0.lock().get(key)?;
        (until > now).then(|| until - now)
    }

    /// A reconcile over this many pods begins; a pause follows.
    pub(crate) fn begin(&self, key: &Key, pods: usize, now: Moment) {
        let mut all = self.0.lock();
        if pods < UNTHROTTLED_PODS {
            all.remove(key);
            return;
        }
        if all.len() >= MAX_ENTRIES {
            all.retain(|_, until| *until > now);
        }
        let pause = MAX_PAUSE.min(PAUSE_PER_POD * u32::try_from(pods).unwrap_or(u32::MAX));
        all.insert(key.clone(), now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_pods_the_longer_the_rest() {
        let throttle = Throttle::default();
        let key = Key::new("c".into(), Some("ns"), "web");
        let mut now = Moment::default();
        throttle.begin(&key, 10, now);
        assert_eq!(throttle.remaining(&key, now), None, "few are never made to wait");
        throttle.begin(&key, 10_000, now);
        now += Duration::from_millis(30);
        assert_eq!(throttle.remaining(&key, now), Some(Duration::from_millis(70)));
        now += Duration::from_millis(70);
        assert_eq!(throttle.remaining(&key, now), None);
        throttle.begin(&key, 1_000_000, now);
        assert_eq!(throttle.remaining(&key, now), Some(MAX_PAUSE));
        throttle.begin(&key, 10, now);
        assert_eq!(throttle.remaining(&key, now), None);
    }
}
