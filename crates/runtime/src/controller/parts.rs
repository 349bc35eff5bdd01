//! A controller as it was described, its type forgotten.
//!
//! [`Controller`](super::Controller) is what users write and knows the type of their objects; it wraps what they say into functions
//! of [`AnyObject`]s. Everything below it is compiled once, not once for each kind.

use super::Adoption;
use super::actions::Do;
use super::facts::Poller;
use super::permissions::Verbs;
use super::predicates::Predicate;
use super::reconcile::{Reconcile, Requeue};
use super::reconcile_error::ReconcileError;
use super::report::{HasRoom, has_conditions};
use crate::cache::{AnyObject, AnyStore, Cache, Scope};
use crate::events::Events;
use crate::kind::{Cached, Kind, Object};
use crate::metrics::Counts;
use crate::observed::Observed;
use crate::plan::Plan;
use crate::queue::Backoff;
use crate::reason::Refusal;
use crate::relation::Relation;
use crate::write::Conflicts;
use futures::future::BoxFuture;
use kube::core::DynamicObject;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub(super) type Decide = Arc<dyn Fn(&dyn AnyObject, &Observed) -> Result<Plan, Refusal> + Send + Sync>;
pub(super) type ReconcileFn = Arc<
    dyn Fn(Arc<dyn AnyObject>, Reconcile<()>) -> BoxFuture<'static, Result<Requeue, ReconcileError>>
        + Send
        + Sync,
>;
pub(super) type Relate = Arc<dyn Fn(&dyn AnyObject) -> Relation + Send + Sync>;
pub(super) type Filter = Arc<dyn Fn(&dyn AnyObject) -> bool + Send + Sync>;
/// Reads an object as the type it is of.
pub(super) type Read = fn(Value) -> Result<Arc<dyn AnyObject>, serde_json::Error>;
/// Opens the store of a kind, in a scope.
pub(super) type Open = Arc<dyn Fn(&Cache, Scope) -> Arc<AnyStore> + Send + Sync>;

/// How a controller comes to its writes.
pub(super) enum Mode {
    Deciding(Decide),
    Reconciling(ReconcileFn),
}

/// A kind that the controller watches besides its own, and how to open its store.
#[derive(Clone)]
pub(super) struct Watched {
    pub(super) kind: Kind,
    pub(super) open: Open,
}

impl Watched {
    pub(super) fn new<C: Object>() -> Self {
        let kind = Kind::of::<C>();
        Self { open: opening::<C>(&kind), kind }
    }

    pub(super) fn untyped(kind: Kind) -> Self {
        Self { open: opening::<DynamicObject>(&kind), kind }
    }
}

fn opening<K: Cached>(kind: &Kind) -> Open {
    let kind = kind.clone();
    Arc::new(move |cache, scope| cache.any_store::<K>(kind.clone(), scope))
}

/// All that was declared of a controller.
pub(crate) struct Parts {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) open: Open,
    pub(super) read: Read,
    /// How to find out whether its status has room for conditions; none where the type is one for any kind.
    pub(super) has_room: Option<HasRoom>,
    pub(super) mode: Mode,
    pub(super) filter: Option<Filter>,
    pub(super) cleanup: Option<Decide>,
    pub(super) owns: Vec<Watched>,
    /// And whether objects refer to those that they watch, by name.
    pub(super) watches: Vec<(Watched, Relate, bool)>,
    pub(super) anywhere: BTreeSet<Kind>,
    /// The kinds of children that outlive their parent.
    pub(super) retains: BTreeSet<Kind>,
    /// The kinds of children that the cleanup needs, and that go after it.
    pub(super) collects: BTreeSet<Kind>,
    pub(super) predicates: BTreeMap<Kind, Predicate>,
    /// The kinds whose last changes are tracked.
    pub(super) tracked: BTreeSet<Kind>,
    pub(super) prunes: BTreeSet<Kind>,
    pub(super) prunes_precious: BTreeSet<Kind>,
    pub(super) deletes: BTreeSet<Kind>,
    pub(super) claims: BTreeSet<Kind>,
    /// What is watched, and patched too.
    pub(super) patches: BTreeSet<Kind>,
    /// What the guards of actions look at.
    pub(super) guards: BTreeSet<Kind>,
    /// What is done with a client besides: verbs, by group and resource.
    pub(super) uses: Verbs,
    pub(super) concurrency: usize,
    pub(super) adoption: BTreeMap<Kind, Adoption>,
    pub(super) backoff: Backoff,
    pub(super) reconcile_timeout: Duration,
    pub(super) resync_period: Option<Duration>,
    pub(super) counts: Arc<Counts>,
    pub(super) actions: BTreeMap<String, Do>,
    pub(super) action_concurrency: usize,
    pub(super) conflicts: Conflicts,
    pub(super) pause: String,
    pub(super) concern: Option<String>,
    pub(super) events: Events,
    pub(super) facts: BTreeMap<String, Poller>,
    pub(super) fact_concurrency: usize,
}

