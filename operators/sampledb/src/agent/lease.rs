//! What an agent changes about the Lease: each a compare-and-swap of what it says by then.

use super::kubernetes::{ApiError, Kubernetes};
use crate::leadership::{self, Holder, Leadership, Synchronous};
use k8s_openapi::api::coordination::v1::Lease;

impl Kubernetes {
    /// Takes the Lease, if it was given to this copy of the data. Answers whether it did.
    pub(super) async fn take_lease(&self, taker: &Holder) -> Result<bool, ApiError> {
        let now = leadership::micro_time(self.now());
        self.change_lease(|leadership, lease| {
            let Some(taken) = leadership.taken_by(taker) else { return false };
            *leadership = taken;
            let spec = lease.spec.get_or_insert_default();
            (spec.acquire_time, spec.renew_time) = (Some(now.clone()), Some(now.clone()));
            true
        })
        .await
    }

    /// Renews it, if this run holds it. Answers whether it does.
    pub(super) async fn renew_lease(&self, run: &str) -> Result<bool, ApiError> {
        self.renew_lease_if(|leadership| leadership.is_held_by_run(run)).await
    }

    /// Renews it, if this holds of what it says now.
    pub(super) async fn renew_lease_if(&self, holds: impl Fn(&Leadership) -> bool) -> Result<bool, ApiError> {
        self.change_lease(|leadership, lease| {
            self.renew(leadership, lease);
            holds(leadership)
        })
        .await
    }

    /// Gives it back, if it is this instance's.
    pub(super) async fn release_lease(
        &self,
        instance: &str,
        run: &str,
        has_data: bool,
    ) -> Result<bool, ApiError> {
        self.change_lease(|leadership, _| {
            let released = leadership.released_by(instance, run, has_data);
            released.map(|released| *leadership = released).is_some()
        })
        .await
    }

    /// Asks the primary to count on a copy of the data no more.
    pub(super) async fn leave_lease(&self, clone: &str) -> Result<bool, ApiError> {
        self.change_lease(|leadership, _| {
            let left = leadership.left_by(clone);
            left.map(|left| *leadership = left).is_some()
        })
        .await
    }

    /// Writes the identifier of a new database into it.
    pub(super) async fn record_identifier(&self, run: &str, identifier: &str) -> Result<bool, ApiError> {
        self.change_lease(|leadership, _| {
            let free = leadership.system_identifier.is_none() && leadership.is_held_by_run(run);
            if free {
                leadership.system_identifier = Some(identifier.to_owned());
            }
            free
        })
        .await
    }

    /// Writes into it who acknowledges commits, if it says what it said before.
    pub(super) async fn record_synchronous(
        &self,
        run: &str,
        before: &Synchronous,
        set: &Synchronous,
    ) -> Result<bool, ApiError> {
        self.change_lease(|leadership, lease| {
            let Some(recorded) = leadership.recorded_by(run, before, set) else { return false };
            *leadership = recorded;
            self.renew(leadership, lease);
            true
        })
        .await
    }

    fn renew(&self, leadership: &mut Leadership, lease: &mut Lease) {
        leadership.late = false;
        lease.spec.get_or_insert_default().renew_time = Some(leadership::micro_time(self.now()));
    }
}
