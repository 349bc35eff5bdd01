//! Who waits, for what, since when and until when: kept for people who ask, and for nothing else.
//!
//! Bounded: of more objects than `MOST`, the others are not remembered.

use crate::conditions::Standing;
use crate::key::Key;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use windlass_clock::{Clock, Timestamp};

/// The number of objects that are remembered.
const MOST: usize = 10_000;

const WAITING: &str = "waiting";
const REFUSED: &str = "refused";
const FAILING: &str = "failing";

/// The objects of one controller that are not as declared.
#[derive(Debug)]
pub(crate) struct WaitingObjects {
    clock: Clock,
    entries: Mutex<HashMap<Key, Entry>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    state: &'static str,
    reason: String,
    message: String,
    since: Timestamp,
    looks_again: Option<Timestamp>,
}

impl WaitingObjects {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, entries: Mutex::default() }
    }

    /// A reconcile ended with this; the object is requeued after this time, or when something changes.
    pub(crate) fn stands(&self, key: &Key, standing: Standing<'_>, due: Option<Duration>) {
        match standing {
            Standing::Complete => self.forget(key),
            Standing::Waiting(reason) => self.note(key, WAITING, reason.name(), reason.message(), due),
            Standing::Refused(reason) => self.note(key, REFUSED, reason.name(), reason.message(), due),
        }
    }

    /// Whether it would be news that an object is refused, or fails, for this reason. What is no longer kept is none.
    pub(crate) fn is_news(&self, key: &Key, reason: &str, message: &str) -> bool {
        let entries = self.entries.lock();
        match entries.get(key) {
            Some(entry) => {
                entry.state == WAITING || (entry.reason.as_str(), entry.message.as_str()) != (reason, message)
            }
            None => entries.len() < MOST,
        }
    }

    /// A reconcile failed; it is tried again after this time, or when something changes.
    pub(crate) fn fails(&self, key: &Key, label: &str, why: &str, delay: Option<Duration>) {
        self.note(key, FAILING, label, why, delay);
    }

    /// Nothing is awaited any more.
    pub(crate) fn forget(&self, key: &Key) {
        let mut entries = self.entries.lock();
        if !entries.is_empty() {
            entries.remove(key);
        }
    }

    fn note(&self, key: &Key, state: &'static str, reason: &str, message: &str, due: Option<Duration>) {
        let now = self.clock.now();
        let mut entries = self.entries.lock();
        if entries.len() >= MOST && !entries.contains_key(key) {
            return;
        }
        let before = entries.get(key).filter(|entry| entry.state == state && entry.reason == reason);
        let entry = Entry {
            state,
            reason: reason.to_owned(),
            message: message.to_owned(),
            since: before.map_or(now, |entry| entry.since),
            looks_again: due.and_then(|due| now.checked_add(due).ok()),
        };
        entries.insert(key.clone(), entry);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.lock().len()
    }

    /// What is awaited for one object.
    pub(crate) fn of(&self, key: &Key) -> Option<Value> {
        self.entries.lock().get(key).map(|entry| entry.show(key))
    }

    /// The longest awaited, `most` at most.
    pub(crate) fn show(&self, most: usize) -> Vec<Value> {
        let mut entries: Vec<(Key, Entry)> =
            self.entries.lock().iter().map(|(key, entry)| (key.clone(), entry.clone())).collect();
        entries.sort_by(|(one, a), (other, b)| a.since.cmp(&b.since).then_with(|| one.cmp(other)));
        entries.iter().take(most).map(|(key, entry)| entry.show(key)).collect()
    }
}

impl Entry {
    fn show(&self, key: &Key) -> Value {
        json!({
            "object": key.to_string(),
            "state": self.state,
            "reason": self.reason,
            "message": self.message,
            "since": self.since.to_string(),
            "looksAgain": self.looks_again.map(|time| time.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Reason;

    #[test]
    fn what_is_awaited_keeps_the_time_it_was_first_awaited() {
        let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
        let waiting = WaitingObjects::new(clock);
        let key = Key::new("c".into(), Some("ns"), "a");
        let reason = Reason::new("Starts", "it starts");
        waiting.stands(&key, Standing::Waiting(&reason), Some(Duration::from_secs(5)));
        driver.advance(Duration::from_secs(5));
        waiting.stands(&key, Standing::Waiting(&reason), Some(Duration::from_secs(5)));
        let shown = waiting.of(&key).unwrap();
        assert_eq!(shown["since"], "2026-01-01T00:00:00Z");
        assert_eq!(shown["looksAgain"], "2026-01-01T00:00:10Z");
        waiting.fails(&key, "Conflict", "another wrote", Some(Duration::from_secs(1)));
        assert_eq!(waiting.show(10)[0]["since"], "2026-01-01T00:00:05Z", "that is something else");
        waiting.stands(&key, Standing::Complete, None);
        assert_eq!((waiting.of(&key), waiting.len()), (None, 0));
    }

    #[test]
    fn what_was_noted_is_no_news() {
        let (clock, _driver) = Clock::driven(Timestamp::UNIX_EPOCH);
        let waiting = WaitingObjects::new(clock);
        let key = Key::new("c".into(), Some("ns"), "a");
        assert!(waiting.is_news(&key, "Unclear", "what?"));
        waiting.stands(&key, Standing::Refused(&Reason::new("Unclear", "what?")), None);
        assert!(!waiting.is_news(&key, "Unclear", "what?") && waiting.is_news(&key, "Unclear", "who?"));
        waiting.stands(&key, Standing::Waiting(&Reason::new("Unclear", "what?")), None);
        assert!(waiting.is_news(&key, "Unclear", "what?"), "it was something else meanwhile");
        waiting.stands(&key, Standing::Complete, None);
        assert!(waiting.is_news(&key, "Unclear", "what?"));
    }

    #[test]
    fn the_number_of_waiting_objects_is_bounded() {
        let (clock, _driver) = Clock::driven(Timestamp::UNIX_EPOCH);
        let waiting = WaitingObjects::new(clock);
        for number in 0..MOST + 5 {
            waiting.fails(&Key::new("c".into(), None, &number.to_string()), "E", "e", None);
        }
        assert_eq!((waiting.len(), waiting.show(3).len()), (MOST, 3));
        assert!(
            !waiting.is_news(&Key::new("c".into(), None, "beyond"), "E", "e"),
            "it would be news for ever"
        );
    }
}
