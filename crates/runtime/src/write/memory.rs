//! What was applied last and what came of it: the way out where comparing cannot tell, and against servers that change
//! what they are given.
//!
//! The same intent over our own unchanged fields is settled, whatever a mutating server made of it. The same intent over
//! fields that somebody changed was undone, which `fights.rs` counts.

use super::requests::Subresource;
use crate::cache::ObjectVersion;
use crate::key::Key;
use crate::kind::Kind;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::io;
use std::num::NonZero;

/// The intents that were sent, and the object that came of each. Of all of it only hashes: there is one for each of many
/// thousand objects, and what is forgotten or mistaken for another is compared, or applied once more.
#[derive(Debug, Default)]
pub(super) struct Memory {
    hasher: RandomState,
    applied: Mutex<HashMap<Place, Applied>>,
}

/// A subresource of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place(u64);

#[derive(Debug)]
struct Applied {
    /// The intent, and the UID of the object that it was for.
    what: u64,
    /// The version that came of it.
    left: u64,
    /// The values of our fields as the server answered them.
    own: Option<NonZero<u64>>,
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

/// Which intent: a hash of all that it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Meant(u64);

impl Memory {
    pub(super) fn place(&self, kind: &Kind, key: &Key, subresource: Subresource) -> Place {
        Place(self.hasher.hash_one((&kind.group, &kind.plural, key, subresource)))
    }

    pub(super) fn meant(&self, made_of: impl Hash) -> Meant {
        Meant(self.hasher.hash_one(made_of))
    }

    fn what(&self, intent: Meant, on: &ObjectVersion) -> u64 {
        self.hasher.hash_one((intent, &on.uid))
    }

    /// What is known about an intent, for an object with this version on which our fields have these values.
    pub(super) fn of(&self, place: Place, intent: Meant, now: &ObjectVersion, own: Option<&Value>) -> Known {
        let applied = self.applied.lock();
        let Some(applied) = applied.get(&place) else { return Known::Nothing };
        if applied.what != self.what(intent, now) {
            return Known::Nothing;
        }
        let same = applied.left == now.version || (applied.own.is_some() && applied.own == own.map(hash_of));
        if same { Known::Settled } else { Known::Undone }
    }

    /// Whether an intent was applied and the object is the very one that came of it, without a look at its contents.
    pub(super) fn is_settled(&self, place: Place, intent: Meant, now: &ObjectVersion) -> bool {
        self.applied
            .lock()
            .get(&place)
            .is_some_and(|applied| applied.left == now.version && applied.what == self.what(intent, now))
    }

    pub(super) fn remember(&self, place: Place, intent: Meant, left: &ObjectVersion, own: Option<&Value>) {
        let applied = Applied { what: self.what(intent, left), left: left.version, own: own.map(hash_of) };
        self.applied.lock().insert(place, applied);
    }

    /// The object is gone, and what was applied to it says nothing about its successor.
    pub(super) fn forget(&self, kind: &Kind, key: &Key) {
        let mut applied = self.applied.lock();
        for subresource in [Subresource::None, Subresource::Status] {
            applied.remove(&self.place(kind, key, subresource));
        }
        // Memory that a crowd needed is given back when it has gone.
        if applied.len() * 4 < applied.capacity() {
            applied.shrink_to_fit();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.applied.lock().len()
    }
}

/// Of the canonical text: maps are sorted.
fn hash_of(value: &Value) -> NonZero<u64> {
    let mut hashing = Hashing(DefaultHasher::new());
    // Writing to it cannot fail, nor can a value be anything but JSON.
    let _ = serde_json::to_writer(&mut hashing, value);
    NonZero::new(hashing.0.finish()).unwrap_or(NonZero::<u64>::MAX)
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
        let (kind, key) = (Kind::of::<ConfigMap>(), Key::new("c".into(), Some("ns"), "n"));
        let place = memory.place(&kind, &key, Subresource::None);
        let object_version = |version| ObjectVersion { uid: "u".into(), version };
        let (intent, made) = (memory.meant(json!({"a": 1})), json!({"a": 2}));
        assert_eq!(memory.of(place, intent, &object_version(1), None), Known::Nothing);
        memory.remember(place, intent, &object_version(2), Some(&made));
        assert_eq!(memory.of(place, intent, &object_version(2), None), Known::Settled, "the very version");
        assert_eq!(
            memory.of(place, intent, &object_version(3), Some(&made)),
            Known::Settled,
            "others changed theirs"
        );
        assert_eq!(memory.of(place, intent, &object_version(3), Some(&json!({"a": 3}))), Known::Undone);
        assert!(
            memory.is_settled(place, intent, &object_version(2))
                && !memory.is_settled(place, intent, &object_version(3))
        );
        assert_eq!(memory.of(place, memory.meant(json!({"a": 9})), &object_version(2), None), Known::Nothing);
        let another = ObjectVersion { uid: "v".into(), version: 2 };
        assert_eq!(memory.of(place, intent, &another, Some(&made)), Known::Nothing);
        assert!(!memory.is_settled(place, intent, &another));
        assert!(!memory.is_settled(
            memory.place(&kind, &key, Subresource::Status),
            intent,
            &object_version(2)
        ));
        memory.forget(&kind, &key);
        assert_eq!(memory.len(), 0);
    }
}
