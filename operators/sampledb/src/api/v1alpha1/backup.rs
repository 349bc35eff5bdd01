//! Backups, the archives that keep them, and what a database says of both.

use super::{SampleDB, Storage};
use crate::lsn::Lsn;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::Rule as RootRule;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a database's backups are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupSpec {
    /// The volume of the archive. It belongs to none of the instances, and outlives the database.
    pub storage: Storage,
    /// When backups are taken, as a CronJob has it: `0 3 * * *`, `@daily`, with `CRON_TZ=` before it if need be. Without it they are
    /// taken when somebody creates one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub schedule: Option<String>,
    /// Which of the backups that were taken by schedule are kept; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// Which backups are kept. The last one that was completed always is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// At most this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub count: Option<i32>,
    /// None that is older than this many days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub days: Option<i32>,
}

/// What becomes of the data when the database is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// A last backup is taken from the primary and verified; only then the volumes are deleted.
    Snapshot,
    /// The volumes are kept.
    Retain,
    /// The volumes are deleted.
    Delete,
}

/// Where the data of a new database comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreFrom {
    /// The SampleDBBackup, of this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub backup: String,
}

/// How long the name of a backup may be: that of its Job is longer, and a label.
const LONGEST_NAME: usize = 52;

/// The archive of one database: a volume, and the pod that mounts it and receives backups.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "db.windlass.dev",
    version = "v1alpha1",
    kind = "SampleDBArchive",
    plural = "sampledbarchives",
    namespaced,
    status = "SampleDBArchiveStatus",
    shortname = "sdba",
    printcolumn = r#"{"name":"Database","type":"string","jsonPath":".spec.database"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SampleDBArchiveSpec {
    /// The SampleDB whose backups it keeps, which may be gone.
    pub database: String,
    /// The UID of that SampleDB: another of the same name has another archive.
    pub database_uid: String,
    /// The image of that SampleDB's instances, whose programs verify backups.
    pub image: String,
    /// Its volume.
    pub storage: Storage,
}

/// How an archive is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SampleDBArchiveStatus {
    /// Whether its pod takes requests.
    #[serde(default)]
    pub ready: bool,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A backup of a SampleDB. It is taken once.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "db.windlass.dev",
    version = "v1alpha1",
    kind = "SampleDBBackup",
    plural = "sampledbbackups",
    namespaced,
    status = "SampleDBBackupStatus",
    shortname = "sdbb",
    validation = RootRule::new("self.metadata.name.size() <= 52").message("the name is longer than 52 characters, which its Job's cannot be"),
    printcolumn = r#"{"name":"Database","type":"string","jsonPath":".spec.database"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Size","type":"integer","jsonPath":".status.sizeBytes"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self == oldSelf", "message": "a backup is taken once, and cannot be changed"},
]))]
pub struct SampleDBBackupSpec {
    /// The SampleDB, of this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub database: String,
}

/// What became of a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SampleDBBackupStatus {
    /// How far it is.
    #[serde(default)]
    pub phase: BackupPhase,
    /// The SampleDBArchive that keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// Where it is in the archive: the UID of the SampleDB, and the backup's own name and UID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// When its Job was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub started_at: Option<Time>,
    /// When it was verified, or had failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub completed_at: Option<Time>,
    /// How long the base backup and its verification took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<i64>,
    /// How large it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// Where the write-ahead log that it needs begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "beginLSN")]
    pub begin_lsn: Option<Lsn>,
    /// Where that ends, and the data is consistent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "endLSN")]
    pub end_lsn: Option<Lsn>,
    /// The timeline of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<u32>,
    /// Of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_identifier: Option<String>,
    /// The version of the server that it was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The database in it, and its owner: a SampleDB that is restored from it has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The role that owns the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// How far a backup is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BackupPhase {
    /// It waits for a primary, or for the archive.
    #[default]
    Pending,
    /// It is being taken.
    Running,
    /// It is in the archive, and verified.
    Completed,
    /// It could not be taken.
    Failed,
}

pub(super) fn time(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "format": "date-time", "nullable": true })
}

impl SampleDB {
    /// What becomes of its data. By default nothing is deleted that exists only once.
    pub fn deletion_policy(&self) -> DeletionPolicy {
        let default = match self.spec.backup {
            Some(_) => DeletionPolicy::Snapshot,
            None => DeletionPolicy::Retain,
        };
        self.spec.deletion_policy.unwrap_or(default)
    }

    /// The name of its archive, which no other SampleDB of its name has.
    pub fn archive_name(&self) -> String {
        format!("{}-{}", self.name_any(), self.short_uid())
    }

    /// The name of the backup that is taken when it is deleted.
    pub fn last_backup_name(&self) -> String {
        self.backup_name("last")
    }

    /// The name of the backup that is taken before it is upgraded. An upgrade that is asked for again has another.
    pub fn upgrade_backup_name(&self) -> String {
        let generation = self.metadata.generation.unwrap_or_default();
        self.backup_name(&format!("upgrade-{generation}"))
    }

    /// A name that a backup may have, also if that of the database is long.
    fn backup_name(&self, what: &str) -> String {
        let end = format!("-{}-{what}", self.short_uid());
        let name: String = self.name_any().chars().take(LONGEST_NAME.saturating_sub(end.len())).collect();
        format!("{}{end}", name.trim_end_matches(['-', '.']))
    }

    fn short_uid(&self) -> String {
        self.uid().unwrap_or_default().chars().take(8).collect()
    }
}

impl SampleDBBackup {
    /// How far it is.
    pub fn phase(&self) -> BackupPhase {
        self.status.as_ref().map_or(BackupPhase::Pending, |status| status.phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_own_backups_have_names_that_are_short_enough() {
        let mut database = SampleDB::new("ledger", Default::default());
        database.metadata.uid = Some("01234567-89ab".to_owned());
        for (name, last) in [
            ("ledger".to_owned(), "ledger-01234567-last".to_owned()),
            (format!("{}-{}", "a".repeat(37), "b".repeat(20)), format!("{}-01234567-last", "a".repeat(37))),
        ] {
            database.metadata.name = Some(name);
            assert_eq!(database.last_backup_name(), last);
            database.metadata.generation = Some(i64::MAX);
            assert!(database.upgrade_backup_name().len() <= LONGEST_NAME);
        }
    }
}
