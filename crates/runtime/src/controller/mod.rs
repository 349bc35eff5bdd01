//! Controllers: what is watched, how it is decided, and the loop observe -> decide -> write -> report around it.
//!
//! - `parts`: what was declared of a controller, its type forgotten
//! - `owning`: whose child is it (pure); `dependents`: objects of one's children
//! - `triggers`: from a change to the keys it concerns; `predicates`: which changes matter; `last_changes`: for how long there was none
//! - `running`: the workers and their queue
//! - `reconcile`: one reconcile for one object; `prepare`, `carry_out`, `prune` and `report` are its steps
//! - `reconcile_verbs`: what a reconciler writes itself
//! - `actions_and_facts`: how they are declared; `actions`, `action_worker` and `facts` are their work
//! - `declared`: whether a plan keeps to what its controller declared
//! - `permissions`: the RBAC rules that follow from what it declares; `description`: the controller as data
//! - `preview`: what a reconcile would do, and `capture`: what it would observe, for `plan` and `capture`
//! - `retry`: which errors are tried again, and when
//! - `waiting`: which objects wait, and for what; `check`: whether a controller can be run
//!
//! `Controller<K>` is a thin typed surface: `parts` turns what users declare into functions of any object, so that the loop
//! is compiled once and not once per kind.

mod action_worker;
mod actions;
mod actions_and_facts;
mod capture;
mod carry_out;
mod check;
mod confirm;
mod declared;
mod dependents;
mod description;
mod facts;
mod last_changes;
mod owning;
mod parts;
pub(crate) mod permissions;
mod predicates;
mod prepare;
mod preview;
mod prune;
mod reconcile;
mod reconcile_error;
mod reconcile_verbs;
mod renew;
mod report;
mod retry;
mod running;
mod triggers;
mod waiting;

pub use actions_and_facts::{Context, Failure};
pub use check::ConfigError;
pub(crate) use description::Description;
pub use owning::Adoption;
pub(crate) use parts::Parts;
pub(crate) use preview::{FinalizerChange, Planned, Preview, Previewer};
pub use reconcile::{Reconcile, Requeue};
pub use reconcile_error::ReconcileError;
pub(crate) use running::{ControllerContext, Running, panic_text};

use crate::cache::typed;
use crate::events::Events;
use crate::kind::{Cached, Kind, Object};
use crate::metrics::Counts;
use crate::observed::Observed;
use crate::plan::Plan;
use crate::queue::Backoff;
use crate::reason::Refusal;
use crate::relation::Relation;
use crate::write::{Conflicts, WriteError};
use kube::core::DynamicObject;
use parts::{Decide, Mode, ReconcileFn, Relate, Watched, look};
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Keeps the world equal to what objects of one kind declare.
///
/// ```
/// # use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
/// # use windlass::{Controller, Manager, Observed, Plan, Reason, Refusal, clock::Clock};
/// fn decide(namespace: &Namespace, _: &Observed) -> Result<Plan, Refusal> {
///     let mut quota = ResourceQuota::default();
///     quota.metadata.name = Some("default".into());
///     quota.metadata.namespace = namespace.metadata.name.clone();
///     Ok(Plan::new().apply(quota, Reason::new("Bounds", "no namespace is without bounds")))
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
        D: Fn(&K, &Observed) -> Result<Plan, Refusal> + Send + Sync + 'static,
    {
        Self::new(Kind::of::<K>(), Mode::Deciding(deciding(decide)))
    }

    /// A controller with full control: one async function that observes, decides and acts with the parts in its
    /// [`Reconcile`].
    pub fn reconciling<R, F>(reconcile: R) -> Self
    where
        R: Fn(Arc<K>, Reconcile<K>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Requeue, ReconcileError>> + Send + 'static,
    {
        let reconcile: ReconcileFn =
            Arc::new(move |object, ctx| Box::pin(reconcile(typed(object), ctx.of_type())));
        Self::new(Kind::of::<K>(), Mode::Reconciling(reconcile))
    }
}

impl Controller<DynamicObject> {
    /// A controller of a kind that is known only when it runs, for instance from discovery: objects are JSON behind their
    /// metadata. It owns and sees kinds that are types, or by [`Controller::owns_kind`] and [`Controller::watches_kind`] others
    /// that are not. Conditions are kept if the server's schema has room for them.
    ///
    /// ```
    /// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    /// use windlass::{Controller, Kind, Observed, Plan, Reason, Refusal};
    ///
    /// fn decide(widget: &DynamicObject, _observed: &Observed) -> Result<Plan, Refusal> {
    ///     let size = widget.data["spec"]["size"].as_u64().unwrap_or(1);
    ///     Ok(Plan::new().status(serde_json::json!({ "size": size })))
    /// }
    /// let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    /// let controller = Controller::dynamic(Kind::of_resource(&widgets, true), decide);
    /// ```
    pub fn dynamic<D>(kind: Kind, decide: D) -> Self
    where
        D: Fn(&DynamicObject, &Observed) -> Result<Plan, Refusal> + Send + Sync + 'static,
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

