//! For how long objects have not changed, by a clock of this process that counts the time that the machine is suspended.
//!
//! The times that an object says itself are those of other machines, whose clocks may be wrong or jump. That a lease was not
//! renewed for its whole duration can only be said by whoever watched it for that long.

use super::Controller;
use crate::cache::{AnyObject, AnyStore};
use crate::key::Key;
use crate::kind::{Cached, Kind, Object};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::{Clock, Moment};

impl<K: Cached> Controller<K> {
    /// Decisions see for how long objects of this kind, which the controller owns or watches, have not changed:
    /// [`Observed::unchanged_for`](crate::Observed::unchanged_for).
    ///
    /// ```
    /// # use k8s_openapi::api::coordination::v1::Lease;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use std::time::Duration;
    /// # use windlass::{Controller, Observed, Plan, Reason, Refusal, Relation};
    /// const LEASE: Duration = Duration::from_secs(15);
    ///
    /// fn decide(_: &Pod, observed: &Observed) -> Result<Plan, Refusal> {
    ///     match observed.unchanged_for::<Lease>("primary")? {
    ///         Some(since) if since < LEASE => {
    ///             Ok(Plan::new().wait(Reason::new("LeaseHeld", "its holder may be alive"), LEASE - since))
    ///         }
    ///         _ => Ok(Plan::new()), // Nobody holds it any more.
    ///     }
    /// }
    /// let controller = Controller::deciding(decide)
    ///     .watches::<Lease>(|_| Relation::named("primary"))
    ///     .tracks_last_change::<Lease>();
    /// let mut lease = Lease::default();
    /// lease.metadata.name = Some("primary".into());
    /// let observed = Observed::empty().with(lease).with_unchanged_for::<Lease>("primary", Duration::from_secs(5));
    /// assert!(!decide(&Pod::default(), &observed).unwrap().is_complete());
    /// ```
    pub fn tracks_last_change<C: Object>(mut self) -> Self {
        self.parts.tracked.insert(Kind::of::<C>());
        self
    }
}

/// When the objects of some kinds last changed, as this process saw it.
pub(super) struct LastChanges {
    clock: Clock,
    of: BTreeMap<Kind, Arc<Mutex<HashMap<Key, Moment>>>>,
}

impl LastChanges {
    pub(super) fn new(kinds: &BTreeSet<Kind>, clock: Clock) -> Self {
        Self { of: kinds.iter().map(|kind| (kind.clone(), Arc::default())).collect(), clock }
    }

    /// Listens to a store, if changes of its kind are tracked.
    pub(super) fn listen(&self, store: &Arc<AnyStore>) {
        let Some(seen) = self.of.get(store.kind()) else { return };
        let (seen, clock) = (seen.clone(), self.clock.clone());
        store.listen(Arc::new(move |changed| {
            let mut seen = seen.lock();
            match &changed.new {
                Some(_) => _ = seen.insert(changed.key.clone(), clock.moment()),
                None => _ = seen.remove(&changed.key),
            }
        }));
    }

    /// For how long each of these has not changed; none if the kind is not tracked.
    pub(super) fn ages(
        &self,
        kind: &Kind,
        objects: &[Arc<dyn AnyObject>],
        cluster: &Arc<str>,
    ) -> Option<Vec<Duration>> {
        let seen = self.of.get(kind)?.lock();
        let now = self.clock.moment();
        let age = |object: &Arc<dyn AnyObject>| {
            // What was not seen to change was seen now for the first time.
            seen.get(&Key::of(cluster.clone(), object.meta())).map_or(Duration::ZERO, |last| now.since(*last))
        };
        Some(objects.iter().map(age).collect())
    }
}
