//! Renews the Lease for as long as this run of the agent holds it, and tells the watchdog for how long the server may run.

use super::kubernetes::Kubernetes;
use super::sql::Sql;
use super::watchdog::Leash;
use crate::api::v1alpha1::{Durability, SampleDBInstance};
use crate::leadership::{self, Leadership, Synchronous};
use crate::settings::{Settings, renewal_period, trusted_for};
use k8s_openapi::api::coordination::v1::Lease;
use std::pin::pin;
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
            let until = trusted.get_or_insert(sent + trusted_for(duration));
            let alone = self.instance.borrow().as_ref().is_some_and(|instance| instance.spec.instances <= 1);
            let renewed = {
                let mut renewing = pin!(self.kubernetes.renew_lease(&self.run));
                loop {
                    tokio::select! {
                        renewed = &mut renewing => break renewed,
                        // It takes its time: until it is known, replicas may answer for the server.
                        () = self.clock.sleep(renewal_period(duration)) => {
                            *until = self.trusted_by_others(&leadership, duration).await.max(*until);
                            self.say(alone, *until);
                        }
                    }
                }
            };
            match renewed {
                Ok(true) => *until = sent + trusted_for(duration),
                // Somebody took it; what is watched will say so.
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!("the Lease could not be renewed: {error}");
                    *until = self.trusted_by_others(&leadership, duration).await.max(*until);
                }
            }
            self.say(alone, *until);
            self.clock.sleep(renewal_period(duration)).await;
        }
    }

    /// Tells the watchdog for how long the server may run.
    fn say(&self, alone: bool, until: Moment) {
        match alone {
            true => self.leash.free(),
            false => self.leash.until(until.since(self.clock.moment())),
        }
    }

    /// Until when the server may run because replicas acknowledge its commits; that is over if they do not. They are asked again after
    /// two periods at the latest: one of waiting, and one of a renewal that hangs.
    async fn trusted_by_others(&self, leadership: &Leadership, duration: Duration) -> Moment {
        let acknowledged = self.is_acknowledged_by_others(leadership).await;
        self.clock.moment() + if acknowledged { renewal_period(duration) * 3 } else { Duration::ZERO }
    }

    fn held(&self, lease: &Lease) -> Option<Leadership> {
        let leadership = Leadership::of(lease).ok()?;
        leadership.is_held_by_run(&self.run).then_some(leadership)
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
