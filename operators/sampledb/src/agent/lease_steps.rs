//! Steps that change the Lease: taking it, giving it back, and becoming a primary by it.

use super::config;
use super::primary::Primary;
use super::run::{Agent, Seen, StepError};
use super::sql::Sql;
use crate::leadership::{Holder, Leadership};
use std::sync::atomic::Ordering;

impl Agent {
    pub(super) async fn take(&mut self) -> Result<(), StepError> {
        let taker = Holder {
            instance: self.settings.instance.clone(),
            clone: Some(self.clone.clone()),
            pod_uid: Some(self.settings.pod_uid.clone()),
            run: Some(self.run.clone()),
        };
        match self.kubernetes.take_lease(&taker).await? {
            true => Ok(()),
            false => Err(StepError::Other("the Lease was given to somebody else".to_owned())),
        }
    }

    /// Gives the Lease back, if it is this agent's. Its server does not run.
    pub(super) async fn release(&mut self) -> Result<(), StepError> {
        let has_data = self.volume.has_data();
        self.kubernetes.release_lease(&self.settings.instance, &self.run, has_data).await?;
        Ok(())
    }

    /// Asks the primary to count on this copy of the data no more.
    pub(super) async fn leave(&mut self) -> Result<(), StepError> {
        self.kubernetes.leave_lease(&self.clone).await?;
        Ok(())
    }

    pub(super) async fn record_identifier(&mut self, seen: &Seen) -> Result<(), StepError> {
        let Some(data) = &seen.data else { return Ok(()) };
        self.kubernetes.record_identifier(&self.run, &data.system_identifier).await?;
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
        let as_expected = |leadership: &Leadership| {
            leadership.is_held_by_run(&self.run) && leadership.synchronous == synchronous
        };
        if !self.kubernetes.renew_lease_if(as_expected).await? {
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