    /// Only objects of which this holds have reconciles.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use windlass::{Controller, Plan};
    /// let scheduler = Controller::deciding(|_: &Pod, _| Ok(Plan::new()))
    ///     .filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none()));
    /// ```
    pub fn filter(mut self, holds: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.parts.filter = Some(Arc::new(move |object| holds(look(object))));
        self
    }

    /// Its plans make objects of this kind; they belong to the object that the plan is for, and go with it.
    ///
    /// Only those that plans made are watched and held, by the label `windlass.dev/controller` that they carry, however many
    /// others there are in the cluster; unless some controller of the manager watches the kind for another reason. A name
    /// that is not among them is looked up live before it is created.
    ///
    /// Of `PartialObjectMeta<C>` only the metadata is watched and held, which takes much less memory. For decisions that do
    /// not read what is in their children: whether one is as it should be is then read live, once for each of its versions.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    /// use kube::core::PartialObjectMeta;
    /// use windlass::{Controller, Plan};
    ///
    /// let controller = Controller::deciding(|_: &Namespace, _| Ok(Plan::new()))
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

    /// As [`Controller::watches`], for a kind that is not a type.
    pub fn watches_kind(
        mut self,
        kind: Kind,
        relation: impl Fn(&K) -> Relation + Send + Sync + 'static,
    ) -> Self {
        self.parts.watches.push((Watched::untyped(kind), relating(relation), false));
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

    /// As [`Controller::owns`], for children that outlive their object: volumes, snapshots, a last backup. They carry its UID as
    /// a label and have no owner reference, so that neither the garbage collector nor a foreground deletion of the object
    /// takes them. They are pruned or deleted only by what says so: [`Controller::prunes_precious`], [`Plan::delete`].
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::StatefulSet;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
    /// # use windlass::{Controller, Plan};
    /// let controller = Controller::deciding(|_: &ConfigMap, _| Ok(Plan::new()))
    ///     .owns::<StatefulSet>()
    ///     .retains::<PersistentVolumeClaim>();
    /// ```
    pub fn retains<C: Object>(mut self) -> Self {
        self.parts.retains.insert(Kind::of::<C>());
        self.owns::<C>()
    }

    /// As [`Controller::owns`], for children that the [finalizer](Controller::finalizer)'s cleanup needs. They carry the object's UID
    /// as a label and have no owner reference: a foreground deletion of the object would take them at once, while its finalizer
    /// still holds it. They are deleted when the cleanup is complete.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::StatefulSet;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::{Controller, Plan, Reason};
    /// let controller = Controller::deciding(|_: &ConfigMap, _| Ok(Plan::new()))
    ///     .collects::<StatefulSet>()
    ///     .finalizer(|_, _| Ok(Plan::waiting(Reason::new("BacksUp", "its servers have what is to be backed up"))));
    /// ```
    pub fn collects<C: Object>(mut self) -> Self {
        self.parts.collects.insert(Kind::of::<C>());
        self.owns::<C>()
    }

    /// Its decisions look at objects of this kind, which others own. Watch and index follow from the relation. Of
    /// `PartialObjectMeta<C>`, which decisions then read as such, only the metadata is watched and held.
    pub fn watches<C: Object>(mut self, relation: impl Fn(&K) -> Relation + Send + Sync + 'static) -> Self {
        self.parts.watches.push((Watched::new::<C>(), relating(relation), false));
        self
    }

    /// Its objects refer to objects of this kind by name: Secrets, ConfigMaps, other custom resources. Watch and index follow
    /// from it. While one is missing, the condition [`ReferencesResolved`](crate::conditions::REFERENCES_RESOLVED) says
    /// which, and a decision that reads it by [`Observed::referenced`] is refused until it is there.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{Pod, Secret};
    /// # use windlass::{Controller, Observed, Plan, Refusal, Relation};
    /// fn decide(pod: &Pod, observed: &Observed) -> Result<Plan, Refusal> {
    ///     let _login = observed.referenced::<Secret>("login")?;
    ///     Ok(Plan::new())
    /// }
    /// let controller = Controller::deciding(decide).references::<Secret>(|_| Relation::named("login"));
    /// let refusal = decide(&Pod::default(), &Observed::empty()).unwrap_err();
    /// assert_eq!(refusal.to_string(), "ReferenceMissing: Secret login is not there");
    /// ```
    pub fn references<C: Object>(
        mut self,
        relation: impl Fn(&K) -> Relation + Send + Sync + 'static,
    ) -> Self {
        self.parts.watches.push((Watched::new::<C>(), relating(relation), true));
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
    pub fn finalizer<C>(mut self, cleanup: C) -> Self
    where
        C: Fn(&K, &Observed) -> Result<Plan, Refusal> + Send + Sync + 'static,
    {
        self.parts.cleanup = Some(deciding(cleanup));
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
    /// let backups = Controller::deciding(|_: &Pod, _| Ok(Plan::new())).named("pod-backups").concerned_with("BackedUp");
    /// ```
    pub fn concerned_with(mut self, condition: impl Into<String>) -> Self {
        self.parts.concern = Some(condition.into());
        self
    }

    /// The annotation that pauses an object when it is `"true"`; by default `windlass.dev/paused`.
    ///
    /// For a paused object nothing is written but its `Paused` condition: nothing is applied, pruned or begun, and if it is
    /// being deleted nothing is undone, so that its finalizer holds it until it is no longer paused. Whoever pauses an object
    /// wants its world left alone, most of all when it is about to go. Actions that run go on, and facts that were read are polled.
    pub fn paused_by(mut self, annotation: impl Into<String>) -> Self {
        self.parts.pause = annotation.into();
        self
    }

    /// No annotation pauses it: for a controller whose work may not wait, such as a failover, beside others that are paused.
    pub fn never_paused(self) -> Self {
        // No annotation has an empty name.
        self.paused_by("")
    }

    /// How many objects are worked on at once; never one object twice.
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.parts.concurrency = workers.max(1);
        self
    }

    /// What happens to an object of this kind that is there already, under a name that a plan wants.
    pub fn adopts<C: Object>(mut self, adoption: Adoption) -> Self {
        self.parts.adoption.insert(Kind::of::<C>(), adoption);
        self
    }

    /// What happens when somebody else holds a field of a child that a plan wants otherwise; by default it is taken over.
    pub fn conflicts(mut self, conflicts: Conflicts) -> Self {
        self.parts.conflicts = conflicts;
        self
    }

    /// How long an object whose reconcile failed waits.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.parts.backoff = backoff;
        self
    }

    /// How long one reconcile may take; by default five minutes. One that takes longer is cut off, counted and tried again: what
    /// it may have written is read live first. A decision that never returns cannot be cut off.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.parts.reconcile_timeout = limit;
        self
    }

