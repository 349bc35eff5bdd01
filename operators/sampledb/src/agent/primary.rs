//! What a primary does all the time: roles and passwords, and who acknowledges its commits.

use super::config;
use super::run::{Agent, Seen, StepError};
use super::sql::{Connected, Sql};
use super::synchronous::{self, Change, Situation};
use crate::leadership::{Leadership, Synchronous};
use crate::lsn::Lsn;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use windlass::clock::Moment;

/// How long a replica that is not connected still counts as one that may be.
const AWAY: Duration = Duration::from_secs(5);

/// What a primary remembers.
#[derive(Debug, Default)]
pub(super) struct Primary {
    /// The passwords that were set last.
    passwords: Option<(String, String)>,
    /// Which set the server may go by.
    effective: Synchronous,
    /// Up to where there was data when it began to go by that set.
    since: Option<Lsn>,
    /// When each copy of the data was last connected.
    connected: BTreeMap<String, Moment>,
    /// Whether it has begun to write its first checkpoint, by which pg_rewind knows its timeline.
    checkpoint: bool,
    /// Whether the server keeps clients out, and whether none was connected at the last look, and at the one before.
    keeps_out: bool,
    quiet: (bool, bool),
}

impl Primary {
    /// Of a server that starts with this set.
    pub(super) fn starting_with(effective: Synchronous) -> Self {
        Self { effective, ..Self::default() }
    }

    /// Whether its roles and its database are there.
    pub(super) fn is_open(&self) -> bool {
        self.passwords.is_some()
    }

    /// Whether clients are kept out, and none is connected.
    pub(super) fn is_closed(&self) -> bool {
        self.keeps_out && self.quiet == (true, true)
    }

    /// The copies that are connected, or were until a moment ago.
    fn present(&mut self, replicas: &[Connected], recorded: &Synchronous, now: Moment) -> BTreeSet<String> {
        for one in replicas.iter().filter(|one| one.streams) {
            self.connected.insert(one.clone.clone(), now);
        }
        for clone in &recorded.clones {
            // One that was recorded by an election has its time to connect.
            self.connected.entry(clone.clone()).or_insert(now);
        }
        self.connected.retain(|clone, at| now.since(*at) < AWAY || recorded.clones.contains(clone));
        let present = self.connected.iter().filter(|(_, at)| now.since(**at) < AWAY);
        present.map(|(clone, _)| clone.clone()).collect()
    }
}

impl Agent {
    /// Sees to roles, configuration and replicas. Answers what is to be told.
    pub(super) async fn keep_up_primary(
        &mut self,
        leadership: &Leadership,
        seen: &Seen,
    ) -> Result<String, StepError> {
        let Some(sql) = self.sql.take() else { return Ok(String::new()) };
        let kept = self.keep_up_with(&sql, leadership, seen).await;
        self.sql = Some(sql);
        kept
    }

    async fn keep_up_with(
        &mut self,
        sql: &Sql,
        leadership: &Leadership,
        seen: &Seen,
    ) -> Result<String, StepError> {
        let passwords = self.passwords()?;
        if self.primary.passwords.as_ref() != Some(&passwords) {
            sql.provision(&self.settings, &passwords.0, &passwords.1).await?;
            self.primary.passwords = Some(passwords);
        }
        if !std::mem::replace(&mut self.primary.checkpoint, true) {
            self.begin_checkpoint();
        }
        let since = match self.primary.since {
            Some(since) => since,
            None => *self.primary.since.insert(sql.state().await?.flushed),
        };
        let effective = self.primary.effective.clone();
        self.configure_primary(seen, &effective)?;
        self.keep_clients_out(sql, seen).await?;
        self.pending_restart = sql.pending_restart().await?;
        let replicas = sql.replicas().await?;
        let now = self.clock.moment();
        let mut present = self.primary.present(&replicas, &leadership.synchronous, now);
        present.retain(|clone| !leadership.leaving.contains(clone));
        let streaming = replicas.iter().filter(|one| one.streams);
        let flushed = streaming.map(|one| (one.clone.clone(), one.flushed)).collect();
        let Some(instance) = &seen.instance else { return Ok(String::new()) };
        let situation = Situation {
            durability: instance.spec.durability,
            instances: instance.spec.instances,
            recorded: &leadership.synchronous,
            effective: &self.primary.effective,
            present: &present,
            leaving: &leadership.leaving,
            flushed: &flushed,
            since,
        };
        match synchronous::decide(&situation) {
            Change::None | Change::CatchUp(_) => {}
            Change::Record(set) => self.record(leadership, set).await?,
            Change::Apply(set) => self.apply(seen, set).await?,
        }
        let streaming = replicas.iter().filter(|one| one.streams && one.counts).count();
        let waits = leadership.synchronous.quorum > streaming;
        Ok(if waits { "commits wait for a replica".to_owned() } else { String::new() })
    }

