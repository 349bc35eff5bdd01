//! What a controller answers when it is asked about, rather than run.

use super::parts::{Mode, Parts};
use super::running::Running;
use crate::command::{Decision, Described};
use crate::key::Key;
use crate::seen::Seen;
use serde_json::{Value, json};

impl Parts {
    /// Itself as data.
    pub(crate) fn described(&self) -> Described {
        let seen = |refers: bool| {
            let kinds = self.sees.iter().filter(move |(_, _, by_name)| *by_name == refers);
            kinds.map(|(watched, _, _)| watched.kind.clone()).collect()
        };
        Described {
            name: self.name.clone(),
            kind: self.kind.clone(),
            owns: self.owns.iter().map(|watched| watched.kind.clone()).collect(),
            sees: seen(false),
            refers: seen(true),
            prunes: self.prunes.iter().cloned().collect(),
            actions: self.actions.keys().cloned().collect(),
            facts: self.facts.keys().cloned().collect(),
            decides: matches!(self.mode, Mode::Deciding(_)),
            undoes: self.undo.is_some(),
            concurrency: self.concurrency,
        }
    }

    /// What it would do about this object, given what was seen.
    pub(crate) fn decided(&self, object: Value, seen: &Seen) -> Result<Decision, String> {
        let object = (self.read)(object)
            .map_err(|error| format!("the captured object is no {}: {error}", self.kind))?;
        let decide = match (&self.mode, object.meta().deletion_timestamp.is_some()) {
            (_, true) => self.undo.as_ref(),
            (Mode::Deciding(decide), false) => Some(decide),
            (Mode::Reconciling(_), false) => None,
        };
        Ok(decide.map(|decide| decide(&*object, seen)))
    }
}

impl Running {
    /// What a decision about an object would see now; nothing when the object is not there.
    pub(crate) fn captured(&self, key: &Key) -> Option<Value> {
        let object = self.primary.get(key)?;
        let seen = self.observe(&*object);
        Some(json!({ "controller": &*self.name, "object": object.to_json(), "seen": seen.to_json() }))
    }
}
