//! What the operator tells Prometheus of its databases, beside what the library tells of its controllers. Each agent tells of its server.

use crate::api::v1alpha1::{
    BackupPhase, Role, SampleDB, SampleDBBackup, SampleDBBackupStatus, SampleDBInstance,
};
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::clock::Timestamp;
use windlass::metrics::{Page, Type};

/// Of every database.
pub(crate) fn databases(databases: &[Arc<SampleDB>], page: &mut Page) {
    type Value = fn(&SampleDB) -> f64;
    let families: [(&str, &str, Value); 4] = [
        ("sampledb_spec_hibernated", "Whether the servers of a database are to be stopped.", |one| {
            f64::from(u8::from(one.spec.hibernated))
        }),
        ("sampledb_spec_instances", "Instances that a database should have.", |one| {
            one.spec.instances.into()
        }),
        ("sampledb_status_ready", "Whether a database is as it should be.", |one| {
            let conditions = one.status.iter().flat_map(|status| &status.conditions);
            let ready = conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True");
            f64::from(u8::from(ready))
        }),
        ("sampledb_status_has_primary", "Whether a database takes writes.", |one| {
            let primary = one.status.as_ref().and_then(|status| status.primary.as_ref());
            f64::from(u8::from(primary.is_some()))
        }),
    ];
    for (name, help, value) in families {
        let mut family = page.family(name, Type::Gauge, help);
        for database in databases {
            let (namespace, name) = (database.namespace().unwrap_or_default(), database.name_any());
            family.sample(&[("namespace", &namespace), ("database", &name)], value(database));
        }
    }
}

/// Of every instance.
pub(crate) fn instances(instances: &[Arc<SampleDBInstance>], page: &mut Page) {
    let mut ready = page.family(
        "sampledb_instance_ready",
        Type::Gauge,
        "Whether an instance takes connections, and what it is.",
    );
    for instance in instances {
        let (namespace, name) = (instance.namespace().unwrap_or_default(), instance.name_any());
        let status = instance.status.clone().unwrap_or_default();
        let role = match status.role {
            Role::Primary => "primary",
            Role::Replica => "replica",
            Role::Stopped => "stopped",
        };
        let labels = [
            ("namespace", namespace.as_str()),
            ("database", instance.spec.database.as_str()),
            ("instance", name.as_str()),
            ("role", role),
        ];
        ready.sample(&labels, f64::from(u8::from(status.ready)));
    }
    let mut epochs: BTreeMap<Database, i32> = BTreeMap::new();
    for instance in instances {
        let epoch = instance.status.as_ref().map_or(0, |status| status.epoch);
        let latest = epochs
            .entry((instance.namespace().unwrap_or_default(), instance.spec.database.clone()))
            .or_default();
        *latest = epoch.max(*latest);
    }
    let help =
        "The epoch of a database's Lease, which is another for each primary, as its instances know it.";
    let mut family = page.family("sampledb_lease_epoch", Type::Gauge, help);
    for ((namespace, database), epoch) in &epochs {
        family.sample(&[("namespace", namespace), ("database", database)], (*epoch).into());
    }
}

/// A namespace, and the name of a database in it.
type Database = (String, String);

