//! What became of a write.

use crate::object::text;
use serde_json::Value;
use std::sync::Arc;
use windlass_store::Entry;

/// What became of a write.
pub(crate) enum Outcome {
    /// It is in the store.
    Stored(Arc<Entry>),
    /// It would have become this, or became this and went away at once.
    Unstored(Value),
}

impl Outcome {
    /// The object's name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Stored(entry) => &entry.key().name,
            Self::Unstored(value) => text(value, &["metadata", "name"]),
        }
    }
}
