//! What is applied: an object, which of its fields are set at creation only, and what to do if it cannot be changed.

use super::Propagation;
use super::intent::{intent, strip};
use super::unserializable::{Unserializable, to_json};
use crate::kind::{Kind, Object};
use serde::Serialize;
use serde_json::Value;

/// An object to apply, for [`Plan::apply`](crate::Plan::apply). A plain object becomes one by itself; write it out to say more.
///
/// ```
/// # use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
/// # use windlass::{Apply, Plan, Reason};
/// let mut shop = Deployment::default();
/// shop.metadata.name = Some("shop".into());
/// shop.spec = Some(DeploymentSpec { replicas: Some(3), ..Default::default() });
/// let plan = Plan::new().apply(Apply::new(shop).initially("/spec/replicas"), Reason::new("Runs", "runs the shop"));
/// ```
#[derive(Debug)]
#[must_use = "nothing is applied until a plan has it"]
pub struct Apply {
    pub(super) kind: Kind,
    pub(super) object: Result<Value, Unserializable>,
    pub(super) initially: Vec<String>,
    pub(super) recreate: Option<Propagation>,
}

impl Apply {
    /// This object.
    pub fn new<K: Object>(object: K) -> Self {
        Self { kind: Kind::of::<K>(), object: intent(&object), initially: Vec::new(), recreate: None }
    }

    /// This object, of a kind that is not a type.
    pub fn of(kind: Kind, object: impl Serialize) -> Self {
        let json = to_json(&object, || kind.kind.to_string()).map(|mut json| {
            if let Some(fields) = json.as_object_mut() {
                fields.insert("apiVersion".to_owned(), kind.api_version().into());
                fields.insert("kind".to_owned(), kind.kind.clone().into());
            }
            strip(&mut json);
            json
        });
        Self { kind, object: json, initially: Vec::new(), recreate: None }
    }

    /// The field at this JSON pointer is set when the object is created, and then left to whoever changes it: an
    /// autoscaler's replicas. The pointer leads through objects, not into lists.
    pub fn initially(mut self, pointer: impl Into<String>) -> Self {
        self.initially.push(pointer.into());
        self
    }

    /// If the object cannot be changed into this, since a field of it is immutable, it is deleted, and created anew once it is
    /// gone. `dependents` says what becomes of its dependents: with [`Propagation::Orphan`] the pods of a StatefulSet run on,
    /// and the new one adopts them. The controller declares the kind with [`Controller::deletes`](crate::Controller::deletes).
    ///
    /// An object that the server would not take as a new one either is not deleted: the refusal is reported.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::StatefulSet;
    /// # use windlass::{Apply, Plan, Propagation, Reason};
    /// # let mut servers = StatefulSet::default();
    /// # servers.metadata.name = Some("servers".into());
    /// let plan = Plan::new()
    ///     .apply(Apply::new(servers).recreate(Propagation::Orphan), Reason::new("Serves", "larger volumes for new pods"));
    /// ```
    pub fn recreate(mut self, dependents: Propagation) -> Self {
        self.recreate = Some(dependents);
        self
    }
}

impl<K: Object> From<K> for Apply {
    fn from(object: K) -> Self {
        Self::new(object)
    }
}
