//! The archive of a database: one pod mounts its volume, and takes, verifies and hands out backups there.
//!
//! Mounted by the instances themselves, a volume that one node at a time may mount would pin them all to that node. So they, and the
//! Jobs that ask for backups, reach it over the network: by TLS, with a token that a Secret holds.
//!
//! - `destination`: where backups are kept: a volume; another place would be another implementation of the same small trait
//! - `take`: a base backup of a primary, and its verification
//! - `serve`: answers requests; `ask`: makes them; `tls`: what both know of each other
//! - `tar_stream`: a directory over a connection, and back
//! - `job`: what the pod of a backup's Job does

mod ask;
mod destination;
mod job;
mod serve;
mod take;
mod tar_stream;
mod tls;

pub(crate) use ask::{Archive, AskError};
pub(crate) use job::{backup, forget, variables};
pub(crate) use serve::serve;
pub(crate) use take::{TakeError, verify};

use crate::lsn::Lsn;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where the archive listens.
pub(crate) const PORT: u16 = 8432;
/// Where the archive's volume is mounted in its pod.
pub(crate) const VOLUME: &str = "/var/lib/archive";
/// Where the archive's certificate is mounted in its pod.
pub(crate) const CERTIFICATE: &str = "/etc/archive/tls";
/// Where whoever may ask finds the token and whom to trust.
pub(crate) const ACCESS: &str = "/etc/archive/access";
/// The token, in that directory and in the Secret.
pub(crate) const TOKEN: &str = "token";

/// Where a backup is in an archive: below the UID of its SampleDB, by its own name and UID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    database: String,
    backup: String,
}

/// It is no location of a backup.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no location of a backup")]
pub(crate) struct InvalidLocation(String);

impl Location {
    /// Of a backup of a SampleDB.
    pub(crate) fn of(database_uid: &str, backup: &str, backup_uid: &str) -> Self {
        let uid: String = backup_uid.chars().take(8).collect();
        Self { database: database_uid.to_owned(), backup: format!("{backup}.{uid}") }
    }
}

impl FromStr for Location {
    type Err = InvalidLocation;

    /// Each part is one file name, of what names of objects consist of.
    fn from_str(text: &str) -> Result<Self, InvalidLocation> {
        let is_name = |part: &str| {
            let fits =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
            !part.is_empty() && part.len() <= 255 && !part.starts_with('.') && part.bytes().all(fits)
        };
        match text.split_once('/') {
            Some((database, backup)) if is_name(database) && is_name(backup) => {
                Ok(Self { database: database.to_owned(), backup: backup.to_owned() })
            }
            _ => Err(InvalidLocation(text.to_owned())),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.database, self.backup)
    }
}

/// What is known of a backup that is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Info {
    /// How large its files are.
    pub(crate) size_bytes: i64,
    /// How long it took, with its verification.
    pub(crate) duration_seconds: i64,
    /// The write-ahead log that it needs.
    pub(crate) wal: WalRange,
    /// Of the data.
    pub(crate) system_identifier: String,
    /// The major version of the data; not known of backups of an earlier version of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
}

/// A part of the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WalRange {
    /// Where it begins.
    pub(crate) begin: Lsn,
    /// Where it ends.
    pub(crate) end: Lsn,
    /// The timeline of its end.
    pub(crate) timeline: u32,
}

/// Of which server a backup is taken.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Where it is.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: String,
    /// The role to connect as.
    pub(crate) user: String,
    /// Its password.
    pub(crate) password: String,
    /// Whom to trust, as PEM; without it the connection is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trusted: Option<String>,
}

impl fmt::Debug for Source {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.user, self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_stays_in_the_archive() {
        let location = Location::of("4f1c-uid", "nightly", "0123456789");
        assert_eq!(location.to_string(), "4f1c-uid/nightly.01234567");
        assert_eq!(location.to_string().parse(), Ok(location));
        for wrong in ["", "a", "a/", "/b", "../b", "a/..", "a/b/c", "a/.b", "A/b", "a/b c", "a/b\0"] {
            assert!(wrong.parse::<Location>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_password_is_not_printed() {
        let source = Source {
            host: "db-rw".into(),
            port: "5432".into(),
            user: "replicator".into(),
            password: "hush".into(),
            trusted: None,
        };
        assert_eq!(format!("{source:?}"), "replicator@db-rw:5432");
    }
}
