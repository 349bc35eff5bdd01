//! Steps that change the Lease: taking it, giving it back, and becoming a primary by it.

use super::agent::{Agent, Seen, StepError};
use super::config;
use super::kubernetes::Changed;
use super::primary::Primary;
use super::sql::Sql;
use crate::leadership;
use std::sync::atomic::Ordering;

impl Agent {
    pub(super) async fn take(&mut self) -> Result<(), StepError> {
        let now = leadership::micro_time(self.clock.now());
        let (settings, clone, run) = (&self.settings, &self.clone, &self.run);
        let changed = self
            .kubernetes
            .change_lease(|leadership, lease| {
                let first = leadership.system_identifier.is_none();
                let Some(holder) = &mut leadership.holder else { return false };
                let mine =
                    holder.instance == settings.instance && (first || holder.clone.as_ref() == Some(clone));
                if !mine {
                    return false;
                }
                holder.clone = Some(clone.clone());
                holder.pod_uid = Some(settings.pod_uid.clone());
                holder.run = Some(run.clone());
                let spec = lease.spec.get_or_insert_default();
                (spec.acquire_time, spec.renew_time) = (Some(now.clone()), Some(now.clone()));
                true
            })
            .await?;
        match changed {
            Changed::Yes(_) => Ok(()),
            Changed::No(_) => Err(StepError::Other("the Lease was given to somebody else".to_owned())),
        }
    }

    /// Gives the Lease back, if this run of the agent holds it, or its own lost data does. Its server does not run.
    pub(super) async fn release(&mut self) -> Result<(), StepError> {
        let (instance, run) = (&self.settings.instance, &self.run);
        let data = self.volume.has_data();
        self.kubernetes
            .change_lease(|leadership, _| {
                let Some(holder) = &leadership.holder else { return false };
                let mine = holder.instance == *instance && (holder.run.as_ref() == Some(run) || !data);
                // The database is not made yet: nobody else can take over.
                if !mine || leadership.system_identifier.is_none() {
                    return false;
                }
                // Without data this is another pod than the one that took it: that one may still run elsewhere.
                *leadership = leadership.vacated(data);
                true
            })
            .await?;
        Ok(())
    }

    pub(super) async fn record_identifier(&mut self, seen: &Seen) -> Result<(), StepError> {
        let Some(data) = &seen.data else { return Ok(()) };
        let run = &self.run;
        self.kubernetes
            .change_lease(|leadership, _| {
                let holder = leadership.holder.as_ref().and_then(|holder| holder.run.as_ref());
                let free = leadership.system_identifier.is_none() && holder == Some(run);
                if free {
                    leadership.system_identifier = Some(data.system_identifier.clone());
                }
                free
            })
            .await?;
        Ok(())
    }

    pub(super) async fn promote(&mut self, seen: &Seen) -> Result<(), StepError> {
        let Some(leadership) = &seen.leadership else { return Ok(()) };
        // From its first moment as a primary it acknowledges by the set that was recorded.
        let synchronous = leadership.synchronous.clone();
        let names = self.wanted(None, seen, &synchronous);
        if self.configured.as_ref() != Some(&names) {
            return self.apply_configuration(names);
        }
        // A new connection has the configuration that every later one has.
        let sql = Sql::connect(&self.clock, &self.settings, "postgres").await?;
        if sql.setting("synchronous_standby_names").await? != config::names(&synchronous) {
            return Err(StepError::Other("the server has not taken its configuration over yet".to_owned()));
        }
        // Read live: what was watched may be old.
        let run = self.run.clone();
        let held = self
            .kubernetes
            .change_lease(|leadership, lease| {
                let holder = leadership.holder.as_ref().and_then(|holder| holder.run.as_ref());
                lease.spec.get_or_insert_default().renew_time =
                    Some(leadership::micro_time(self.clock.now()));
                holder == Some(&run) && leadership.synchronous == synchronous
            })
            .await?;
        if let Changed::No(_) = held {
            return Err(StepError::Other("the Lease changed before the promotion".to_owned()));
        }
        self.primary = Primary::starting_with(synchronous);
        self.writes.store(true, Ordering::Relaxed);
        sql.promote().await?;
        Ok(())
    }

    /// Gives the Lease to another, which has everything.
    pub(super) async fn hand_over(&mut self, target: &str) -> Result<String, StepError> {
        tracing::info!("the primary stops, for {target} to take over");
        self.stop().await;
        self.release().await?;
        Ok("it handed over".to_owned())
    }
}
