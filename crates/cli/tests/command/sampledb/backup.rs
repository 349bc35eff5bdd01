//! Backups of real servers, and databases that are made of them.

use super::place::{Place, archive_process, cannot_run_postgres};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, PostParams};
use nix::sys::signal::{Signal, kill};
use sampledb_operator::api::v1alpha1::{
    BackupPhase, RestorePhase, SampleDBBackup, SampleDBBackupStatus, SampleDBInstance, SampleDBRestore,
};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// A checksum of all rows: whether two databases have the same.
pub(super) const ROWS: &str =
    "SELECT count(*), md5(string_agg(id || ':' || text, ',' ORDER BY id)) FROM rows";

/// How long Leases last here, in seconds: nothing fails over, also on a busy machine.
const CALM: i32 = 60;

impl Place {
    /// A database with an archive, and some rows.
    pub(super) async fn create_archived(&self, name: &str) {
        let backup = json!({"storage": {"size": "1Gi"}});
        self.create(name, json!({"instances": 2, "backup": backup, "leaseDurationSeconds": CALM})).await;
        self.is_ready(name).await;
        let sql = "CREATE TABLE IF NOT EXISTS rows (id int PRIMARY KEY, text text); \
                   INSERT INTO rows SELECT n, md5(n::text) FROM generate_series(1, 20000) n ON CONFLICT DO NOTHING";
        // As a client does, it tries again where a primary on a busy machine was late to renew its Lease.
        self.until(name, "rows are written", || async {
            !self.psql(name, sql).await.contains("error") && self.psql(name, ROWS).await.starts_with("20000|")
        })
        .await;
    }

    async fn begin_backup(&self, name: &str, database: &str) {
        let backup: SampleDBBackup = serde_json::from_value(json!({
            "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDBBackup",
            "metadata": {"name": name}, "spec": {"database": database},
        }))
        .unwrap();
        self.world.api().create(&PostParams::default(), &backup).await.unwrap();
    }

    pub(super) async fn backup_status(&self, name: &str) -> SampleDBBackupStatus {
        let backup = self.world.api::<SampleDBBackup>().get_opt(name).await.unwrap();
        backup.and_then(|backup| backup.status).unwrap_or_default()
    }

    /// Waits until a backup has ended, and how.
    async fn until_backup_is(&self, name: &str, database: &str, phase: BackupPhase) -> SampleDBBackupStatus {
        let is = || async { self.backup_status(name).await.phase == phase };
        self.until(database, &format!("backup {name} is {phase:?}"), is).await;
        self.backup_status(name).await
    }

    async fn create_restored(&self, name: &str, backup: &str) {
        let from = json!({"backup": backup});
        self.create(name, json!({"instances": 2, "restoreFrom": from, "leaseDurationSeconds": CALM})).await;
    }

    /// Waits until an agent says this.
    async fn until_instance_says(&self, name: &str, instance: &str, words: &str) {
        let says = || async {
            let there = self.world.api::<SampleDBInstance>().get_opt(instance).await.unwrap();
            there.and_then(|one| one.status).is_some_and(|status| status.message.contains(words))
        };
        self.until(name, &format!("{instance} says {words}"), says).await;
    }
}

#[tokio::test]
async fn a_backup_is_taken_and_restored_into_a_new_database() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.create_archived("ledger").await;
    let began = place.world.clock.moment();
    place.begin_backup("first", "ledger").await;
    let status = place.until_backup_is("first", "ledger", BackupPhase::Completed).await;
    println!("backup: {:?}: {}", place.world.clock.moment() - began, json!(status));
    assert!(status.size_bytes > Some(1 << 20) && status.begin_lsn < status.end_lsn, "{status:?}");
    assert!(status.version.as_ref().unwrap().starts_with("15") && status.system_identifier.is_some());
    let job = place.world.api::<Job>().get("first-backup").await.unwrap();
    assert_eq!(job.spec.unwrap().template.spec.unwrap().automount_service_account_token, Some(false));
    let rows = place.psql("ledger", ROWS).await;
    assert!(rows.starts_with("20000|"), "{rows}");
    // What comes later is not in it.
    assert_eq!(place.psql("ledger", "DELETE FROM rows WHERE id > 10").await, "");

    let began = place.world.clock.moment();
    place.create_restored("copy", "first").await;
    place.is_ready("copy").await;
    println!("restored: {:?}", place.world.clock.moment() - began);
    // By its own credentials.
    assert_eq!(place.psql("copy", ROWS).await, rows);
    assert!(place.psql("ledger", ROWS).await.starts_with("10|"));
    let timeline = "SELECT timeline_id FROM pg_control_checkpoint()";
    assert_ne!(place.sampledb(&["psql", "copy", "--", "-Atc", timeline]).await, "1\n");
    assert_eq!(place.psql("copy", "INSERT INTO rows VALUES (0, 'new') RETURNING id").await, "0");

    // The same, and how far it is.
    let restores = place.world.api::<SampleDBRestore>();
    let restore = async |name: &str, database: &str| {
        let spec = json!({"backup": "first", "database": database, "instances": 1});
        let restore: SampleDBRestore = serde_json::from_value(json!({
            "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDBRestore", "metadata": {"name": name}, "spec": spec,
        }))
        .unwrap();
        restores.create(&PostParams::default(), &restore).await.unwrap();
    };
    let status = async |name: &str| restores.get(name).await.unwrap().status.unwrap_or_default();
    restore("move", "moved").await;
    restore("over", "ledger").await;
    let is_moved = || async { status("move").await.phase == RestorePhase::Completed };
    place.until("moved", "its restore is completed", is_moved).await;
    assert_eq!(place.psql("moved", ROWS).await, rows);
    let failed = status("over").await;
    assert!(failed.phase == RestorePhase::Failed && failed.message.unwrap().contains("is there already"));
    // The database outlives it.
    restores.delete("move", &DeleteParams::foreground()).await.unwrap();
    let gone = || async { restores.get_opt("move").await.unwrap().is_none() };
    place.until("moved", "its restore is gone", gone).await;
    assert_eq!(place.psql("moved", ROWS).await, rows);

    // The Job's pod is not needed any more, and a backup is taken once.
    place.world.api::<Job>().delete("first-backup", &DeleteParams::background()).await.unwrap();
    place
        .until("ledger", "the Job is gone", || async {
            place.world.api::<Job>().get_opt("first-backup").await.unwrap().is_none()
        })
        .await;
    assert_eq!(place.backup_status("first").await.phase, BackupPhase::Completed);
}

