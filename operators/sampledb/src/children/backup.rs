//! The objects by which a backup is taken: how the primary is reached, and the Job that asks the archive.

use super::archive;
use super::{USER, certificate_name, container_security, read, read_write_name, secret_name};
use crate::api::v1alpha1::{SampleDB, SampleDBBackup, SampleDBBackupSpec};
use crate::archive::{ACCESS, Location, variables};
use crate::settings::{PORT, REPLICATION_PASSWORD, REPLICATOR};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass::clock::Timestamp;

/// The label of what belongs to a backup.
const BACKUP_LABEL: &str = "db.windlass.dev/backup";
/// The annotation of a backup that a schedule made: when it was due.
const DUE: &str = "db.windlass.dev/due";
/// How often the Job's pod is tried again.
const RETRIES: i32 = 3;
/// The longest that a Job may take.
const LONGEST_SECONDS: i64 = 48 * 3600;

/// What selects the pods of a backup's Job.
pub(crate) fn selector(backup: &SampleDBBackup) -> [(String, String); 1] {
    [(BACKUP_LABEL.to_owned(), backup.name_any())]
}

/// The name of a backup's Job and of its ConfigMap.
pub(crate) fn name(backup: &SampleDBBackup) -> String {
    format!("{}-backup", backup.name_any())
}

fn metadata(backup: &SampleDBBackup) -> ObjectMeta {
    let labels = Some(BTreeMap::from(selector(backup)));
    ObjectMeta { name: Some(name(backup)), labels, ..Default::default() }
}

/// The backup that is taken when a database is deleted.
pub(crate) fn last(database: &SampleDB) -> SampleDBBackup {
    let spec = SampleDBBackupSpec { database: database.name_any() };
    SampleDBBackup::new(&database.last_backup_name(), spec)
}

/// The backup that is taken before a database is upgraded to another major version.
pub(crate) fn before_upgrade(database: &SampleDB) -> SampleDBBackup {
    let spec = SampleDBBackupSpec { database: database.name_any() };
    SampleDBBackup::new(&database.upgrade_backup_name(), spec)
}

/// The backup that a schedule makes at a time.
pub(crate) fn scheduled(database: &SampleDB, due: Timestamp) -> SampleDBBackup {
    let digits: String = due.to_string().chars().take(19).filter(char::is_ascii_digit).collect();
    let mut backup = last(database);
    backup.metadata.name = Some(format!("{}-{digits}", database.name_any()));
    backup.metadata.labels = Some(BTreeMap::from(super::selector(&database.name_any())));
    backup.metadata.annotations = Some(BTreeMap::from([(DUE.to_owned(), due.to_string())]));
    backup
}

/// When a backup was due that a schedule made.
pub(crate) fn due(backup: &SampleDBBackup) -> Option<Timestamp> {
    backup.annotations().get(DUE)?.parse().ok()
}

/// How the primary and the archive are reached.
pub(crate) fn connection(
    backup: &SampleDBBackup,
    database: &SampleDB,
    at: &Location,
    tls: bool,
) -> ConfigMap {
    let namespace = database.namespace().unwrap_or_default();
    let data = [
        (variables::HOST, format!("{}.{namespace}.svc", read_write_name(database))),
        (variables::PORT, PORT.to_string()),
        (variables::USER, REPLICATOR.to_owned()),
        (variables::SSL_MODE, if tls { "verify-full" } else { "prefer" }.to_owned()),
        (variables::ARCHIVE, archive::host(&database.archive_name(), &namespace)),
        (variables::LOCATION, at.to_string()),
    ];
    let data = data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    ConfigMap { metadata: metadata(backup), data: Some(data), ..Default::default() }
}

/// The name of the Job that deletes a backup's files.
pub(crate) fn forget_name(backup: &SampleDBBackup) -> String {
    format!("{}-forget", backup.name_any())
}

/// Has the archive delete the files of a backup.
pub(crate) fn forget(backup: &SampleDBBackup, archive: &str, location: &str, agent_image: &str) -> Job {
    let namespace = backup.namespace().unwrap_or_default();
    let value = |name: &str, value: String| json!({ "name": name, "value": value });
    let spec = json!({
        "backoffLimit": RETRIES,
        "template": {
            "metadata": { "labels": { "app.kubernetes.io/name": "sampledb-backup" } },
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": false,
                "securityContext": pod_security(),
                "containers": [{
                    "name": "forget",
                    "image": agent_image,
                    "command": ["sampledb-agent", "forget"],
                    "env": [
                        value(variables::ARCHIVE, archive::host(archive, &namespace)),
                        value(variables::LOCATION, location.to_owned()),
                    ],
                    "securityContext": container_security(),
                    "volumeMounts": [{ "name": "archive", "mountPath": ACCESS, "readOnly": true }],
                }],
                "volumes": [archive::access(archive, "archive")],
            },
        },
    });
    let metadata = ObjectMeta { name: Some(forget_name(backup)), ..metadata(backup) };
    Job { metadata, spec: Some(read(spec)), ..Default::default() }
}

fn pod_security() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

/// Has the archive take the backup. Its pod has no access to the API server.
pub(crate) fn job(backup: &SampleDBBackup, database: &SampleDB, agent_image: &str) -> Job {
    let secret = |name: &str, secret: String, key: &str| {
        json!({ "name": name, "secret": {
            "secretName": secret, "defaultMode": 0o440, "items": [{ "key": key, "path": key }],
        } })
    };
    let spec = json!({
        "backoffLimit": RETRIES,
        "activeDeadlineSeconds": LONGEST_SECONDS,
        "template": {
            "metadata": { "labels": {
                "app.kubernetes.io/name": "sampledb-backup", BACKUP_LABEL: backup.name_any(),
            } },
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": false,
                "securityContext": pod_security(),
                "containers": [{
                    "name": "backup",
                    "image": agent_image,
                    "command": ["sampledb-agent", "backup"],
                    "envFrom": [{ "configMapRef": { "name": name(backup) } }],
                    "securityContext": container_security(),
                    "volumeMounts": [
                        { "name": "credentials", "mountPath": variables::CREDENTIALS, "readOnly": true },
                        { "name": "tls", "mountPath": variables::TRUSTED, "readOnly": true },
                        { "name": "archive", "mountPath": ACCESS, "readOnly": true },
                    ],
                }],
                "volumes": [
                    secret("credentials", secret_name(database), REPLICATION_PASSWORD),
                    secret("tls", certificate_name(database), "ca.crt"),
                    archive::access(&database.archive_name(), "archive"),
                ],
            },
        },
    });
    Job { metadata: metadata(backup), spec: Some(read(spec)), ..Default::default() }
}