    /// Ends the connections of clients where they are kept out. One that was being made meanwhile is ended at the next look.
    async fn keep_clients_out(&mut self, sql: &Sql, seen: &Seen) -> Result<(), StepError> {
        if !seen.instance.as_ref().is_some_and(|instance| instance.spec.closed) {
            self.primary.keeps_out = false;
            return Ok(());
        }
        if !self.primary.keeps_out {
            self.primary.quiet = (false, false);
            let new = Sql::connect(&self.clock, &self.settings, "postgres").await?;
            self.primary.keeps_out = new.is_after_closing().await?;
        }
        if self.primary.keeps_out {
            let connected = sql.end_clients().await?;
            self.primary.quiet = (self.primary.quiet.1, connected == 0);
        }
        Ok(())
    }

    /// Has the server write a checkpoint, beside everything else: replicas that are to be rewound wait for it.
    fn begin_checkpoint(&self) {
        let (clock, settings) = (self.clock.clone(), self.settings.clone());
        tokio::spawn(async move {
            let written = async { Sql::connect(&clock, &settings, "postgres").await?.checkpoint().await };
            if let Err(error) = written.await {
                tracing::warn!("the first checkpoint of a primary was not written: {error}");
            }
        });
    }

    /// Writes into the Lease who acknowledges.
    async fn record(&mut self, leadership: &Leadership, set: Synchronous) -> Result<(), StepError> {
        let before = &leadership.synchronous;
        match self.kubernetes.record_synchronous(&self.run, before, &set).await? {
            true => tracing::info!("commits are acknowledged by {} of {:?}", set.quorum, set.clones),
            false => tracing::info!("the Lease changed before who acknowledges was recorded"),
        }
        Ok(())
    }

    /// Configures who acknowledges, and makes sure that the server goes by it.
    async fn apply(&mut self, seen: &Seen, set: Synchronous) -> Result<(), StepError> {
        // Until it is known which, it may go by either.
        self.primary.effective = self.primary.effective.during(&set);
        self.configure_primary(seen, &set)?;
        let names = config::names(&set);
        let confirmed = async {
            loop {
                // A new connection has the configuration that every later one has.
                let sql = Sql::connect(&self.clock, &self.settings, "postgres").await?;
                let setting = sql.setting("synchronous_standby_names").await?;
                let replicas = sql.replicas().await?;
                let counted = replicas.iter().filter(|one| one.counts);
                let others = counted.filter(|one| !set.clones.contains(&one.clone)).count();
                if setting == names && others == 0 {
                    return Ok::<Lsn, StepError>(sql.state().await?.flushed);
                }
                self.clock.sleep(Duration::from_millis(20)).await;
            }
        };
        let Ok(confirmed) = self.clock.timeout(AWAY, confirmed).await else {
            return Err(StepError::Other("the server does not take its configuration over".to_owned()));
        };
        self.primary.since = Some(confirmed?);
        self.primary.effective = set;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass::clock::Clock;

    #[tokio::test]
    async fn a_replica_that_left_is_not_taken_for_present_because_it_is_recorded() {
        let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
        let recorded = Synchronous { quorum: 1, clones: ["a".to_owned(), "b".to_owned()].into() };
        let mut primary = Primary::default();
        let streams = [Connected { clone: "a".to_owned(), streams: true, counts: true, flushed: Lsn(1) }];
        // One that was recorded by an election has its time to connect.
        assert_eq!(primary.present(&streams, &recorded, clock.moment()).len(), 2);
        driver.run_for(AWAY).await;
        for _ in 0..3 {
            let present = primary.present(&streams, &recorded, clock.moment());
            assert_eq!(present, BTreeSet::from(["a".to_owned()]));
        }
    }
}
