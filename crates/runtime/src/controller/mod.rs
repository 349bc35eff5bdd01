//! Controllers: what is watched, how it is decided, and the loop observe -> decide -> act -> report around it.
//!
//! - `parts`: what was said of a controller, its type forgotten
//! - `owning`: whose child is it (pure)
//! - `triggers`: from a change to the keys it concerns
//! - `running`: the workers and their queue
//! - `turn`: one turn for one object; `prepare`, `carry_out`, `prune` and `report` are its steps
//! - `by_hand`: what a reconciler writes itself
//! - `outside`: actions and facts, as they are declared; `actions`, `acting` and `facts` are their work
//! - `verbs`: what it says that its plans do to its children besides applying them
//! - `counts`: what turns come to; `check`: whether a controller can be run

mod acting;
mod actions;
mod asked;
mod by_hand;
mod carry_out;
mod check;
mod counts;
mod facts;
mod outside;
mod owning;
mod parts;
mod prepare;
mod prune;
mod report;
mod running;
mod triggers;
mod turn;
mod turn_error;
mod verbs;

pub(crate) use asked::Decider;
pub use check::ConfigError;
pub use counts::{BOUNDS, Counts, Ended, Times};
pub use outside::{Context, Failure};
pub use owning::Adoption;
pub(crate) use owning::{CONTROLLER_LABEL, OWNER_UID_LABEL};
pub(crate) use parts::Parts;
pub(crate) use running::{Ground, Running, panic_text};
pub use turn::{Next, Turn};
pub use turn_error::TurnError;

use crate::act::Conflicts;
use crate::cache::typed;
use crate::events::Events;
use crate::kind::{Cached, Kind, Object};
use crate::plan::Plan;
use crate::queue::Backoff;
use crate::reason::Refusal;
use crate::relation::Relation;
use crate::seen::Seen;
use kube::core::DynamicObject;
use parts::{Decide, Mode, Reconcile, Relate, Watched, look};
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Keeps the world equal to what objects of one kind declare.
///
/// ```
/// # use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
/// # use windlass::{Controller, Manager, Plan, Reason, Refusal, Seen, clock::Clock};
/// fn decide(namespace: &Namespace, _: &Seen) -> Result<Plan, Refusal> {
///     let mut quota = ResourceQuota::default();
///     quota.metadata.name = Some("default".into());
///     quota.metadata.namespace = namespace.metadata.name.clone();
///     Ok(Plan::complete().apply(quota, Reason::new("Bounds", "no namespace is without bounds")))
/// }
/// # async fn run(client: kube::Client) -> windlass::Result<()> {
/// let controller = Controller::deciding(decide).owns::<ResourceQuota>().concurrency(4);
/// Manager::new(client, Clock::real()).controller(controller).run().await
/// # }
/// ```
#[must_use = "a controller does nothing until a manager runs it"]
pub struct Controller<K> {
    pub(crate) parts: Parts,
    of: PhantomData<fn(K)>,
}

impl<K: Object> Controller<K> {
    /// A controller that decides purely: given an object and what was seen for it, what is to be done.
    pub fn deciding<D>(decide: D) -> Self
    where
        D: Fn(&K, &Seen) -> Result<Plan, Refusal> + Send + Sync + 'static,
    {
        Self::new(Kind::of::<K>(), Mode::Deciding(deciding(decide)))
    }

    /// A controller with full control: one async function that observes, decides and acts with the parts in its
    /// [`Turn`].
    pub fn reconciling<R, F>(reconcile: R) -> Self
    where
        R: Fn(Arc<K>, Turn<K>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Next, TurnError>> + Send + 'static,
    {
        let reconcile: Reconcile =
            Arc::new(move |object, turn| Box::pin(reconcile(typed(object), turn.of_type())));
        Self::new(Kind::of::<K>(), Mode::Reconciling(reconcile))
    }
}

impl Controller<DynamicObject> {
    /// A controller of a kind that is known only when it runs, for instance from discovery: objects are JSON behind their
    /// metadata. It owns and sees kinds that are types, or by [`Controller::owns_kind`] and [`Controller::sees_kind`] others
    /// that are not. Conditions are kept if the server's schema has room for them.
    ///
    /// ```
    /// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    /// use windlass::{Controller, Kind, Plan, Reason, Refusal, Seen};
    ///
    /// fn decide(widget: &DynamicObject, _seen: &Seen) -> Result<Plan, Refusal> {
    ///     let size = widget.data["spec"]["size"].as_u64().unwrap_or(1);
    ///     Ok(Plan::complete().status(serde_json::json!({ "size": size })))
    /// }
    /// let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    /// let controller = Controller::dynamic(Kind::of_resource(&widgets, true), decide);
    /// ```
    pub fn dynamic<D>(kind: Kind, decide: D) -> Self
    where
        D: Fn(&DynamicObject, &Seen) -> Result<Plan, Refusal> + Send + Sync + 'static,
    {
        Self::new(kind, Mode::Deciding(deciding(decide)))
    }
}

impl<K: Cached> Controller<K> {
    fn new(kind: Kind, mode: Mode) -> Self {
        Self { parts: Parts::new::<K>(kind, mode), of: PhantomData }
    }

