//! Pods that wait to be scheduled: the most important first, and those that fit nowhere aside until something changes. Pure.

use super::cache::News;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use windlass::Key;
use windlass_clock::Moment;

/// How long a pod that fitted nowhere is left alone, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// After so long it is tried again whatever happened.
const STALE: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// To be tried, in this order.
    Ready(i32, u64),
    /// To be tried at this time.
    Pausing(Moment),
    /// Tried, and left aside until something changes, or this time.
    Aside(Moment),
    /// Being tried.
    Taken,
}

#[derive(Debug)]
struct Entry {
    place: Place,
    priority: i32,
    tries: u32,
    /// When it was last tried.
    tried: Moment,
    wants_company: bool,
    /// Something changed that matters while it was being tried.
    missed: bool,
}

/// The pods that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    all: HashMap<Key, Entry>,
    ready: BTreeSet<(Reverse<i32>, u64, Key)>,
    timed: BTreeSet<(Moment, Key)>,
    /// Those who are aside or being tried: a few among thousands, and the only ones to whom news matters.
    listening: BTreeSet<Key>,
    serial: u64,
}

impl Waiting {
    /// A pod waits. One that waits already keeps its place, unless it was aside: then it is another by now.
    pub(super) fn add(&mut self, key: &Key, priority: i32, wants_company: bool, now: Moment) {
        match self.all.get_mut(key) {
            Some(entry) if matches!(entry.place, Place::Aside(_)) => {
                (entry.priority, entry.wants_company) = (priority, wants_company);
                self.resume(key, now);
            }
            Some(_) => {}
            None => {
                let entry = Entry {
                    place: Place::Taken,
                    priority,
                    tries: 0,
                    tried: now,
                    wants_company,
                    missed: false,
                };
                self.all.insert(key.clone(), entry);
                self.make_ready(key);
            }
        }
    }

    /// A pod waits no more.
    pub(super) fn remove(&mut self, key: &Key) {
        if self.all.contains_key(key) {
            self.unfile(key);
            self.all.remove(key);
            self.listening.remove(key);
        }
    }

    /// The next to be tried, if one is due; and when the next will be.
    pub(super) fn next(&mut self, now: Moment) -> Result<Key, Option<Moment>> {
        while let Some((due, key)) = self.timed.first().cloned().filter(|(due, _)| *due <= now) {
            self.timed.remove(&(due, key.clone()));
            self.make_ready(&key);
        }
        match self.ready.pop_first() {
            Some((_, _, key)) => {
                if let Some(entry) = self.all.get_mut(&key) {
                    (entry.place, entry.tried, entry.missed) = (Place::Taken, now, false);
                    self.listening.insert(key.clone());
                }
                Ok(key)
            }
            None => Err(self.timed.first().map(|(due, _)| *due)),
        }
    }

    /// It was tried and fits nowhere, for now.
    pub(super) fn put_aside(&mut self, key: &Key, now: Moment) {
        let Some(entry) = self.all.get_mut(key) else { return };
        entry.tries = entry.tries.saturating_add(1);
        if entry.missed {
            self.resume(key, now);
            return;
        }
        let until = now + STALE;
        entry.place = Place::Aside(until);
        self.timed.insert((until, key.clone()));
    }

    /// It could not be given to its node: it is tried again after a pause.
    pub(super) fn failed(&mut self, key: &Key, now: Moment) {
        if let Some(entry) = self.all.get_mut(key) {
            entry.tries = entry.tries.saturating_add(1);
            self.resume(key, now);
        }
    }

    /// Something changed: those aside to whom it may matter are tried again, each after its pause.
    pub(super) fn hear(&mut self, news: News, now: Moment) {
        if news == News::None {
            return;
        }
        let matters = |entry: &Entry| news == News::Room || entry.wants_company;
        let mut back = Vec::new();
        for key in &self.listening {
            let Some(entry) = self.all.get_mut(key) else { continue };
            match entry.place {
                Place::Aside(_) if matters(entry) => back.push(key.clone()),
                Place::Taken if matters(entry) => entry.missed = true,
                _ => {}
            }
        }
        back.iter().for_each(|key| self.resume(key, now));
    }

    /// Whether any pod is aside or being tried: whom news could matter to.
    pub(super) fn listens(&self) -> bool {
        !self.listening.is_empty()
    }

    fn resume(&mut self, key: &Key, now: Moment) {
        self.unfile(key);
        let Some(entry) = self.all.get_mut(key) else { return };
        let pause = FIRST_PAUSE.saturating_mul(1 << entry.tries.saturating_sub(1).min(8)).min(LONGEST_PAUSE);
        let due = entry.tried + pause;
        self.listening.remove(key);
        if entry.tries == 0 || due <= now {
            self.make_ready(key);
        } else {
            entry.place = Place::Pausing(due);
            self.timed.insert((due, key.clone()));
        }
    }

    fn make_ready(&mut self, key: &Key) {
        let Some(entry) = self.all.get_mut(key) else { return };
        self.serial += 1;
        self.listening.remove(key);
        entry.place = Place::Ready(entry.priority, self.serial);
        self.ready.insert((Reverse(entry.priority), self.serial, key.clone()));
    }

    fn unfile(&mut self, key: &Key) {
        match self.all.get(key).map(|entry| entry.place) {
            Some(Place::Ready(priority, serial)) => {
                self.ready.remove(&(Reverse(priority), serial, key.clone()));
            }
            Some(Place::Pausing(due) | Place::Aside(due)) => {
                self.timed.remove(&(due, key.clone()));
            }
            Some(Place::Taken) | None => {}
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
        let (mut waiting, now) = (Waiting::default(), Moment::default());
        for (name, priority) in [("a", 0), ("b", 0), ("c", 100)] {
            waiting.add(&key(name), priority, false, now);
        }
        let order: Vec<String> = (0..3).map(|_| waiting.next(now).unwrap().name().to_owned()).collect();
        assert_eq!(order, ["c", "a", "b"]);
        assert_eq!(waiting.next(now), Err(None));
    }

    #[test]
    fn what_fits_nowhere_waits_for_news_and_then_for_its_pause() {
        let (mut waiting, mut now) = (Waiting::default(), Moment::default());
        waiting.add(&key("a"), 0, false, now);
        assert!(waiting.next(now).is_ok());
        waiting.put_aside(&key("a"), now);
        assert_eq!(waiting.next(now), Err(Some(now + STALE)));
        waiting.hear(News::Company, now);
        assert_eq!(waiting.next(now), Err(Some(now + STALE)), "it wants no company");
        waiting.hear(News::Room, now);
        assert_eq!(waiting.next(now), Err(Some(now + FIRST_PAUSE)));
        now += FIRST_PAUSE;
        assert!(waiting.next(now).is_ok());
        waiting.hear(News::Room, now);
        waiting.put_aside(&key("a"), now);
        assert_eq!(
            waiting.next(now),
            Err(Some(now + FIRST_PAUSE * 2)),
            "it was being tried when there was news"
        );
        waiting.remove(&key("a"));
        assert_eq!(waiting.next(now + STALE), Err(None));
    }
}
