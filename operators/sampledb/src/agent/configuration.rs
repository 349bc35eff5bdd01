//! Gives the server its configuration and its password file.

use super::config;
use super::run::{Agent, Seen, StepError};
use crate::durable_files::write_durably;
use crate::leadership::Synchronous;
use crate::settings::{OWNER_PASSWORD, REPLICATION_PASSWORD};

/// The share of the volume that the write-ahead log for a slow backup may take: one of so many.
const SLOTS_SHARE: u64 = 4;

/// The files of a server's configuration that change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Files {
    server: String,
    hba: String,
}

impl Agent {
    pub(super) fn credential(&self, key: &str) -> Result<String, StepError> {
        let read = std::fs::read_to_string(self.settings.credentials.join(key));
        read.map_err(|error| StepError::Other(format!("the credentials have no {key}: {error}")))
    }

    /// The passwords of the owner and of the replicas.
    pub(super) fn passwords(&self) -> Result<(String, String), StepError> {
        Ok((self.credential(OWNER_PASSWORD)?, self.credential(REPLICATION_PASSWORD)?))
    }

    pub(super) fn write_passfile(&self) -> Result<(), StepError> {
        let content = config::passfile(&self.credential(REPLICATION_PASSWORD)?);
        let path = self.volume.passfile();
        if std::fs::read_to_string(&path).is_ok_and(|there| there == content) {
            return Ok(());
        }
        Ok(write_durably(&path, content.as_bytes(), 0o600)?)
    }

    pub(super) fn wanted(&self, follow: Option<&str>, seen: &Seen, synchronous: &Synchronous) -> Files {
        let parameters = seen.instance.as_ref().map(|instance| instance.spec.parameters.clone());
        let tls = self.server_tls(seen);
        let closed = seen.instance.as_ref().is_some_and(|instance| instance.spec.closed);
        let wanted = config::Wanted {
            parameters: &parameters.unwrap_or_default(),
            follow: follow.map(|instance| self.conninfo(instance, &self.clone, seen)),
            synchronous,
            tls: tls.as_ref(),
            closed,
            slots_keep: self.volume.capacity().map_or(1024, |bytes| (bytes / SLOTS_SHARE) >> 20),
            floors: seen
                .data
                .as_ref()
                .filter(|data| data.standby)
                .map(|data| data.floors.clone())
                .unwrap_or_default(),
        };
        Files { server: config::server(&self.settings, &wanted), hba: config::hba(tls.as_ref(), closed) }
    }

    /// Has the server go by a configuration, if it does not yet.
    pub(super) fn configure(&mut self, follow: Option<&str>, seen: &Seen) -> Result<(), StepError> {
        let recorded = seen.leadership.as_ref().map(|leadership| leadership.synchronous.clone());
        let files = self.wanted(follow, seen, &recorded.unwrap_or_default());
        self.write_passfile()?;
        self.apply_configuration(files)
    }

    /// As [`Agent::configure`], for a primary whose replicas acknowledge by this set.
    pub(super) fn configure_primary(
        &mut self,
        seen: &Seen,
        synchronous: &Synchronous,
    ) -> Result<(), StepError> {
        let files = self.wanted(None, seen, synchronous);
        self.apply_configuration(files)
    }

    pub(super) fn apply_configuration(&mut self, files: Files) -> Result<(), StepError> {
        let other = self.configured.as_ref() != Some(&files);
        if other {
            self.write_configuration(&files)?;
        }
        if other || self.tls.renewed {
            self.server.reload();
            self.tls.renewed = false;
            self.configured = Some(files);
        }
        Ok(())
    }

    pub(super) fn write_configuration(&self, files: &Files) -> Result<(), StepError> {
        let data = self.volume.data();
        for (name, content) in [
            ("postgresql.conf", files.server.as_str()),
            ("postgresql.auto.conf", ""),
            ("pg_hba.conf", &files.hba),
            ("pg_ident.conf", &config::ident(&config::user())),
        ] {
            write_durably(&data.join(name), content.as_bytes(), 0o600)?;
        }
        Ok(())
    }
}
