//! What a decision about an object would observe now, as JSON: what `capture` prints and `plan` reads.

use super::running::Running;
use crate::key::Key;
use serde_json::{Value, json};

impl Running {
    /// The object, and what a decision about it would observe; nothing when the object is not there.
    pub(crate) fn capture(&self, key: &Key) -> Option<Value> {
        let object = self.primary.get(key)?;
        let observed = self.observe(&*object);
        Some(json!({ "controller": &*self.name, "object": object.to_json(), "observed": observed.to_json() }))
    }
}