    /// Its name, which is also its field manager, its finalizer and its mark on children: changing it later orphans
    /// them. By default the kind in lower case.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.parts.name = name.into();
        self
    }

    /// Only objects of which this holds have turns.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use windlass::{Controller, Plan};
    /// let scheduler = Controller::deciding(|_: &Pod, _| Ok(Plan::complete()))
    ///     .only(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none()));
    /// ```
    pub fn only(mut self, holds: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.parts.only = Some(Arc::new(move |object| holds(look(object))));
        self
    }

    /// Its plans make objects of this kind; they belong to the object that the plan is for, and go with it.
    ///
    /// Of `PartialObjectMeta<C>` only the metadata is watched and held, which takes much less memory. For decisions that do
    /// not read what is in their children: whether one is as it should be is then read live, once for each of its versions.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    /// use kube::core::PartialObjectMeta;
    /// use windlass::{Controller, Plan};
    ///
    /// let controller = Controller::deciding(|_: &Namespace, _| Ok(Plan::complete()))
    ///     .owns::<PartialObjectMeta<ConfigMap>>();
    /// ```
    pub fn owns<C: Object>(mut self) -> Self {
        self.parts.owns.push(Watched::new::<C>());
        self
    }

    /// As [`Controller::owns`], for a kind that is not a type.
    pub fn owns_kind(mut self, kind: Kind) -> Self {
        self.parts.owns.push(Watched::untyped(kind));
        self
    }

    /// As [`Controller::sees`], for a kind that is not a type.
    pub fn sees_kind(
        mut self,
        kind: Kind,
        relation: impl Fn(&K) -> Relation + Send + Sync + 'static,
    ) -> Self {
        self.parts.sees.push((Watched::untyped(kind), relating(relation), false));
        self
    }

    /// As [`Controller::owns`], for children that may be in other namespaces than their object, or outside of namespaces,
    /// where owners cannot be named. They carry its UID as a label instead, and since the API server does not collect them,
    /// a finalizer holds the object until they are deleted. A child's namespace is the one in its metadata.
    ///
    /// An object outside of namespaces needs this for no child: everybody can name it as owner.
    pub fn owns_anywhere<C: Object>(mut self) -> Self {
        self.parts.anywhere.insert(Kind::of::<C>());
        self.owns::<C>()
    }

    /// Its decisions look at objects of this kind, which others own. Watch and index follow from the relation. Of
    /// `PartialObjectMeta<C>`, which decisions then read as such, only the metadata is watched and held.
    pub fn sees<C: Object>(mut self, relation: impl Fn(&K) -> Relation + Send + Sync + 'static) -> Self {
        self.parts.sees.push((Watched::new::<C>(), relating(relation), false));
        self
    }

    /// Its objects refer to objects of this kind by name: Secrets, ConfigMaps, other custom resources. Watch and index follow
    /// from it. While one is missing, the condition [`ReferencesResolved`](crate::conditions::REFERENCES_RESOLVED) says
    /// which, and a decision that reads it by [`Seen::referred`] is refused until it is there.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{Pod, Secret};
    /// # use windlass::{Controller, Plan, Refusal, Relation, Seen};
    /// fn decide(pod: &Pod, seen: &Seen) -> Result<Plan, Refusal> {
    ///     let _login = seen.referred::<Secret>("login")?;
    ///     Ok(Plan::complete())
    /// }
    /// let controller = Controller::deciding(decide).refers::<Secret>(|_| Relation::named("login"));
    /// let refusal = decide(&Pod::default(), &Seen::nothing()).unwrap_err();
    /// assert_eq!(refusal.to_string(), "ReferenceMissing: Secret login is not there");
    /// ```
    pub fn refers<C: Object>(mut self, relation: impl Fn(&K) -> Relation + Send + Sync + 'static) -> Self {
        self.parts.sees.push((Watched::new::<C>(), relating(relation), true));
        self
    }

