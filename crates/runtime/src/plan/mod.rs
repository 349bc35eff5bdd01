//! What is to be done in one reconcile: a value that can be printed, compared, tested, and shown before it is carried out.
//!
//! A decision builds one; the [`Controller`](crate::Controller) carries it out. It holds only the steps that are valid
//! now, each with its reason.

mod accessors;
mod apply;
mod delete;
mod display;
mod generated;
mod healthy;
mod intent;
mod step;
mod unserializable;

pub use apply::Apply;
pub use delete::{Delete, Propagation};
pub use generated::{Generate, GenerateError};
pub use step::{Effect, Step};
pub use unserializable::Unserializable;

use crate::action::Action;
use crate::conditions::Stated;
use crate::kind::{Kind, Object};
use crate::reason::Reason;
use intent::{drop_nulls, intent};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use unserializable::to_json;
use windlass_clock::Timestamp;

/// What is to be done in one reconcile.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use std::time::Duration;
/// # use windlass::{Plan, Reason};
/// let mut map = ConfigMap::default();
/// map.metadata.name = Some("settings".into());
/// let plan = Plan::new()
///     .apply(map, Reason::new("Configures", "the server reads it"))
///     .wait(Reason::new("ServerStarts", "the server is not up yet"), Duration::from_secs(10))
///     .status(serde_json::json!({ "phase": "Starting" }));
/// assert!(!plan.is_complete() && plan.applied::<ConfigMap>("settings").is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[must_use = "a plan does nothing until it is returned to the controller"]
pub struct Plan {
    steps: Vec<Step>,
    waits: Vec<Wait>,
    status: Option<Value>,
    conditions: Vec<Stated>,
    events: Vec<Note>,
    requeue_after: Option<Duration>,
    /// The first value that could not be serialized: such a plan is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    unserializable: Option<Unserializable>,
}

/// What a plan waits for.
///
/// ```
/// # use windlass::{Plan, Reason, Until};
/// let plan = Plan::waiting(Reason::new("NoPods", "no pod is ready"));
/// let wait = &plan.waits()[0];
/// assert_eq!((wait.reason.name(), wait.until), ("NoPods", Until::Change));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// What it waits for.
    pub reason: Reason,
    /// What ends it.
    pub until: Until,
}

/// What ends a wait.
///
/// ```
/// # use std::time::Duration;
/// # use windlass::Until;
/// assert_eq!(Until::from(Duration::from_secs(5)), Until::After(Duration::from_secs(5)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Until {
    /// A change of something that is seen.
    Change,
    /// This much time, or a change before.
    After(Duration),
    /// A time, or a change before.
    At(Timestamp),
}

impl From<Duration> for Until {
    fn from(duration: Duration) -> Self {
        Self::After(duration)
    }
}

impl From<Timestamp> for Until {
    fn from(time: Timestamp) -> Self {
        Self::At(time)
    }
}

/// An event that the plan records, beside those of its steps. It is recorded when the reconcile writes something, so that
/// an object at rest records none.
///
/// ```
/// # use windlass::{Plan, Reason};
/// let plan = Plan::new().warning(Reason::new("Slow", "the last backup took an hour"));
/// assert!(plan.notes()[0].warning);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Whether it is a warning.
    pub warning: bool,
    /// What happened.
    pub reason: Reason,
}

impl Plan {
    /// An empty plan. It is complete until it waits for something: once its steps are done nothing is left to be done, and
    /// children that it does not mention may be pruned.
    pub fn new() -> Self {
        Self::default()
    }

    /// A plan that is part of the way: something must change before the rest can be decided. It prunes nothing.
    pub fn waiting(reason: impl Into<Reason>) -> Self {
        Self::new().wait(reason, Until::Change)
    }

    /// Makes an object be as given. Fields that it leaves out are left to others, or removed if they were ours. With
    /// [`Apply::initially`], a field is set when the object is created and then left to others.
    pub fn apply(mut self, object: impl Into<Apply>, reason: impl Into<Reason>) -> Self {
        let Apply { kind, object, initially, recreate } = object.into();
        let object = self.note(object);
        let effect = Effect::Apply { kind, object, initially, recreate };
        self.steps.push(Step { effect, reason: reason.into() });
        self
    }

    /// As [`Plan::apply`], for an object of a kind that is not a type.
    pub fn apply_of(self, kind: Kind, object: impl Serialize, reason: impl Into<Reason>) -> Self {
        self.apply(Apply::of(kind, object), reason)
    }

