//! Which version of PostgreSQL the data is of, and how an upgrade to another stands: what a database's Lease says of it.
//!
//! It is in the Lease since who may be primary and whose data counts have to change together. It is an annotation of its own: agents
//! of an earlier version, which do not know it, leave it as it is when they renew the Lease.

use k8s_openapi::api::coordination::v1::Lease;
use serde::{Deserialize, Serialize};

/// The annotation of the Lease.
pub const ANNOTATION: &str = "db.windlass.dev/data-version";

/// The annotation of a SampleDB with which it is upgraded to another major version without a backup, if it is `"true"`.
pub const WITHOUT_BACKUP: &str = "db.windlass.dev/upgrade-without-backup";
/// The annotation of a SampleDB with which indexes are built anew where the next version's operating system sorts text otherwise.
pub const ACCEPT_COLLATIONS: &str = "db.windlass.dev/accept-collation-changes";

/// The version of the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataVersion {
    /// The major version.
    pub major: String,
    /// The image whose servers wrote it.
    pub image: String,
    /// The system identifier of the data that this took the place of: whoever still has that copies the new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<String>,
    /// The upgrade that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// The last upgrade, if it failed: it is not tried again before another version is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedUpgrade>,
}

/// An upgrade to another major version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// The major version that the data becomes of.
    pub to: String,
    /// The image of that version.
    pub image: String,
    /// How far it is.
    pub phase: Phase,
    /// The instance whose data is upgraded, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// How far an upgrade is. `attempt` is the epoch of the Lease in which its Job was begun: no other has the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "name")]
pub enum Phase {
    /// The servers stop.
    Stopping,
    /// A Job makes data of the next version beside that of the last.
    Upgrading {
        /// Of which attempt.
        attempt: i32,
    },
    /// The servers of the next version start. Nobody writes yet, and there is a way back.
    Starting {
        /// Of which attempt.
        attempt: i32,
    },
    /// The data of the last version is put back.
    Reverting {
        /// Of which attempt.
        attempt: i32,
        /// The attempt to upgrade that comes to its end first.
        of: i32,
        /// Why, if nobody asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
}

/// An upgrade that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedUpgrade {
    /// To which major version.
    pub to: String,
    /// By which image.
    pub image: String,
    /// Why.
    pub message: String,
}

/// The annotation was changed by somebody else.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the annotation {ANNOTATION} of Lease {lease} cannot be read: {why}")]
pub struct InvalidDataVersion {
    lease: String,
    why: String,
}

impl DataVersion {
    /// What a Lease says of it, which is nothing before the first primary was there.
    ///
    /// # Errors
    /// When its annotation was changed by somebody else.
    pub fn of(lease: &Lease) -> Result<Option<Self>, InvalidDataVersion> {
        let annotation = lease.metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION));
        let Some(text) = annotation else { return Ok(None) };
        serde_json::from_str(text).map(Some).map_err(|error| InvalidDataVersion {
            lease: lease.metadata.name.clone().unwrap_or_default(),
            why: error.to_string(),
        })
    }

    /// Writes it into a Lease.
    pub fn write(&self, lease: &mut Lease) {
        let text = serde_json::to_string(self).expect("strings and numbers are JSON");
        lease.metadata.annotations.get_or_insert_default().insert(ANNOTATION.to_owned(), text);
    }

    /// Whether the servers are stopped for an upgrade.
    pub fn stops_servers(&self) -> bool {
        !matches!(self.phase(), None | Some(Phase::Starting { .. }))
    }

    /// Whether writes have to wait for an upgrade to end.
    pub fn keeps_writes_out(&self) -> bool {
        !matches!(self.phase(), None | Some(Phase::Stopping))
    }

    /// How far the upgrade is that is under way.
    pub fn phase(&self) -> Option<&Phase> {
        self.upgrade.as_ref().map(|upgrade| &upgrade.phase)
    }
}

/// The major version of a version: `16` of `16.4`, and of `16.4 (Debian 16.4-1)`.
pub fn major(version: &str) -> &str {
    let end = version.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(version.len());
    &version[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_says_what_was_written() {
        let mut lease = Lease::default();
        assert!(DataVersion::of(&lease).unwrap().is_none());
        let phase = Phase::Reverting { attempt: 9, of: 8, failed: Some("no room".to_owned()) };
        let upgrade =
            Upgrade { to: "18".into(), image: "postgres:18".into(), phase, instance: Some("db-1".into()) };
        let version = DataVersion {
            major: "16".into(),
            image: "postgres:16".into(),
            upgrade: Some(upgrade),
            ..DataVersion::default()
        };
        version.write(&mut lease);
        assert_eq!(DataVersion::of(&lease).unwrap(), Some(version));
        lease.metadata.annotations.as_mut().unwrap().insert(ANNOTATION.to_owned(), "{".to_owned());
        assert!(DataVersion::of(&lease).is_err());
    }

    #[test]
    fn the_major_version_is_the_first_number() {
        assert_eq!(["16", "16.4", "16.4 (Debian 1)", "18beta1"].map(major), ["16", "16", "16", "18"]);
    }
}
