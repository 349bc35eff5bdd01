//! What is in a plan, for those who carry it out and for tests.

use super::{Effect, Note, Plan, Step, Wait};
use crate::action::Action;
use crate::conditions::Stated;
use crate::kind::{Kind, Object};
use crate::reason::Reason;
use serde_json::Value;

impl Plan {
    /// Whether nothing is awaited.
    pub fn is_complete(&self) -> bool {
        self.waits.is_empty()
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What it waits for.
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// The status that it reports, as JSON.
    pub fn reported(&self) -> Option<&Value> {
        self.status.as_ref()
    }

    /// The conditions that it sets itself.
    pub fn stated(&self) -> &[Stated] {
        &self.conditions
    }

    /// The events that it records itself.
    pub fn notes(&self) -> &[Note] {
        &self.events
    }

    /// The actions that it asks for.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.steps.iter().filter_map(|step| match &step.effect {
            Effect::Act(action) => Some(action),
            _ => None,
        })
    }

    /// The object that the plan applies, creates or claims under a name; for tests.
    pub fn applied<K: Object>(&self, name: &str) -> Option<K> {
        let kind = Kind::of::<K>();
        self.steps.iter().find_map(|step| match &step.effect {
            Effect::Apply { kind: of, object, .. }
            | Effect::CreateOnce { kind: of, object, .. }
            | Effect::Claim { kind: of, object }
                if *of == kind && step.effect.name() == name =>
            {
                serde_json::from_value(object.clone()).ok()
            }
            _ => None,
        })
    }

    /// Whether the plan deletes the object of that name; for tests.
    pub fn deletes<K: Object>(&self, name: &str) -> bool {
        let kind = Kind::of::<K>();
        self.steps.iter().any(|step| {
            matches!(&step.effect, Effect::Delete { .. })
                && step.effect.kind() == Some(&kind)
                && step.effect.name() == name
        })
    }

    /// The reason of the step about this object; for tests.
    pub fn reason_for<K: Object>(&self, name: &str) -> Option<&Reason> {
        let kind = Kind::of::<K>();
        let step =
            self.steps.iter().find(|step| step.effect.kind() == Some(&kind) && step.effect.name() == name);
        step.map(|step| &step.reason)
    }

    /// The status that it reports, typed; for tests.
    pub fn reported_as<S: serde::de::DeserializeOwned>(&self) -> Option<S> {
        serde_json::from_value(self.status.clone()?).ok()
    }
}