    /// The longest time between two reconciles for one object, whether something changed or not. By default there is none: what
    /// matters is watched.
    pub fn resync_period(mut self, interval: Duration) -> Self {
        self.parts.resync_period = Some(interval);
        self
    }

    /// Whether a plan keeps to what the controller declared, and can be sent: for a unit test, without a cluster. A plan that
    /// does not is refused when it is to be carried out, before its first step.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use windlass::{Controller, Plan, Reason};
    /// let mut secret = Secret::default();
    /// secret.metadata.name = Some("login".into());
    /// let plan = Plan::new().apply(secret, Reason::new("LogsIn", "a login"));
    /// let controller = Controller::deciding(|_: &ConfigMap, _| Ok(Plan::new()));
    /// assert!(controller.check(&plan).is_err());
    /// assert!(controller.owns::<Secret>().check(&plan).is_ok());
    /// ```
    ///
    /// # Errors
    /// [`WriteError`] names the first step that is not declared, and what to add to the controller.
    pub fn check(&self, plan: &Plan) -> Result<(), WriteError> {
        self.parts.declared().check(plan)
    }

    /// What its reconciles come to, from now on.
    pub fn counts(&self) -> Arc<Counts> {
        self.parts.counts.clone()
    }
}

impl<K> std::fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let owns: Vec<_> = self.parts.owns.iter().map(|watched| &watched.kind.kind).collect();
        let watches: Vec<_> = self.parts.watches.iter().map(|(watched, _, _)| &watched.kind.kind).collect();
        f.debug_struct("Controller")
            .field("name", &self.parts.name)
            .field("owns", &owns)
            .field("watches", &watches)
            .field("prunes", &self.parts.prunes)
            .field("concurrency", &self.parts.concurrency)
            .finish_non_exhaustive()
    }
}

fn deciding<K: Cached>(
    decide: impl Fn(&K, &Observed) -> Result<Plan, Refusal> + Send + Sync + 'static,
) -> Decide {
    Arc::new(move |object, observed| decide(look(object), observed))
}

fn relating<K: Cached>(relation: impl Fn(&K) -> Relation + Send + Sync + 'static) -> Relate {
    Arc::new(move |object| relation(look(object)))
}
