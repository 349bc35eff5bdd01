//! What a controller answers when it is asked about, rather than run.

use super::parts::{Decide, Mode, Parts, Read};
use super::running::Running;
use crate::command::{Decision, Described};
use crate::key::Key;
use crate::kind::Kind;
use crate::observed::Observed;
use serde_json::{Value, json};

impl Parts {
    /// Itself as data.
    pub(crate) fn described(&self) -> Described {
        let observed = |refers: bool| {
            let kinds = self.sees.iter().filter(move |(_, _, by_name)| *by_name == refers);
            kinds.map(|(watched, _, _)| watched.kind.clone()).collect()
        };
        Described {
            name: self.name.clone(),
            kind: self.kind.clone(),
            owns: self.owns.iter().map(|watched| watched.kind.clone()).collect(),
            sees: observed(false),
            refers: observed(true),
            prunes: self.prunes.iter().cloned().collect(),
            deletes: self.deletes.iter().cloned().collect(),
            claims: self.claims.iter().cloned().collect(),
            uses: self.uses.clone(),
            anywhere: self.anywhere.iter().cloned().collect(),
            actions: self.actions.keys().cloned().collect(),
            facts: self.facts.keys().cloned().collect(),
            decides: matches!(self.mode, Mode::Deciding(_)),
            cleans_up: self.cleanup.is_some(),
            concurrency: self.concurrency,
        }
    }

    /// What decides for it, to be asked without it.
    pub(crate) fn decider(&self) -> Decider {
        let decide = match &self.mode {
            Mode::Deciding(decide) => Some(decide.clone()),
            Mode::Reconciling(_) => None,
        };
        let cleanup = self.cleanup.clone();
        Decider { name: self.name.clone(), kind: self.kind.clone(), decide, cleanup, read: self.read }
    }
}

/// What decides for a controller.
pub(crate) struct Decider {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// None where it does not decide purely.
    decide: Option<Decide>,
    cleanup: Option<Decide>,
    read: Read,
}

impl Decider {
    /// What it would do about this object, given what was seen.
    pub(crate) fn decided(&self, object: Value, observed: &Observed) -> Result<Decision, String> {
        let object = (self.read)(object)
            .map_err(|error| format!("the captured object is no {}: {error}", self.kind))?;
        let going = object.meta().deletion_timestamp.is_some();
        let decide = if going { self.cleanup.as_ref() } else { self.decide.as_ref() };
        Ok(decide.map(|decide| decide(&*object, observed)))
    }
}

impl Running {
    /// What a decision about an object would see now; nothing when the object is not there.
    pub(crate) fn captured(&self, key: &Key) -> Option<Value> {
        let object = self.primary.get(key)?;
        let observed = self.observe(&*object);
        Some(json!({ "controller": &*self.name, "object": object.to_json(), "observed": observed.to_json() }))
    }
}
