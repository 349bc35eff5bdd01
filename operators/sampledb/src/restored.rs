//! The SampleDB that is made of a backup: as the one that the backup is of, and of the version of the backup.

use crate::api::v1alpha1::{BackupPhase, RestoreFrom, SampleDB, SampleDBBackup, SampleDBSpec, Storage};
use crate::data_version::major;
use kube::ResourceExt;

/// What it has of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    /// How many instances it has.
    pub(crate) instances: Option<i32>,
    /// Its volumes.
    pub(crate) storage: Option<Storage>,
}

/// As that of the database that the backup is of, if that is there, and of the version of the backup.
pub(crate) fn spec(
    backup: &SampleDBBackup,
    original: Option<&SampleDB>,
    changes: &Changes,
) -> Result<SampleDBSpec, String> {
    let (name, of) = (backup.name_any(), &backup.spec.database);
    let status = backup.status.clone().unwrap_or_default();
    match (status.phase, status.message) {
        (BackupPhase::Completed, _) => {}
        (BackupPhase::Failed, why) => {
            return Err(format!("backup {name} failed, so there is none: {}", why.unwrap_or_default()));
        }
        (BackupPhase::Pending | BackupPhase::Running, _) => {
            return Err(format!("backup {name} is not completed yet"));
        }
    }
    let version =
        status.version.ok_or_else(|| format!("backup {name} does not say of which version it is"))?;
    let mut spec = match original {
        Some(original) => original.spec.clone(),
        None if changes.storage.is_none() => {
            return Err(format!(
                "SampleDB {of} is not there, so nothing says how large the volumes are to be: set storage"
            ));
        }
        None => SampleDBSpec { instances: 1, lease_duration_seconds: 10, ..SampleDBSpec::default() },
    };
    if major(&spec.version) != major(&version) {
        // It was upgraded since.
        spec.version = major(&version).to_owned();
        if let Some(image) = spec.image {
            return Err(format!(
                "backup {name} is of PostgreSQL {version}, and SampleDB {of} runs image {image}: create a SampleDB with restoreFrom and an \
                 image of that version"
            ));
        }
    }
    spec.database = status.database.unwrap_or(spec.database);
    spec.owner = status.owner.unwrap_or(spec.owner);
    if let Some(instances) = changes.instances {
        spec.instances = instances;
    }
    if let Some(storage) = &changes.storage {
        spec.storage =
            Storage { class: storage.class.clone().or(spec.storage.class), size: storage.size.clone() };
    }
    spec.restore_from = Some(RestoreFrom { backup: name });
    // The schema is among the data.
    spec.initial_schema = None;
    spec.hibernated = false;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use serde_json::json;

    fn options(size: Option<&str>) -> Changes {
        let storage = size.map(|size| Storage { size: Quantity(size.to_owned()), class: None });
        Changes { instances: None, storage }
    }

    fn backup(phase: &str) -> SampleDBBackup {
        serde_json::from_value(json!({
            "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDBBackup", "metadata": {"name": "nightly"},
            "spec": {"database": "ledger"},
            "status": {"phase": phase, "version": "16.4 (Debian 1)", "database": "books", "owner": "keeper", "message": "no room"},
        }))
        .unwrap()
    }

    fn ledger(spec: serde_json::Value) -> SampleDB {
        serde_json::from_value(json!({
            "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDB", "metadata": {"name": "ledger"}, "spec": spec,
        }))
        .unwrap()
    }

    #[test]
    fn the_new_database_is_as_the_one_that_the_backup_is_of() {
        let original = ledger(json!({
            "version": "16.4", "instances": 3, "storage": {"size": "2Gi", "class": "fast"}, "hibernated": true,
            "initialSchema": {"name": "schema", "key": "sql"}, "database": "books", "owner": "keeper",
        }));
        let made = spec(&backup("Completed"), Some(&original), &options(None)).unwrap();
        assert_eq!((made.instances, made.version.as_str(), made.hibernated), (3, "16.4", false));
        assert_eq!((made.storage, made.initial_schema.is_none()), (original.spec.storage.clone(), true));
        let upgraded = ledger(json!({"version": "18.1", "storage": {"size": "2Gi"}}));
        let made = spec(&backup("Completed"), Some(&upgraded), &options(Some("5Gi"))).unwrap();
        assert_eq!((made.version.as_str(), made.storage.size.0.as_str()), ("16", "5Gi"));
        assert_eq!((made.database.as_str(), made.owner.as_str()), ("books", "keeper"));
    }

    #[test]
    fn what_cannot_be_restored_is_said() {
        let refused = |phase: &str| spec(&backup(phase), None, &options(None)).unwrap_err();
        assert!(refused("Completed").contains("set storage"), "{}", refused("Completed"));
        assert!(refused("Failed").contains("no room") && refused("Running").contains("not completed"));
        let image = ledger(json!({"version": "18", "image": "ours:18", "storage": {"size": "2Gi"}}));
        assert!(spec(&backup("Completed"), Some(&image), &options(None)).unwrap_err().contains("ours:18"));
        assert!(spec(&backup("Completed"), None, &options(Some("1Gi"))).is_ok());
    }
}
