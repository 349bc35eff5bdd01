//! `db.windlass.dev/v1alpha1`.

mod backup;
mod restore;

pub use backup::{
    BackupPhase, BackupSpec, DeletionPolicy, RestoreFrom, Retention, SampleDBArchive, SampleDBArchiveSpec,
    SampleDBArchiveStatus, SampleDBBackup, SampleDBBackupSpec, SampleDBBackupStatus,
};

pub use restore::{RestorePhase, SampleDBRestore, SampleDBRestoreSpec, SampleDBRestoreStatus};

use crate::lsn::Lsn;
use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use kube::core::Rule as RootRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A PostgreSQL database with its replicas.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "db.windlass.dev",
    version = "v1alpha1",
    kind = "SampleDB",
    plural = "sampledbs",
    namespaced,
    status = "SampleDBStatus",
    shortname = "sdb",
    category = "all",
    validation = RootRule::new(SIZE_RULE).message("storage cannot be decreased").field_path(".spec.storage.size"),
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.ready"}"#,
    printcolumn = r#"{"name":"Primary","type":"string","jsonPath":".status.primary"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self.database == oldSelf.database", "message": "database cannot be changed", "fieldPath": ".database"},
    {"rule": "self.owner == oldSelf.owner", "message": "owner cannot be changed", "fieldPath": ".owner"},
    {"rule": "has(self.restoreFrom) == has(oldSelf.restoreFrom) && (!has(self.restoreFrom) || self.restoreFrom == oldSelf.restoreFrom)",
     "message": "restoreFrom cannot be changed: a restore makes a new database", "fieldPath": ".restoreFrom"},
    {"rule": "!has(self.deletionPolicy) || self.deletionPolicy != 'Snapshot' || has(self.backup)",
     "message": "a snapshot needs an archive: set backup", "fieldPath": ".deletionPolicy"},
]))]
pub struct SampleDBSpec {
    /// The version of PostgreSQL, such as `16` or `16.4`, which is also the tag of the image unless `image` names another. A higher
    /// major version upgrades the database; a lower one is refused.
    #[schemars(regex(pattern = r"^[1-9][0-9]{1,2}(\.[0-9]{1,3})?$"))]
    pub version: String,
    /// The image that the instances run; by default `postgres` with the version as its tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// How many instances there are: one primary, and replicas that follow it.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 9))]
    pub instances: i32,
    /// Where each instance keeps its data.
    pub storage: Storage,
    /// Parameters of the server, as in `postgresql.conf`. Those that the operator sets itself are rejected.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "parameters")]
    pub parameters: BTreeMap<String, String>,
    /// Requests and limits of each instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "windlass::schema::resources")]
    pub resources: Option<ResourceRequirements>,
    /// The database that is created.
    #[serde(default = "app")]
    #[schemars(regex(pattern = r"^[a-z_][a-z0-9_]{0,62}$"))]
    #[schemars(extend("x-kubernetes-validations" = [RESERVED_NAME]))]
    pub database: String,
    /// The role that owns it.
    #[serde(default = "app")]
    #[schemars(regex(pattern = r"^[a-z_][a-z0-9_]{0,62}$"))]
    #[schemars(extend("x-kubernetes-validations" = [RESERVED_NAME]))]
    pub owner: String,
    /// SQL that is run once, as the owner, in one transaction, when the database is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_schema: Option<ConfigMapKey>,
    /// What an acknowledged commit means.
    #[serde(default)]
    pub durability: Durability,
    /// Whether clients have to use TLS. Replicas do, in any case, if the image's PostgreSQL has TLS.
    #[serde(default)]
    #[serde(rename = "requireTLS")]
    pub require_tls: bool,
    /// Where instances may run; by default each on a node of its own if there are enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "windlass::schema::any_object")]
    pub affinity: Option<Affinity>,
    /// How long a primary that cannot renew its Lease is trusted, in seconds. A shorter time means a faster failover, and that
    /// shorter outages of the API server matter.
    #[serde(default = "ten")]
    #[schemars(range(min = 5, max = 120))]
    pub lease_duration_seconds: i32,
    /// Where its backups are kept; without it there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupSpec>,
    /// Where the data of a new database comes from; without it, it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_from: Option<RestoreFrom>,
    /// What becomes of the data when the database is deleted: by default `Snapshot` if it has an archive, and `Retain` if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Whether its servers are stopped, with their volumes kept.
    #[serde(default)]
    pub hibernated: bool,
}

/// A volume per instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Its size. It can be increased if the StorageClass allows it, and set back as long as no volume was grown.
    #[schemars(schema_with = "windlass::schema::quantity")]
    pub size: Quantity,
    /// Its StorageClass; by default the cluster's default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub class: Option<String>,
}

/// A key of a ConfigMap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapKey {
    /// The name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in it.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// What an acknowledged commit means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// It is on a replica too, always: without one, commits wait.
    #[default]
    Required,
    /// It is on a replica too as long as one is connected.
    Preferred,
}

/// How a database is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SampleDBStatus {
    /// Instances that are ready, of those that there should be: `3/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// The instance that takes writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// The version that the primary runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The Secret with the owner's credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Whether the initial schema is there.
    #[serde(default)]
    pub set_up: bool,
    /// How large its volumes are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageStatus>,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// How large the volumes of a database are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageStatus {
    /// The most that a PersistentVolumeClaim of it requests: `spec.storage.size` cannot be less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "windlass::schema::quantity")]
    pub requested: Option<Quantity>,
    /// The capacity of the smallest volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "windlass::schema::quantity")]
    pub capacity: Option<Quantity>,
}

