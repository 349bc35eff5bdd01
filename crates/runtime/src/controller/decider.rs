//! The decision of a controller, to be asked without running it: what `plan` and `capture` are made of.

use super::parts::{Decide, Mode, Parts, Read};
use super::running::Running;
use crate::key::Key;
use crate::kind::Kind;
use crate::observed::Observed;
use crate::plan::Plan;
use crate::reason::Refusal;
use serde_json::{Value, json};

impl Parts {
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

/// What a controller would do; `None` where it does not decide purely, or has nothing to clean up.
pub(crate) type Decision = Option<Result<Plan, Refusal>>;

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
    pub(crate) fn decide(&self, object: Value, observed: &Observed) -> Result<Decision, String> {
        let object = (self.read)(object)
            .map_err(|error| format!("the captured object is no {}: {error}", self.kind))?;
        let terminating = object.meta().deletion_timestamp.is_some();
        let decide = if terminating { self.cleanup.as_ref() } else { self.decide.as_ref() };
        Ok(decide.map(|decide| {
            let plan = decide(&*object, observed)?;
            plan.check()?;
            Ok(plan)
        }))
    }
}

impl Running {
    /// What a decision about an object would see now; nothing when the object is not there.
    pub(crate) fn capture(&self, key: &Key) -> Option<Value> {
        let object = self.primary.get(key)?;
        let observed = self.observe(&*object);
        Some(json!({ "controller": &*self.name, "object": object.to_json(), "observed": observed.to_json() }))
    }
}