    /// Creates an object unless it is there, with values made up at that moment and held by nothing but the object.
    pub fn create_once<K: Object>(
        mut self,
        object: K,
        generate: Generate,
        reason: impl Into<Reason>,
    ) -> Self {
        let object = self.note(intent(&object));
        let effect = Effect::CreateOnce { kind: Kind::of::<K>(), object, generate };
        self.steps.push(Step { effect, reason: reason.into() });
        self
    }

    /// Writes down intent that cannot be observed, such as who was elected or which version to go back to: creates the
    /// object, or changes it if it is still at the version that was seen. To change one, clone what was seen and change the
    /// clone; one without a resourceVersion is created.
    ///
    /// A claim ends the reconcile: the steps after it are not carried out, and the next decision is made on what was claimed. If
    /// somebody was faster, nothing is written and the decision is made again, on what they wrote. A claim that is as it
    /// should be already ends nothing.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::{Observed, Plan, Reason, Refusal};
    /// fn elect(first: &str, observed: &Observed) -> Result<Plan, Refusal> {
    ///     let why = Reason::new("Elects", "somebody must lead");
    ///     match observed.get::<ConfigMap>("leader")? {
    ///         None => {
    ///             let mut leader = ConfigMap::default();
    ///             leader.metadata.name = Some("leader".into());
    ///             leader.data = Some([("is".to_owned(), first.to_owned())].into());
    ///             Ok(Plan::new().claim(leader, why))
    ///         }
    ///         Some(leader) => Ok(Plan::new().claim((*leader).clone(), why)), // and so on
    ///     }
    /// }
    /// let plan = elect("a", &Observed::empty()).unwrap();
    /// assert_eq!(plan.applied::<ConfigMap>("leader").unwrap().data.unwrap()["is"], "a");
    /// ```
    pub fn claim<K: Object>(mut self, object: K, reason: impl Into<Reason>) -> Self {
        let version = object.meta().resource_version.clone();
        let mut object = self.note(intent(&object));
        if let (Some(version), Some(meta)) = (version, object.get_mut("metadata")) {
            meta["resourceVersion"] = version.into();
        }
        let effect = Effect::Claim { kind: Kind::of::<K>(), object };
        self.steps.push(Step { effect, reason: reason.into() });
        self
    }

    /// Has an action done, beside the reconcile; see [`Action`]. Later decisions see what became of it by
    /// [`Observed::action`](crate::Observed::action).
    pub fn action(mut self, action: Action, reason: impl Into<Reason>) -> Self {
        if let Some(why) = action.unserializable() {
            let what = format!("the arguments of action {}", action.name());
            self.note::<()>(Err(Unserializable { what, why: why.to_owned() }));
        }
        self.steps.push(Step { effect: Effect::Act(action), reason: reason.into() });
        self
    }

    /// Changes fields of an object that others own, such as a pod of a StatefulSet, by a JSON merge patch: those that it mentions
    /// are made so, and null removes one. Nothing is sent when it is so already, or if the object is not there. The
    /// controller [watches](crate::Controller::watches) the kind and [patches](crate::Controller::patches) it.
    pub fn patch<K: Object>(
        mut self,
        name: impl Into<String>,
        patch: impl Serialize,
        reason: impl Into<Reason>,
    ) -> Self {
        let patch = self.note(to_json(&patch, || format!("a patch of {}", K::kind(&()))));
        let effect = Effect::Patch { kind: Kind::of::<K>(), name: name.into(), patch };
        self.steps.push(Step { effect, reason: reason.into() });
        self
    }

    /// Deletes an object that is ours, if it is there: by its name, or with more to say by [`Delete`]. Or one that others own and
    /// to which the object is related, if the controller [says so](crate::Controller::deletes).
    pub fn delete<K: Object>(mut self, object: impl Into<Delete>, reason: impl Into<Reason>) -> Self {
        let Delete { namespace, name, propagation } = object.into();
        let effect = Effect::Delete { kind: Kind::of::<K>(), namespace, name, propagation };
        self.steps.push(Step { effect, reason: reason.into() });
        self
    }

    /// Reports this status. A field `conditions` in it is kept by the library: see [`crate::conditions`].
    pub fn status(mut self, status: impl Serialize) -> Self {
        let mut status = self.note(to_json(&status, || "the status".to_owned()));
        drop_nulls(&mut status);
        self.status = Some(status);
        self
    }