/// Of the last backup of every database that has some.
pub(crate) fn backups(backups: &[Arc<SampleDBBackup>], page: &mut Page) {
    // What has ended, by when it has.
    let mut ended: BTreeMap<Database, Vec<(Timestamp, &SampleDBBackupStatus)>> = BTreeMap::new();
    for backup in backups {
        let Some(status) = &backup.status else { continue };
        let Some(at) = &status.completed_at else { continue };
        let database = (backup.namespace().unwrap_or_default(), backup.spec.database.clone());
        ended.entry(database).or_default().push((at.0, status));
    }
    for of_one in ended.values_mut() {
        of_one.sort_by_key(|(at, _)| *at);
    }
    type Value = fn(&[(Timestamp, &SampleDBBackupStatus)]) -> Option<f64>;
    let families: [(&str, &str, Value); 3] = [
        (
            "sampledb_backup_last_completion_timestamp_seconds",
            "When the last backup was completed, as seconds since 1970.",
            |ended| last_completed(ended).map(|(at, _)| at.as_millisecond() as f64 / 1000.0),
        ),
        ("sampledb_backup_last_size_bytes", "How large the last backup is that was completed.", |ended| {
            last_completed(ended).map(|(_, status)| status.size_bytes.unwrap_or_default() as f64)
        }),
        ("sampledb_backup_last_failed", "Whether the last backup failed.", |ended| {
            ended.last().map(|(_, status)| f64::from(u8::from(status.phase == BackupPhase::Failed)))
        }),
    ];
    for (name, help, value) in families {
        let mut family = page.family(name, Type::Gauge, help);
        for ((namespace, database), ended) in &ended {
            if let Some(value) = value(ended) {
                family.sample(&[("namespace", namespace), ("database", database)], value);
            }
        }
    }
}

fn last_completed<'a>(
    ended: &[(Timestamp, &'a SampleDBBackupStatus)],
) -> Option<(Timestamp, &'a SampleDBBackupStatus)> {
    ended.iter().rev().find(|(_, status)| status.phase == BackupPhase::Completed).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1alpha1::{SampleDBInstanceSpec, SampleDBSpec};

    #[test]
    fn a_database_without_a_primary_is_told() {
        let mut database = SampleDB::new("db", SampleDBSpec { instances: 3, ..Default::default() });
        database.metadata.namespace = Some("shop".to_owned());
        let mut page = Page::default();
        databases(&[Arc::new(database)], &mut page);
        let labels = r#"{namespace="shop",database="db"}"#;
        for line in [
            format!("sampledb_spec_instances{labels} 3\n"),
            format!("sampledb_status_ready{labels} 0\n"),
            format!("sampledb_status_has_primary{labels} 0\n"),
        ] {
            assert!(page.as_str().contains(&line), "{}", page.as_str());
        }
        let spec = SampleDBInstanceSpec { database: "db".to_owned(), ..Default::default() };
        let mut page = Page::default();
        instances(&[Arc::new(SampleDBInstance::new("db-0", spec))], &mut page);
        let line = r#"sampledb_instance_ready{namespace="",database="db",instance="db-0",role="stopped"} 0"#;
        assert!(page.as_str().contains(line), "{}", page.as_str());
    }

    #[test]
    fn the_last_backup_of_each_database_is_told() {
        let backup = |database: &str, at: &str, phase: &str, size: i64| -> Arc<SampleDBBackup> {
            Arc::new(
                serde_json::from_value(serde_json::json!({
                    "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDBBackup",
                    "metadata": {"name": "one", "namespace": "shop"}, "spec": {"database": database},
                    "status": {"phase": phase, "completedAt": at, "sizeBytes": size},
                }))
                .unwrap(),
            )
        };
        let mut page = Page::default();
        let all = [
            backup("db", "1970-01-01T00:00:30Z", "Failed", 0),
            backup("db", "1970-01-01T00:00:20Z", "Completed", 7),
            backup("db", "1970-01-01T00:00:10Z", "Completed", 5),
            backup("other", "1970-01-01T00:00:10Z", "Failed", 0),
        ];
        backups(&all, &mut page);
        let of = |name: &str, database: &str| format!("{name}{{namespace=\"shop\",database=\"{database}\"}}");
        for line in [
            of("sampledb_backup_last_completion_timestamp_seconds", "db") + " 20\n",
            of("sampledb_backup_last_size_bytes", "db") + " 7\n",
            of("sampledb_backup_last_failed", "db") + " 1\n",
            of("sampledb_backup_last_failed", "other") + " 1\n",
        ] {
            assert!(page.as_str().contains(&line), "{line}{}", page.as_str());
        }
        assert!(!page.as_str().contains(&of("sampledb_backup_last_size_bytes", "other")));
    }
}
