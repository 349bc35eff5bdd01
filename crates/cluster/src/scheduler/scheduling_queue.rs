//! The scheduling queue: active pods by priority, pods in back-off, and unschedulable pods until an event could help them.
//! Pure.

use super::cache::ClusterEvent;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use windlass::Key;
use windlass_clock::Moment;

/// The back-off of an unschedulable pod, initial and longest.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// When an unschedulable pod is retried though nothing happened.
const UNSCHEDULABLE_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// To be scheduled next, in this order.
    Active(i32, u64),
    /// In back-off until this time.
    Backoff(Moment),
    /// Unschedulable until an event could help, or until this time.
    Unschedulable(Moment),
    /// Being scheduled.
    InFlight,
}

#[derive(Debug)]
struct Entry {
    position: Position,
    priority: i32,
    tries: u32,
    /// When it was last attempted.
    tried: Moment,
    has_affinity: bool,
    /// Whether an event that could help came while it was being scheduled.
    missed: bool,
}

/// The pending pods.
#[derive(Debug, Default)]
pub(super) struct SchedulingQueue {
    all: HashMap<Key, Entry>,
    active: BTreeSet<(Reverse<i32>, u64, Key)>,
    timed: BTreeSet<(Moment, Key)>,
    /// Unschedulable and in-flight pods: a few among thousands, and the only ones to which events matter.
    listening: BTreeSet<Key>,
    serial: u64,
}

impl SchedulingQueue {
    /// Adds a pod. A pod that is queued keeps its position, unless it was unschedulable: then it has changed.
    pub(super) fn add(&mut self, key: &Key, priority: i32, has_affinity: bool, now: Moment) {
        match self.all.get_mut(key) {
            Some(entry) if matches!(entry.position, Position::Unschedulable(_)) => {
                (entry.priority, entry.has_affinity) = (priority, has_affinity);
                self.resume(key, now);
            }
            Some(_) => {}
            None => {
                let entry = Entry {
                    position: Position::InFlight,
                    priority,
                    tries: 0,
                    tried: now,
                    has_affinity,
                    missed: false,
                };
                self.all.insert(key.clone(), entry);
                self.make_active(key);
            }
        }
    }

    /// Removes a pod.
    pub(super) fn remove(&mut self, key: &Key) {
        if self.all.contains_key(key) {
            self.unfile(key);
            self.all.remove(key);
            self.listening.remove(key);
        }
    }

    /// The next pod, if one is due; otherwise when the next will be.
    pub(super) fn next(&mut self, now: Moment) -> Result<Key, Option<Moment>> {
        while let Some((due, key)) = self.timed.first().cloned().filter(|(due, _)| *due <= now) {
            self.timed.remove(&(due, key.clone()));
            self.make_active(&key);
        }
        match self.active.pop_first() {
            Some((_, _, key)) => {
                if let Some(entry) = self.all.get_mut(&key) {
                    (entry.position, entry.tried, entry.missed) = (Position::InFlight, now, false);
                    self.listening.insert(key.clone());
                }
                Ok(key)
            }
            None => Err(self.timed.first().map(|(due, _)| *due)),
        }
    }

    /// Its attempt failed: it fits nowhere for now.
    pub(super) fn add_unschedulable(&mut self, key: &Key, now: Moment) {
        let Some(entry) = self.all.get_mut(key) else { return };
        entry.tries = entry.tries.saturating_add(1);
        if entry.missed {
            self.resume(key, now);
            return;
        }
        let until = now + UNSCHEDULABLE_TIMEOUT;
        entry.position = Position::Unschedulable(until);
        self.timed.insert((until, key.clone()));
    }

    /// Its binding failed: it is retried after a back-off.
    pub(super) fn failed(&mut self, key: &Key, now: Moment) {
        if let Some(entry) = self.all.get_mut(key) {
            entry.tries = entry.tries.saturating_add(1);
            self.resume(key, now);
        }
    }