    /// Sets a condition of one's own, beside `Ready`, `Progressing` and `Degraded`.
    pub fn condition(mut self, of: impl Into<String>, holds: bool, reason: impl Into<Reason>) -> Self {
        self.conditions.push(Stated { of: of.into(), holds: Some(holds), reason: reason.into() });
        self
    }

    /// Waits: the plan is not complete, and says for what.
    pub fn wait(mut self, reason: impl Into<Reason>, until: impl Into<Until>) -> Self {
        self.waits.push(Wait { reason: reason.into(), until: until.into() });
        self
    }

    /// Requeues the object after this time, though nothing is awaited and nothing changed.
    pub fn requeue_after(mut self, after: Duration) -> Self {
        self.requeue_after = Some(self.requeue_after.map_or(after, |before| before.min(after)));
        self
    }

    /// Records an event when this reconcile writes something.
    pub fn event(mut self, reason: impl Into<Reason>) -> Self {
        self.events.push(Note { warning: false, reason: reason.into() });
        self
    }

    /// Records a warning when this reconcile writes something.
    pub fn warning(mut self, reason: impl Into<Reason>) -> Self {
        self.events.push(Note { warning: true, reason: reason.into() });
        self
    }

    /// When to look again, seen from `now`: the earliest end of a wait.
    pub fn due(&self, now: Timestamp) -> Option<Duration> {
        let waits = self.waits.iter().filter_map(|wait| match wait.until {
            Until::Change => None,
            Until::After(duration) => Some(duration),
            Until::At(time) => Some(Duration::try_from(time.duration_since(now)).unwrap_or_default()),
        });
        waits.chain(self.requeue_after).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kube::core::ObjectMeta;

    fn named(name: &str) -> ObjectMeta {
        ObjectMeta { name: Some(name.into()), ..Default::default() }
    }

    fn settings(value: &str) -> ConfigMap {
        let data = [("key".to_owned(), value.to_owned())].into();
        ConfigMap { metadata: named("settings"), data: Some(data), ..Default::default() }
    }

    fn why(name: &'static str) -> Reason {
        Reason::new(name, name.to_lowercase())
    }

    #[test]
    fn a_plan_is_asked_what_it_does() {
        let plan = Plan::new()
            .apply(settings("v"), why("Configures"))
            .delete::<Secret>("old", why("Rotated"))
            .status(serde_json::json!({"phase": "Up", "gone": null}));
        assert_eq!(plan.applied::<ConfigMap>("settings").unwrap().data.unwrap()["key"], "v");
        assert!(plan.applied::<ConfigMap>("other").is_none());
        assert!(plan.deletes::<Secret>("old"));
        assert_eq!(plan.reason_for::<ConfigMap>("settings").unwrap().name(), "Configures");
        assert_eq!(plan.reported(), Some(&serde_json::json!({"phase": "Up"})));
        assert!(plan.is_complete());
    }

    #[test]
    fn a_claim_keeps_the_version_that_was_seen_and_nothing_else_of_the_servers() {
        let mut observed = settings("v");
        observed.metadata.resource_version = Some("7".into());
        observed.metadata.uid = Some("u".into());
        let plan = Plan::new().claim(observed, why("Elects"));
        let claimed = plan.applied::<ConfigMap>("settings").unwrap();
        assert_eq!(claimed.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(claimed.metadata.uid, None);
        assert!(plan.to_string().contains("claim ConfigMap settings"), "{plan}");
    }

    #[test]
    fn two_plans_with_the_same_steps_are_equal() {
        let plan = |value| Plan::new().apply(settings(value), why("Configures"));
        assert_eq!(plan("v"), plan("v"));
        assert_ne!(plan("v"), plan("w"));
    }

    #[test]
    fn a_waiting_plan_looks_again_at_the_earliest_end() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let plan = Plan::waiting(why("Slow"))
            .wait(why("Soon"), Duration::from_secs(60))
            .wait(why("Sooner"), now + Duration::from_secs(10));
        assert!(!plan.is_complete());
        assert_eq!(plan.due(now), Some(Duration::from_secs(10)));
        assert_eq!(plan.due(now + Duration::from_secs(30)), Some(Duration::ZERO));
        assert_eq!(Plan::waiting(why("Slow")).due(now), None);
    }
}
