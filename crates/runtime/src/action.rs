//! Work that is more than a write: what a plan asks for, under which guard, and what became of it.

use crate::kind::{Kind, Object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use windlass_clock::Timestamp;

/// How long an action may take, unless the plan says otherwise.
const WITHIN: Duration = Duration::from_secs(300);

/// An action that a plan asks for, by the name that it has on the [`Controller`](crate::Controller::action) and a key of the
/// plan's choice.
///
/// The key says which run it is: asked for again under the same key, it is the same action, and one that is done is not done
/// again. What became of it is a cache, safe to lose and lost with the process; so an action must be idempotent, and what has
/// to outlive it belongs into the status or a claim. Arguments are printed with the plan: name a Secret, never its content.
///
/// ```
/// use std::time::Duration;
/// use windlass::{Action, Observed, Plan, Reason};
///
/// let observed = Observed::empty();
/// let plan = match observed.action("backup", "monday").unwrap() {
///     outcome if outcome.is_done() => Plan::new(),
///     _ => Plan::waiting(Reason::new("BacksUp", "the backup runs")).action(
///         Action::new("backup", "monday").with("s3://bucket").within(Duration::from_secs(3600)),
///         Reason::new("Scheduled", "it is monday"),
///     ),
/// };
/// assert_eq!(plan.actions().next().unwrap().key(), "monday");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[must_use = "an action is done when a plan asks for it"]
pub struct Action {
    name: String,
    key: String,
    args: Value,
    within: Duration,
    guards: Vec<Guard>,
    /// Why its arguments could not be serialized: a plan with such an action is refused.
    #[serde(skip)]
    unserializable: Option<String>,
}

/// What must hold of the object, or by [`Guard::of`] of another one, read live, at the moment when an action starts. That it is
/// the same object, and that this process leads, is always asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Guard {
    /// Nothing about it changed.
    Version(Option<String>),
    /// What it declares did not change.
    Generation(Option<i64>),
    /// It is not being deleted.
    NotDeleted,
    /// The value at a JSON pointer is this; null stands for nothing there.
    Field {
        /// Where.
        pointer: String,
        /// What.
        is: Value,
    },
    /// Something holds of another object, in the namespace of the object if its kind has any; it has to be there.
    Of {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// What holds of it.
        holds: Box<Guard>,
    },
}

impl Guard {
    /// Nothing about the object changed since it was decided on.
    pub fn unchanged<K: kube::Resource>(object: &K) -> Self {
        Self::Version(object.meta().resource_version.clone())
    }

    /// What the object declares did not change since it was decided on.
    pub fn same_spec<K: kube::Resource>(object: &K) -> Self {
        Self::Generation(object.meta().generation)
    }

    /// The value at a JSON pointer, such as `/spec/paused`, is this.
    pub fn field(pointer: impl Into<String>, is: impl Into<Value>) -> Self {
        Self::Field { pointer: pointer.into(), is: is.into() }
    }

    /// This holds of another object, which has to be there: a Lease, the pod that is to be promoted. The controller says of which
    /// kinds with [`Controller::guards`](crate::Controller::guards).
    ///
    /// ```
    /// # use k8s_openapi::api::coordination::v1::Lease;
    /// # use windlass::{Action, Guard};
    /// let promote = Action::new("promote", "db-1, epoch 7")
    ///     .only_if(Guard::of::<Lease>("primary", Guard::field("/spec/holderIdentity", "db-1")));
    /// ```
    pub fn of<K: Object>(name: impl Into<String>, holds: Self) -> Self {
        Self::Of { kind: Kind::of::<K>(), name: name.into(), holds: Box::new(holds) }
    }

    /// The other object that it is about, if it is about one.
    pub(crate) fn other(&self) -> Option<(&Kind, &str, &Self)> {
        match self {
            Self::Of { kind, name, holds } => Some((kind, name, holds)),
            _ => None,
        }
    }