    /// Children of this kind that a complete plan no longer mentions are deleted.
    pub fn prunes<C: Object>(mut self) -> Self {
        self.parts.prunes.insert(Kind::of::<C>());
        self
    }

    /// As [`Controller::prunes`], for kinds that hold data: Secrets and PersistentVolumeClaims.
    pub fn prunes_precious<C: Object>(mut self) -> Self {
        self.parts.prunes.insert(Kind::of::<C>());
        self.parts.prunes_precious.insert(Kind::of::<C>());
        self
    }

    /// How to undo what deleting the children does not: the object stays, by a finalizer, until a plan of this is
    /// complete and carried out.
    pub fn deleting<U>(mut self, undo: U) -> Self
    where
        U: Fn(&K, &Seen) -> Result<Plan, Refusal> + Send + Sync + 'static,
    {
        self.parts.undo = Some(deciding(undo));
        self
    }

    /// Which events it records about its objects; by default all. The log has them in any case.
    pub fn events(mut self, events: Events) -> Self {
        self.parts.events = events;
        self
    }

    /// Tells how its objects stand by this one condition, and leaves `Ready`, `Progressing` and `Degraded` to another: for
    /// the second controller of a kind, which would contradict the first. Name it too: its fields are its own.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use windlass::{Controller, Plan};
    /// let backups = Controller::deciding(|_: &Pod, _| Ok(Plan::complete())).named("pod-backups").concerned_with("BackedUp");
    /// ```
    pub fn concerned_with(mut self, condition: impl Into<String>) -> Self {
        self.parts.concern = Some(condition.into());
        self
    }

    /// The annotation that pauses an object when it is `"true"`; by default `windlass.dev/paused`.
    ///
    /// For a paused object nothing is written but its `Paused` condition: nothing is applied, pruned or begun, and if it is
    /// being deleted nothing is undone, so that its finalizer holds it until it is no longer paused. Whoever pauses an object
    /// wants its world left alone, most of all when it is about to go. Actions that run go on, and facts are polled.
    pub fn paused_by(mut self, annotation: impl Into<String>) -> Self {
        self.parts.pause = annotation.into();
        self
    }

    /// How many objects are worked on at once; never one object twice.
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.parts.concurrency = workers.max(1);
        self
    }

    /// What happens to objects that are there already under a name that a plan wants.
    pub fn adopts(mut self, adoption: Adoption) -> Self {
        self.parts.adoption = adoption;
        self
    }

    /// What happens when somebody else holds a field of a child that a plan wants otherwise; by default it is taken over.
    pub fn conflicts(mut self, conflicts: Conflicts) -> Self {
        self.parts.conflicts = conflicts;
        self
    }

    /// How long an object whose turn failed waits.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.parts.backoff = backoff;
        self
    }

    /// How long one turn may take; by default five minutes. One that takes longer is cut off, counted and tried again: what
    /// it may have written is read live first. A decision that never returns cannot be cut off.
    pub fn turn_within(mut self, limit: Duration) -> Self {
        self.parts.turn_within = limit;
        self
    }

    /// The longest time between two turns for one object, whether something changed or not. By default there is none: what
    /// matters is watched.
    pub fn at_least_every(mut self, interval: Duration) -> Self {
        self.parts.at_least_every = Some(interval);
        self
    }

    /// What its turns come to, from now on.
    pub fn counts(&self) -> Arc<Counts> {
        self.parts.counts.clone()
    }
}

impl<K> std::fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let owns: Vec<_> = self.parts.owns.iter().map(|watched| &watched.kind.kind).collect();
        let sees: Vec<_> = self.parts.sees.iter().map(|(watched, _, _)| &watched.kind.kind).collect();
        f.debug_struct("Controller")
            .field("name", &self.parts.name)
            .field("owns", &owns)
            .field("sees", &sees)
            .field("prunes", &self.parts.prunes)
            .field("concurrency", &self.parts.concurrency)
            .finish_non_exhaustive()
    }
}

fn deciding<K: Cached>(
    decide: impl Fn(&K, &Seen) -> Result<Plan, Refusal> + Send + Sync + 'static,
) -> Decide {
    Arc::new(move |object, seen| decide(look(object), seen))
}

fn relating<K: Cached>(relation: impl Fn(&K) -> Relation + Send + Sync + 'static) -> Relate {
    Arc::new(move |object| relation(look(object)))
}
