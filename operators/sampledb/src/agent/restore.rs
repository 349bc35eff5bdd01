//! A new database's data from a backup: fetched from the archive, verified, and recovered onto a timeline of its own, all beside the
//! place of the data. A backup that is damaged, half there or another's leaves that place empty.

use super::run::{Agent, SHORT, Seen, StepError, text};
use crate::api::v1alpha1::RestoreSource;
use crate::archive::{self, Archive, Location};
use crate::durable_files::write_durably;
use crate::programs::{self, control_field};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long recovery may take.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long until a restore that failed is tried again: each fetches everything.
const AGAIN: Duration = Duration::from_secs(15);
/// The line of a server's lock file that says how it is.
const STATUS_LINE: usize = 7;
/// The end of the server's log that is told when recovery fails.
const TOLD: usize = 800;

impl Agent {
    pub(super) async fn restore(&mut self, seen: &Seen) -> Result<String, StepError> {
        let source = seen.instance.as_ref().and_then(|instance| instance.spec.restore.clone());
        let Some(source) = source else { return Ok("there is nothing to restore".to_owned()) };
        self.report(&format!("it restores {}", source.location)).await?;
        self.health.is_busy();
        let restored = self.restore_from(&source).await;
        if let Err(error) = &restored {
            let message = format!("{} is not restored: {error}", source.location);
            tracing::warn!("{message}");
            self.volume.discard()?;
            self.report(&message).await?;
            self.clock.sleep(AGAIN).await;
        }
        restored?;
        Ok(format!("it has the data of {}", source.location))
    }

    async fn restore_from(&self, source: &RestoreSource) -> Result<(), StepError> {
        let at: Location =
            source.location.parse().map_err(|error| StepError::Other(format!("the backup: {error}")))?;
        let place = self.volume.begin()?;
        Archive::of(&source.host, self.clock.clone()).unpack(&at, &place).await?;
        let identifier = archive::verify(&self.clock, &place).await?;
        if identifier != source.system_identifier {
            let wanted = &source.system_identifier;
            return Err(StepError::Other(format!(
                "the backup is of another database: {identifier} instead of {wanted}"
            )));
        }
        self.recover(&place).await?;
        // What recovery did not write itself.
        programs::run(&self.clock, "initdb", &["--sync-only", "--pgdata", text(&place)?], None, LONGEST)
            .await?;
        Ok(self.volume.finish()?)
    }

    /// Applies the write-ahead log that came with the backup, by a server that nobody can connect to, and ends recovery: on a timeline
    /// that the backup's database does not have.
    async fn recover(&self, place: &Path) -> Result<(), StepError> {
        let log = self.settings.sockets.join("restore.log");
        let sockets = text(&self.settings.sockets)?;
        let configuration = format!(
            "listen_addresses = ''\n\
             unix_socket_directories = '{sockets}'\n\
             hot_standby = off\n\
             wal_level = replica\n\
             wal_log_hints = on\n\
             restore_command = 'false'\n"
        );
        for (name, content) in [
            ("postgresql.conf", configuration.as_str()),
            ("postgresql.auto.conf", ""),
            ("pg_hba.conf", "local all all reject\n"),
            ("pg_ident.conf", ""),
            ("recovery.signal", ""),
        ] {
            write_durably(&place.join(name), content.as_bytes(), 0o600)?;
        }
        let _ = fs::remove_file(&log);
        let (data, log_path) = (text(place)?, text(&log)?);
        let start = ["start", "--pgdata", data, "--wait", "--log", log_path];
        let started = programs::run(&self.clock, "pg_ctl", &start, None, SHORT).await;
        // It says that the server was started, which is not that recovery has ended.
        let recovered = self.clock.timeout(LONGEST, self.until_recovered(place)).await.unwrap_or(false);
        let stop = ["stop", "--pgdata", data, "--wait", "--mode", "fast"];
        let stopped = programs::run(&self.clock, "pg_ctl", &stop, None, SHORT).await;
        if started.is_err() || !recovered {
            let said = fs::read_to_string(&log).unwrap_or_default();
            let from = said.char_indices().rev().nth(TOLD).map_or(0, |(at, _)| at);
            return Err(StepError::Other(format!("recovery failed: {}", said[from..].trim())));
        }
        stopped?;
        let printed = programs::run(&self.clock, "pg_controldata", &["-D", data], None, SHORT).await?.output;
        match control_field(&printed, "Database cluster state") {
            Some("shut down") => Ok(()),
            state => Err(StepError::Other(format!("recovery left the data {}", state.unwrap_or_default()))),
        }
    }

    /// Waits until a server takes connections, which without hot standby is the end of its recovery. Answers whether it does: it may
    /// have ended instead.
    async fn until_recovered(&self, place: &Path) -> bool {
        loop {
            let Ok(lock) = fs::read_to_string(place.join("postmaster.pid")) else { return false };
            if lock.lines().nth(STATUS_LINE).is_some_and(|status| status.trim() == "ready") {
                return true;
            }
            self.clock.sleep(Duration::from_millis(50)).await;
        }
    }
}
