//! What was applied last to which version: the way out where comparing cannot tell, and against webhooks that undo us.

use super::requests::Door;
use crate::cache::Stamp;
use crate::key::Key;
use crate::kind::Kind;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The intents that were sent, by hash, and the object that came of each.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<Place, (u64, Stamp)>>);

/// A door of an object.
type Place = (Kind, Key, Door);

impl Memory {
    /// Whether exactly this was applied and left the object as it is now.
    pub(super) fn knows(&self, kind: &Kind, key: &Key, door: Door, intent: &Value, now: &Stamp) -> bool {
        let known = self.0.lock();
        known
            .get(&(kind.clone(), key.clone(), door))
            .is_some_and(|(hash, stamp)| *hash == hash_of(intent) && stamp == now)
    }

    pub(super) fn remember(&self, kind: &Kind, key: &Key, door: Door, intent: &Value, left: Stamp) {
        self.0.lock().insert((kind.clone(), key.clone(), door), (hash_of(intent), left));
    }

    /// The object is gone, and what was applied to it says nothing about its successor.
    pub(super) fn forget(&self, kind: &Kind, key: &Key) {
        let mut known = self.0.lock();
        for door in [Door::Main, Door::Status] {
            known.remove(&(kind.clone(), key.clone(), door));
        }
    }
}

/// Of the canonical text: maps are sorted.
fn hash_of(intent: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    intent.to_string().hash(&mut hasher);
    hasher.finish()
}