    /// Moves the unschedulable pods that an event could help to the active queue, each after its back-off.
    pub(super) fn on_event(&mut self, event: ClusterEvent, now: Moment) {
        if event == ClusterEvent::None {
            return;
        }
        let matters = |entry: &Entry| event == ClusterEvent::Room || entry.has_affinity;
        let mut back = Vec::new();
        for key in &self.listening {
            let Some(entry) = self.all.get_mut(key) else { continue };
            match entry.position {
                Position::Unschedulable(_) if matters(entry) => back.push(key.clone()),
                Position::InFlight if matters(entry) => entry.missed = true,
                _ => {}
            }
        }
        back.iter().for_each(|key| self.resume(key, now));
    }

    /// Whether an event could matter to any pod.
    pub(super) fn has_listeners(&self) -> bool {
        !self.listening.is_empty()
    }

    fn resume(&mut self, key: &Key, now: Moment) {
        self.unfile(key);
        let Some(entry) = self.all.get_mut(key) else { return };
        let pause =
            INITIAL_BACKOFF.saturating_mul(1 << entry.tries.saturating_sub(1).min(8)).min(MAX_BACKOFF);
        let due = entry.tried + pause;
        self.listening.remove(key);
        if entry.tries == 0 || due <= now {
            self.make_active(key);
        } else {
            entry.position = Position::Backoff(due);
            self.timed.insert((due, key.clone()));
        }
    }

    fn make_active(&mut self, key: &Key) {
        let Some(entry) = self.all.get_mut(key) else { return };
        self.serial += 1;
        self.listening.remove(key);
        entry.position = Position::Active(entry.priority, self.serial);
        self.active.insert((Reverse(entry.priority), self.serial, key.clone()));
    }

    fn unfile(&mut self, key: &Key) {
        match self.all.get(key).map(|entry| entry.position) {
            Some(Position::Active(priority, serial)) => {
                self.active.remove(&(Reverse(priority), serial, key.clone()));
            }
            Some(Position::Backoff(due) | Position::Unschedulable(due)) => {
                self.timed.remove(&(due, key.clone()));
            }
            Some(Position::InFlight) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("".into(), Some("default"), name)
    }

    #[test]
    fn the_most_important_goes_first_and_equals_in_their_order() {
        let (mut queue, now) = (SchedulingQueue::default(), Moment::default());
        for (name, priority) in [("a", 0), ("b", 0), ("c", 100)] {
            queue.add(&key(name), priority, false, now);
        }
        let order: Vec<String> = (0..3).map(|_| queue.next(now).unwrap().name().to_owned()).collect();
        assert_eq!(order, ["c", "a", "b"]);
        assert_eq!(queue.next(now), Err(None));
    }

    #[test]
    fn what_fits_nowhere_waits_for_news_and_then_for_its_pause() {
        let (mut queue, mut now) = (SchedulingQueue::default(), Moment::default());
        queue.add(&key("a"), 0, false, now);
        assert!(queue.next(now).is_ok());
        queue.add_unschedulable(&key("a"), now);
        assert_eq!(queue.next(now), Err(Some(now + UNSCHEDULABLE_TIMEOUT)));
        queue.on_event(ClusterEvent::PodAssigned, now);
        assert_eq!(queue.next(now), Err(Some(now + UNSCHEDULABLE_TIMEOUT)), "it wants no company");
        queue.on_event(ClusterEvent::Room, now);
        assert_eq!(queue.next(now), Err(Some(now + INITIAL_BACKOFF)));
        now += INITIAL_BACKOFF;
        assert!(queue.next(now).is_ok());
        queue.on_event(ClusterEvent::Room, now);
        queue.add_unschedulable(&key("a"), now);
        assert_eq!(
            queue.next(now),
            Err(Some(now + INITIAL_BACKOFF * 2)),
            "it was being tried when there was news"
        );
        queue.remove(&key("a"));
        assert_eq!(queue.next(now + UNSCHEDULABLE_TIMEOUT), Err(None));
    }
}