    /// Why it does not hold of an object, if it does not. What is to hold of another is looked at by whoever reads that.
    pub(crate) fn broken(&self, meta: &ObjectMeta, object: &Value) -> Option<String> {
        match self {
            Self::Version(observed) if *observed != meta.resource_version => {
                Some("the object changed".to_owned())
            }
            Self::Generation(observed) if *observed != meta.generation => {
                Some("what the object declares changed".to_owned())
            }
            Self::NotDeleted if meta.deletion_timestamp.is_some() => {
                Some("the object is being deleted".to_owned())
            }
            Self::Field { pointer, is } => {
                let now = object.pointer(pointer).unwrap_or(&Value::Null);
                (now != is).then(|| format!("{pointer} is no longer {is}"))
            }
            _ => None,
        }
    }
}

impl Action {
    /// The action of that name, run under that key.
    pub fn new(name: impl Into<String>, key: impl Into<String>) -> Self {
        let (name, key) = (name.into(), key.into());
        Self { name, key, args: Value::Null, within: WITHIN, guards: Vec::new(), unserializable: None }
    }

    /// With these arguments.
    pub fn with(mut self, args: impl Serialize) -> Self {
        match serde_json::to_value(args) {
            Ok(args) => (self.args, self.unserializable) = (args, None),
            Err(error) => self.unserializable = Some(error.to_string()),
        }
        self
    }

    /// The timeout after which it is cut off; by default five minutes.
    pub fn within(mut self, limit: Duration) -> Self {
        self.within = limit;
        self
    }

    /// Started only if this holds then.
    pub fn only_if(mut self, guard: Guard) -> Self {
        self.guards.push(guard);
        self
    }

    /// Why its arguments cannot be serialized, if they cannot.
    pub(crate) fn unserializable(&self) -> Option<&str> {
        self.unserializable.as_deref()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which run of it.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its arguments.
    pub fn args(&self) -> &Value {
        &self.args
    }

    /// How long it may take.
    pub fn limit(&self) -> Duration {
        self.within
    }

    /// What must hold when it starts.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }
}

/// What became of an action, as the next decision sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Nothing is known of it: it was not asked for, or by a process that is gone.
    Unknown,
    /// It was asked for, and waits for its reconcile.
    Waiting,
    /// It runs.
    Running {
        /// Since when.
        since: Timestamp,
    },
    /// It is done, and is not done again under this key.
    Done {
        /// Since when.
        at: Timestamp,
        /// What it returned.
        said: Value,
    },
    /// It failed. Asked for again, it is tried again after a back-off.
    Failed {
        /// When.
        at: Timestamp,
        /// How.
        why: String,
        /// How often in a row it failed or took too long.
        times: u32,
    },
    /// It took too long, and was cut off wherever it was. Asked for again, it is tried again after a back-off.
    TimedOut {
        /// When.
        at: Timestamp,
        /// How often in a row it failed or took too long.
        times: u32,
    },
    /// A guard did not hold when it was about to start: nothing was done.
    Overtaken {
        /// When.
        at: Timestamp,
        /// What did not hold.
        why: String,
    },
}

impl Outcome {
    /// Whether it is done.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }

    /// Whether it runs, or will.
    pub fn is_under_way(&self) -> bool {
        matches!(self, Self::Waiting | Self::Running { .. })
    }

    /// How often in a row it failed or took too long.
    pub fn failures(&self) -> u32 {
        match self {
            Self::Failed { times, .. } | Self::TimedOut { times, .. } => *times,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_guard_says_what_no_longer_holds() {
        let meta =
            ObjectMeta { resource_version: Some("7".into()), generation: Some(2), ..Default::default() };
        let object = json!({"spec": {"size": 3}});
        let broken = |guard: Guard| guard.broken(&meta, &object);
        assert_eq!(broken(Guard::Version(Some("7".into()))), None);
        assert!(broken(Guard::Version(Some("6".into()))).is_some());
        assert_eq!(broken(Guard::Generation(Some(2))), None);
        assert!(broken(Guard::Generation(Some(1))).is_some());
        assert_eq!(broken(Guard::NotDeleted), None);
        assert_eq!(broken(Guard::field("/spec/size", 3)), None);
        assert_eq!(broken(Guard::field("/spec/size", 4)).unwrap(), "/spec/size is no longer 4");
        assert_eq!(broken(Guard::field("/spec/none", Value::Null)), None, "nothing is null");
    }
}
