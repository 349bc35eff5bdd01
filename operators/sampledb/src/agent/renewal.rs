//! Renews the Lease for as long as this run of the agent holds it, and tells the watchdog for how long the server may run.

use super::kubernetes::{Changed, Kubernetes};
use super::settings::{Settings, renewal_period, trusted_for};
use super::sql::Sql;
use super::watchdog::Leash;
use crate::api::v1alpha1::{Durability, SampleDBInstance};
use crate::leadership::{self, Leadership, Synchronous};
use k8s_openapi::api::coordination::v1::Lease;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use windlass::clock::{Clock, Moment};

/// How long a server that may not write any more has to stop.
const GIVE_UP: Duration = Duration::from_secs(3);
/// How often it is looked at whether it did.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What the renewal needs to know.
#[derive(Debug)]
pub(super) struct Renewal {
    pub(super) kubernetes: Kubernetes,
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) run: String,
    pub(super) leash: Arc<Leash>,
    pub(super) lease: watch::Receiver<Option<Arc<Lease>>>,
    pub(super) instance: watch::Receiver<Option<Arc<SampleDBInstance>>>,
    /// Whether the server takes writes, or may soon.
    pub(super) writes: Arc<AtomicBool>,
}

impl Renewal {
    /// Renews for ever.
    pub(super) async fn keep(mut self) {
        let mut trusted: Option<Moment> = None;
        let mut doomed: Option<Moment> = None;
        loop {
            let lease = self.lease.borrow_and_update().clone();
            let held = lease.as_ref().and_then(|lease| self.held(lease));
            let (Some(lease), Some(leadership)) = (lease, held) else {
                trusted = None;
                if self.writes.load(Ordering::Relaxed) {
                    // The agent stops it; if it cannot, everything is killed.
                    let end = *doomed.get_or_insert(self.clock.moment() + GIVE_UP);
                    self.leash.until(end.since(self.clock.moment()));
                } else {
                    doomed = None;
                    self.leash.free();
                }
                // Whatever comes first: that the Lease changes, or that the server may have stopped.
                let _ = self.clock.timeout(LOOK_AGAIN, self.lease.changed()).await;
                continue;
            };
            doomed = None;
            let duration = leadership::duration(&lease);
            // Counted from before the request: the API server may have it long before the answer is here.
            let sent = self.clock.moment();
            let alone = self.instance.borrow().as_ref().is_some_and(|instance| instance.spec.instances <= 1);
            match self.renew().await {
                Ok(true) => trusted = Some(sent + trusted_for(duration)),
                // Somebody took it; what is watched will say so.
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!("the Lease could not be renewed: {error}");
                    if self.is_acknowledged_by_others(&leadership).await {
                        trusted = Some(self.clock.moment() + renewal_period(duration) * 2);
                    }
                }
            }
            match trusted {
                _ if alone => self.leash.free(),
                Some(until) => self.leash.until(until.since(self.clock.moment())),
                None => self.leash.until(trusted_for(duration)),
            }
            self.clock.sleep(renewal_period(duration)).await;
        }
    }

    fn held(&self, lease: &Lease) -> Option<Leadership> {
        let leadership = Leadership::of(lease).ok()?;
        leadership.is_held_by_run(&self.run).then_some(leadership)
    }

    async fn renew(&self) -> Result<bool, super::kubernetes::ApiError> {
        let now = leadership::micro_time(self.clock.now());
        let changed = self
            .kubernetes
            .change_lease(|leadership, lease| {
                if !leadership.is_held_by_run(&self.run) {
                    return false;
                }
                lease.spec.get_or_insert_default().renew_time = Some(now.clone());
                true
            })
            .await?;
        Ok(matches!(changed, Changed::Yes(_)))
    }

    /// While enough replicas acknowledge commits, no other can have been promoted: that takes answers of those that have
    /// stopped to receive. An API server that cannot be reached then stops no database.
    async fn is_acknowledged_by_others(&self, leadership: &Leadership) -> bool {
        let required = self
            .instance
            .borrow()
            .as_ref()
            .is_some_and(|instance| instance.spec.durability == Durability::Required);
        let Synchronous { quorum, clones } = &leadership.synchronous;
        if !required || *quorum == 0 {
            return false;
        }
        let asked = async {
            let sql = Sql::connect(&self.clock, &self.settings, "postgres").await?;
            sql.replicas().await
        };
        let Ok(replicas) = asked.await else { return false };
        let acknowledging =
            replicas.iter().filter(|one| one.streams && one.counts && clones.contains(&one.clone)).count();
        acknowledging >= *quorum
    }
}