/// The annotation that pauses, by default.
const PAUSE: &str = "windlass.dev/paused";

/// How long a reconcile may take by default: longer than any request should.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(300);

impl Parts {
    pub(super) fn new<K: Cached>(kind: Kind, mode: Mode) -> Self {
        Self {
            name: kind.kind.to_lowercase(),
            open: opening::<K>(&kind),
            read: |value| Ok(Arc::new(serde_json::from_value::<K>(value)?)),
            has_room: Kind::known::<K>().map(|_| has_conditions::<K> as HasRoom),
            kind,
            mode,
            filter: None,
            cleanup: None,
            owns: Vec::new(),
            watches: Vec::new(),
            anywhere: BTreeSet::new(),
            retains: BTreeSet::new(),
            collects: BTreeSet::new(),
            predicates: BTreeMap::new(),
            tracked: BTreeSet::new(),
            prunes: BTreeSet::new(),
            prunes_precious: BTreeSet::new(),
            deletes: BTreeSet::new(),
            claims: BTreeSet::new(),
            patches: BTreeSet::new(),
            guards: BTreeSet::new(),
            uses: Verbs::new(),
            concurrency: 1,
            adoption: BTreeMap::new(),
            backoff: Backoff::default(),
            reconcile_timeout: RECONCILE_TIMEOUT,
            resync_period: None,
            counts: Arc::default(),
            actions: BTreeMap::new(),
            action_concurrency: 4,
            conflicts: Conflicts::default(),
            pause: PAUSE.to_owned(),
            concern: None,
            events: Events::default(),
            facts: BTreeMap::new(),
            fact_concurrency: 8,
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The kinds of which it watches every object. Of others that it owns it watches its children alone, which its plans
    /// label; what a reconciler makes by hand need not have the label.
    pub(crate) fn watches_all_of(&self) -> impl Iterator<Item = &Kind> {
        let by_hand = self.owns.iter().filter(|_| matches!(self.mode, Mode::Reconciling(_)));
        let watched = self.watches.iter().map(|(watched, _, _)| watched).chain(by_hand);
        std::iter::once(&self.kind).chain(watched.map(|watched| &watched.kind))
    }

    /// The kinds of children that are deleted with their object, and not by the garbage collector: they may be where no owner
    /// reference is possible, or are needed until the cleanup is done, and do not outlive it.
    pub(super) fn collected(&self) -> BTreeSet<Kind> {
        &(&self.anywhere | &self.collects) - &self.retains
    }

    /// The kinds of children without an owner reference, wherever they are.
    pub(super) fn unreferenced(&self) -> BTreeSet<Kind> {
        &self.retains | &self.collects
    }

    /// The finalizer by which it holds objects.
    pub(super) fn finalizer(&self) -> String {
        format!("windlass.dev/{}", self.name)
    }

    /// Sets the number of concurrent reconciles.
    pub(crate) fn set_concurrency(&mut self, workers: usize) {
        self.concurrency = workers.max(1);
    }
}

/// An object of a controller as the type that its store is of, to look at.
pub(super) fn look<K: Cached>(object: &dyn AnyObject) -> &K {
    object.as_any().downcast_ref().expect("a controller's objects are of its type")
}