/// One instance of a SampleDB: what the operator wants of its agent, and what the agent reports.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "db.windlass.dev",
    version = "v1alpha1",
    kind = "SampleDBInstance",
    plural = "sampledbinstances",
    namespaced,
    status = "SampleDBInstanceStatus",
    shortname = "sdbi",
    printcolumn = r#"{"name":"Database","type":"string","jsonPath":".spec.database"}"#,
    printcolumn = r#"{"name":"Role","type":"string","jsonPath":".status.role"}"#,
    printcolumn = r#"{"name":"Timeline","type":"integer","jsonPath":".status.timeline"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SampleDBInstanceSpec {
    /// The SampleDB that it belongs to.
    pub database: String,
    /// How many instances there are.
    pub instances: i32,
    /// What an acknowledged commit means.
    #[serde(default)]
    pub durability: Durability,
    /// Parameters of the server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Whether its server is kept stopped.
    #[serde(default)]
    pub fenced: bool,
    /// The server is restarted when this changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
    /// Whether replicas connect by TLS alone, and verify whom they connect to: every instance has TLS.
    #[serde(default)]
    pub tls: bool,
    /// Whether clients have to use TLS.
    #[serde(default)]
    pub require_tls: bool,
    /// Where a new database's data comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreSource>,
    /// Whether clients are kept out: the database is being deleted, and its last backup is to have all that they wrote.
    #[serde(default)]
    pub closed: bool,
}

/// A backup in an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreSource {
    /// Where the archive is reached.
    pub host: String,
    /// Where the backup is in it.
    pub location: String,
    /// Of its data: anything else is not the backup.
    pub system_identifier: String,
}

/// What an agent reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SampleDBInstanceStatus {
    /// What the server is.
    #[serde(default)]
    pub role: Role,
    /// Whether it takes connections.
    #[serde(default)]
    pub ready: bool,
    /// The pod that the agent runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// Identifies the copy of the data: another one after the volume was lost or cloned again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone: Option<String>,
    /// Of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_identifier: Option<String>,
    /// The highest epoch of the Lease that the agent recorded: it takes no data from primaries of an earlier one.
    #[serde(default)]
    pub epoch: i32,
    /// The timeline of the data.
    #[serde(default)]
    pub timeline: u32,
    /// Where its data ends, which is reported while no instance holds the Lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushed: Option<Lsn>,
    /// The version of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The generation of the instance that the server's configuration follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Parameters that a restart changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending_restart: Vec<String>,
    /// The last restart that was asked for and done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted: Option<String>,
    /// Whether its server has TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<bool>,
    /// Whether its server is a primary that keeps clients out, and none is connected. Agents of an earlier version do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<bool>,
    /// Whether its volume has next to no room left.
    #[serde(default)]
    pub volume_full: bool,
    /// What the agent does or waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What the last Job of an upgrade reported of its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<UpgradeReport>,
}

/// What a Job of an upgrade, or of the way back, reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeReport {
    /// Which attempt it is.
    pub attempt: i32,
    /// The major version of the data that is in its place now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Of that data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_identifier: Option<String>,
    /// Identifies that copy of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone: Option<String>,
    /// Why it failed, or what it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What a server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It takes writes.
    Primary,
    /// It follows a primary, or waits for one.
    Replica,
    /// There is none.
    #[default]
    Stopped,
}

/// A volume cannot shrink. A size that no claim has taken over, since the StorageClass allows no expansion, can be taken back.
const SIZE_RULE: &str = "quantity(string(self.spec.storage.size)).compareTo(quantity(string(oldSelf.spec.storage.size))) >= 0 \
     || (has(oldSelf.status) && has(oldSelf.status.storage) && has(oldSelf.status.storage.requested) \
     && quantity(string(self.spec.storage.size)).compareTo(quantity(string(oldSelf.status.storage.requested))) >= 0)";

const RESERVED_NAME: Rule = Rule {
    rule: "!self.startsWith('pg_') && !(self in ['postgres', 'replicator', 'template0', 'template1', 'public'])",
    message: "the name is reserved",
};

/// A validation rule, as CRDs have it.
#[derive(Serialize)]
struct Rule {
    rule: &'static str,
    message: &'static str,
}

/// Parameters that follow from how the operator runs a server, or that take its guarantees away.
const RESERVED_PARAMETERS: &str = "!self.exists(name, name in ['fsync', 'full_page_writes', 'wal_level', 'wal_log_hints', \
     'hot_standby', 'listen_addresses', 'port', 'data_directory', 'hba_file', 'ident_file', 'config_file', \
     'external_pid_file', 'primary_conninfo', 'primary_slot_name', 'restore_command', 'cluster_name', \
     'logging_collector', 'log_destination', 'password_encryption'] \
     || name.startsWith('synchronous_') || name.startsWith('archive_') || name.startsWith('recovery_') \
     || name.startsWith('unix_socket_') || name.startsWith('ssl') || name.startsWith('include'))";

fn parameters(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 200,
        "additionalProperties": {"type": "string", "maxLength": 2048, "pattern": r"^[^\n\r\x00]*$"},
        "x-kubernetes-validations": [
            {"rule": RESERVED_PARAMETERS, "message": "the operator sets this parameter itself"},
            {"rule": "self.all(name, name.matches('^[a-z_][a-z0-9_]*([.][a-z_][a-z0-9_]*)?$'))",
             "message": "not the name of a parameter"},
        ],
    })
}

fn one() -> i32 {
    1
}

fn ten() -> i32 {
    10
}

fn app() -> String {
    "app".to_owned()
}
