//! Steps that change the Lease: taking it, giving it back, and becoming a primary by it.

use super::config;
use super::kubernetes::Changed;
use super::primary::Primary;
use super::run::{Agent, Seen, StepError};
use super::sql::Sql;
use crate::leadership::{self, Holder};
use std::sync::atomic::Ordering;

impl Agent {
    pub(super) async fn take(&mut self) -> Result<(), StepError> {
        let now = leadership::micro_time(self.clock.now());
        let taker = Holder {
            instance: self.settings.instance.clone(),
            clone: Some(self.clone.clone()),
            pod_uid: Some(self.settings.pod_uid.clone()),
            run: Some(self.run.clone()),
        };
        let changed = self
            .kubernetes
            .change_lease(|leadership, lease| {
                let Some(taken) = leadership.taken_by(&taker) else { return false };
                *leadership = taken;
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

    /// Gives the Lease back, if it is this agent's. Its server does not run.
    pub(super) async fn release(&mut self) -> Result<(), StepError> {
        let (instance, run, has_data) = (&self.settings.instance, &self.run, self.volume.has_data());
        self.kubernetes
            .change_lease(|leadership, _| {
                let released = leadership.released_by(instance, run, has_data);
                released.map(|released| *leadership = released).is_some()
            })
            .await?;
        Ok(())
    }

    /// Asks the primary to count on this copy of the data no more.
    pub(super) async fn leave(&mut self) -> Result<(), StepError> {
        let clone = &self.clone;
        self.kubernetes
            .change_lease(|leadership, _| {
                let left = leadership.left_by(clone);
                left.map(|left| *leadership = left).is_some()
            })
            .await?;
        Ok(())
    }

    pub(super) async fn record_identifier(&mut self, seen: &Seen) -> Result<(), StepError> {
        let Some(data) = &seen.data else { return Ok(()) };
        let run = &self.run;
        self.kubernetes
            .change_lease(|leadership, _| {
                let free = leadership.system_identifier.is_none() && leadership.is_held_by_run(run);
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
                lease.spec.get_or_insert_default().renew_time =
                    Some(leadership::micro_time(self.clock.now()));
                leadership.is_held_by_run(&run) && leadership.synchronous == synchronous
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
