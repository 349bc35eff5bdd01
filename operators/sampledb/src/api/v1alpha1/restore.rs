//! A restore: a new SampleDB that is made of a backup, and how far it is.

use super::Storage;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes a new SampleDB of a backup, as the one that the backup is of, and tells how far it is. The SampleDB outlives it.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "db.windlass.dev",
    version = "v1alpha1",
    kind = "SampleDBRestore",
    plural = "sampledbrestores",
    namespaced,
    status = "SampleDBRestoreStatus",
    shortname = "sdbr",
    printcolumn = r#"{"name":"Backup","type":"string","jsonPath":".spec.backup"}"#,
    printcolumn = r#"{"name":"Database","type":"string","jsonPath":".spec.database"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self == oldSelf", "message": "a restore is carried out once, and cannot be changed"},
]))]
pub struct SampleDBRestoreSpec {
    /// The SampleDBBackup, of this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub backup: String,
    /// The name of the SampleDB that is made of it.
    #[schemars(length(min = 1, max = 253))]
    pub database: String,
    /// How many instances it has; by default as many as the SampleDB that the backup is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub instances: Option<i32>,
    /// Its volumes; by default as those of the SampleDB that the backup is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
}

/// What became of a restore.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SampleDBRestoreStatus {
    /// How far it is.
    #[serde(default)]
    pub phase: RestorePhase,
    /// When the SampleDB was ready, or it was known that it cannot be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::backup::time")]
    pub completed_at: Option<Time>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// How far a restore is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RestorePhase {
    /// It waits for its backup.
    #[default]
    Pending,
    /// The SampleDB is there, and not ready yet.
    Running,
    /// The SampleDB was ready.
    Completed,
    /// There is nothing to restore, or nowhere.
    Failed,
}