/// Where the files of a backup are on this machine.
fn files_of(status: &SampleDBBackupStatus) -> PathBuf {
    let location = status.location.as_ref().unwrap();
    let archive = archive_process(status.archive.as_ref().unwrap()).unwrap();
    PathBuf::from(format!("/proc/{archive}/root/var/lib/archive/{location}/data"))
}

#[tokio::test]
async fn a_damaged_or_foreign_backup_is_not_restored_and_a_killed_one_is_taken_again() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.create_archived("books").await;
    // Whatever is killed while it is taken, it is whole in the end.
    place.begin_backup("disturbed", "books").await;
    place
        .until("books", "the backup runs", || async {
            place.backup_status("disturbed").await.phase == BackupPhase::Running
        })
        .await;
    let archive = place.backup_status("disturbed").await.archive.unwrap();
    for _ in 0..2 {
        place.world.clock.sleep(Duration::from_millis(700)).await;
        let _ = archive_process(&archive).map(|process| kill(process, Signal::SIGKILL));
    }
    let status = place.until_backup_is("disturbed", "books", BackupPhase::Completed).await;
    let files = files_of(&status);
    assert!(files.join("backup_manifest").is_file());
    let others = fs::read_dir(files.parent().unwrap().parent().unwrap()).unwrap();
    assert_eq!(others.count(), 1, "nothing unfinished is left");

    // One page of it is another.
    let damaged = files.join("global/1262");
    let (content, mut changed) = (fs::read(&damaged).unwrap(), fs::read(&damaged).unwrap());
    changed[100] ^= 1;
    fs::write(&damaged, &changed).unwrap();
    place.create_restored("reader", "disturbed").await;
    place.until_instance_says("reader", "reader-0", "checksum mismatch for file \"global/1262\"").await;
    // Half of it is there.
    fs::remove_file(&damaged).unwrap();
    place
        .until_instance_says(
            "reader",
            "reader-0",
            "\"global/1262\" is present in the manifest but not on disk",
        )
        .await;
    assert!(!place.is_ready_now("reader").await);
    // It is whole again.
    fs::write(&damaged, &content).unwrap();
    place.is_ready("reader").await;
    assert_eq!(place.psql("reader", ROWS).await, place.psql("books", ROWS).await);
}

#[tokio::test]
async fn a_schedule_makes_backups_and_keeps_the_last_ones() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.create_archived("diary").await;
    let backup = json!({"storage": {"size": "1Gi"}, "schedule": "@every 8s", "retention": {"count": 1}});
    place.change("diary", json!({"backup": backup})).await;
    let completed = async || {
        let backups = place.world.api::<SampleDBBackup>().list(&Default::default()).await.unwrap();
        let completed = backups.items.into_iter().filter(|one| one.phase() == BackupPhase::Completed);
        completed.collect::<Vec<_>>()
    };
    place.until("diary", "one is completed", || async { !completed().await.is_empty() }).await;
    let first = completed().await.remove(0);
    let (name, files) = (first.metadata.name.unwrap(), files_of(&first.status.unwrap()));
    assert!(files.is_dir());
    // The next one takes its place, and its files go.
    let gone = || async { place.world.api::<SampleDBBackup>().get_opt(&name).await.unwrap().is_none() };
    place.until("diary", "the first one is not kept", gone).await;
    assert!(!files.exists() && !completed().await.is_empty());
}
