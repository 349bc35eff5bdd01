//! What was applied last and what came of it: the way out where comparing cannot tell, and against servers that change
//! what they are given.

use super::requests::Door;
use crate::cache::Stamp;
use crate::key::Key;
use crate::kind::Kind;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::io;

/// The intents that were sent, by hash, and the object that came of each. By kind first: its names are held once, and not
/// for each of ten thousand objects.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<Kind, OfKind>>);

type OfKind = HashMap<(Key, Door), Applied>;

/// A door of an object.
type Place = (Kind, Key, Door);

#[derive(Debug)]
struct Applied {
    intent: u64,
    left: Stamp,
    /// The values of our fields as the server answered them.
    own: Option<u64>,
}

/// What is known about an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It was not the last that was applied, or to another object.
    Nothing,
    /// It was applied, and what came of it is there still.
    Settled,
    /// It was applied, and what came of it was changed since.
    Undone,
}

impl Memory {
    fn look<T>(&self, (kind, key, door): &Place, look: impl FnOnce(&Applied) -> T) -> Option<T> {
        self.0.lock().get(kind)?.get(&(key.clone(), *door)).map(look)
    }

    /// What is known about an intent, for an object with this stamp on which our fields have these values.
    pub(super) fn of(&self, place: &Place, intent: &Value, now: &Stamp, own: Option<&Value>) -> Known {
        let known = self.look(place, |applied| {
            if applied.intent != hash_of(intent) || applied.left.uid != now.uid {
                return Known::Nothing;
            }
            let same = applied.left == *now || (applied.own.is_some() && applied.own == own.map(hash_of));
            if same { Known::Settled } else { Known::Undone }
        });
        known.unwrap_or(Known::Nothing)
    }

    /// Whether an intent was applied and the object is the very one that came of it, without a look at its contents.
    pub(super) fn is_settled(&self, place: &Place, intent: &Value, now: &Stamp) -> bool {
        self.look(place, |applied| applied.left == *now && applied.intent == hash_of(intent))
            .unwrap_or_default()
    }

    pub(super) fn remember(&self, place: Place, intent: &Value, left: Stamp, own: Option<&Value>) {
        let applied = Applied { intent: hash_of(intent), left, own: own.map(hash_of) };
        let (kind, key, door) = place;
        self.0.lock().entry(kind).or_default().insert((key, door), applied);
    }

    /// The object is gone, and what was applied to it says nothing about its successor.
    pub(super) fn forget(&self, kind: &Kind, key: &Key) {
        let mut known = self.0.lock();
        let Some(of_kind) = known.get_mut(kind) else { return };
        for door in [Door::Main, Door::Status] {
            of_kind.remove(&(key.clone(), door));
        }
    }
}

/// Of the canonical text: maps are sorted.
fn hash_of(intent: &Value) -> u64 {
    let mut hashing = Hashing(DefaultHasher::new());
    // Writing to it cannot fail, nor can a value be anything but JSON.
    let _ = serde_json::to_writer(&mut hashing, intent);
    hashing.0.finish()
}

/// Hashes what is written to it, so that no text is made for it.
struct Hashing(DefaultHasher);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    #[test]
    fn what_a_server_made_of_an_intent_settles_until_our_fields_change() {
        let memory = Memory::default();
        let place = (Kind::of::<ConfigMap>(), Key::new("c".into(), Some("ns"), "n"), Door::Main);
        let stamp = |version| Stamp { uid: "u".into(), version };
        let (intent, made) = (json!({"a": 1}), json!({"a": 2}));
        assert_eq!(memory.of(&place, &intent, &stamp(1), None), Known::Nothing);
        memory.remember(place.clone(), &intent, stamp(2), Some(&made));
        assert_eq!(memory.of(&place, &intent, &stamp(2), None), Known::Settled, "the very version");
        assert_eq!(
            memory.of(&place, &intent, &stamp(3), Some(&made)),
            Known::Settled,
            "others changed theirs"
        );
        assert_eq!(memory.of(&place, &intent, &stamp(3), Some(&json!({"a": 3}))), Known::Undone);
        assert!(
            memory.is_settled(&place, &intent, &stamp(2)) && !memory.is_settled(&place, &intent, &stamp(3))
        );
        assert_eq!(memory.of(&place, &json!({"a": 9}), &stamp(2), None), Known::Nothing);
        let another = Stamp { uid: "v".into(), version: 2 };
        assert_eq!(memory.of(&place, &intent, &another, Some(&made)), Known::Nothing);
    }
}
