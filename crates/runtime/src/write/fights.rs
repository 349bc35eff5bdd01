//! Two managers that set one field each to their own value, again and again: noticed, and then fought seldom.
//!
//! More than five times within a minute is a fight: it is reported, and the field is applied again only after a delay that
//! doubles each time, up to ten minutes.

use super::change::{item, own_entry_of};
use super::requests::Subresource;
use crate::key::Key;
use crate::kind::Kind;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use windlass_clock::Moment;

/// The number of times within [`WINDOW`] that another may undo what was applied; once more is a fight.
pub(super) const FLIPS: usize = 5;
/// What was undone longer ago was another quarrel.
const WINDOW: Duration = Duration::from_secs(60);
/// How long nothing is written after a fight is noticed. It doubles each time the fight goes on.
const FIRST_TRUCE: Duration = Duration::from_secs(10);
/// And no longer than this.
pub(super) const LONGEST_TRUCE: Duration = Duration::from_secs(600);
/// Fields that are named; more would only make the sentence long.
const NAMED: usize = 5;

/// A field that two managers want, and who the other one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contest {
    /// As a path, such as `.data.key`.
    pub field: String,
    /// The other's field manager.
    pub manager: String,
}

/// How often what was applied was undone, by object and subresource.
#[derive(Debug, Default)]
pub(super) struct Fights(Mutex<HashMap<(Kind, Key, Subresource), Fight>>);

impl Fights {
    /// What was applied before was undone: how long to leave it so, if this is a fight.
    pub(super) fn undone(
        &self,
        kind: &Kind,
        key: &Key,
        subresource: Subresource,
        now: Moment,
    ) -> Option<Duration> {
        self.0.lock().entry((kind.clone(), key.clone(), subresource)).or_default().undone(now)
    }

    pub(super) fn forget(&self, kind: &Kind, key: &Key) {
        let mut fights = self.0.lock();
        if fights.is_empty() {
            return;
        }
        for subresource in [Subresource::None, Subresource::Status] {
            fights.remove(&(kind.clone(), key.clone(), subresource));
        }
    }
}

#[derive(Debug, Default)]
struct Fight {
    undone: VecDeque<Moment>,
    truce: Option<Truce>,
}

#[derive(Debug)]
struct Truce {
    until: Moment,
    length: Duration,
    /// Whether it was over, and applied once more.
    tried: bool,
}

impl Fight {
    fn undone(&mut self, now: Moment) -> Option<Duration> {
        if let Some(truce) = &mut self.truce {
            if now < truce.until {
                return Some(truce.until - now);
            }
            if now < truce.until + truce.length.max(WINDOW) {
                if !std::mem::replace(&mut truce.tried, true) {
                    return None;
                }
                let length = (truce.length * 2).min(LONGEST_TRUCE);
                *truce = Truce { until: now + length, length, tried: false };
                return Some(length);
            }
            self.truce = None;
        }
        self.undone.push_back(now);
        while self.undone.front().is_some_and(|first| now - *first > WINDOW) {
            self.undone.pop_front();
        }
        if self.undone.len() <= FLIPS {
            return None;
        }
        self.undone.clear();
        self.truce = Some(Truce { until: now + FIRST_TRUCE, length: FIRST_TRUCE, tried: false });
        Some(FIRST_TRUCE)
    }
}

/// The fields of the intent that are otherwise in the live object and that other managers hold.
pub(super) fn contests(
    intent: &Value,
    live: &Value,
    manager: &str,
    subresource: Subresource,
) -> Vec<Contest> {
    let mut found = Vec::new();
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        if own_entry_of(entry, manager, subresource) {
            continue;
        }
        if let Some(fields) = entry.get("fieldsV1").and_then(Value::as_object) {
            differing(intent, live, fields, &mut String::new(), 0, &mut |field| {
                if found.len() < NAMED {
                    found.push(Contest { field: field.to_owned(), manager: text("manager").to_owned() });
                }
            });
        }
    }
    found
}

/// Deeper than any object that a server takes.
const MAX_DEPTH: usize = 128;

fn differing(
    intent: &Value,
    live: &Value,
    fields: &Map<String, Value>,
    path: &mut String,
    depth: usize,
    tell: &mut impl FnMut(&str),
) {
    let parts = || fields.iter().filter(|(part, _)| *part != ".");
    if parts().next().is_none() {
        if intent != live {
            tell(path);
        }
        return;
    }
    for (part, below) in parts().take_while(|_| depth < MAX_DEPTH) {
        let Some(below) = below.as_object() else { continue };
        let before = path.len();
        let (wanted, there) = match (part.strip_prefix("f:"), intent, live) {
            (Some(field), Value::Object(wanted), there) => {
                path.push('.');
                path.push_str(field);
                (wanted.get(field), there.get(field))
            }
            (None, Value::Array(wanted), Value::Array(there)) => {
                path.push_str(&format!("[{}]", part.split_once(':').map_or("", |(_, key)| key)));
                (item(wanted, part), item(there, part))
            }
            _ => (None, None),
        };
        if let Some(wanted) = wanted {
            differing(wanted, there.unwrap_or(&Value::Null), below, path, depth + 1, tell);
        }
        path.truncate(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(seconds: u64) -> Moment {
        Moment::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn undone_now_and_then_is_no_fight() {
        let mut fight = Fight::default();
        for minute in 0..50 {
            assert_eq!(fight.undone(at(minute * 15)), None, "every quarter of a minute");
        }
    }

    #[test]
    fn a_fight_is_noticed_and_then_fought_ever_more_seldom() {
        let mut fight = Fight::default();
        for second in 0..5 {
            assert_eq!(fight.undone(at(second)), None);
        }
        assert_eq!(fight.undone(at(5)), Some(FIRST_TRUCE));
        assert_eq!(fight.undone(at(10)), Some(Duration::from_secs(5)), "the rest of it");
        assert_eq!(fight.undone(at(15)), None, "once more");
        assert_eq!(fight.undone(at(15)), Some(FIRST_TRUCE * 2));
        let (mut now, mut written) = (15, 0);
        while now < 7200 {
            match fight.undone(at(now)) {
                Some(wait) => now += wait.as_secs(),
                None => written += 1,
            }
        }
        assert!(written < 20, "{written} writes in two hours");
    }

    #[test]
    fn a_fight_that_is_over_is_forgotten() {
        let mut fight = Fight::default();
        for _ in 0..6 {
            fight.undone(at(0));
        }
        assert_eq!(fight.undone(at(500)), None);
        assert!(fight.truce.is_none());
    }

    #[test]
    fn the_field_and_the_other_manager_are_named() {
        let live = json!({
            "metadata": {"managedFields": [
                {"manager": "us", "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}}},
                {"manager": "them", "operation": "Update", "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}},
                {"manager": "list", "operation": "Apply", "fieldsV1": {"f:l": {"k:{\"name\":\"x\"}": {"f:v": {}}}}},
            ]},
            "data": {"a": "theirs", "b": "same", "c": "not wanted"},
            "l": [{"name": "x", "v": 1}],
        });
        let intent = json!({"data": {"a": "ours", "b": "same"}, "l": [{"name": "x", "v": 2}]});
        let contest = |field: &str, manager: &str| Contest { field: field.into(), manager: manager.into() };
        let found = contests(&intent, &live, "us", Subresource::None);
        assert_eq!(found, [contest(".data.a", "them"), contest(".l[{\"name\":\"x\"}].v", "list")]);
    }
}
