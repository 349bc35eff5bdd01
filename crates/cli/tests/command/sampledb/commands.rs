//! Backups, restores, hibernation and reports by command.

use super::backup::ROWS;
use super::place::{Place, cannot_run_postgres};
use kube::api::DeleteParams;
use sampledb_operator::api::v1alpha1::{BackupPhase, SampleDB};
use serde_json::json;

impl Place {
    /// What `windlass sampledb` says when it fails.
    async fn sampledb_error(&self, arguments: &[&str]) -> String {
        let output = self.sampledb_output(arguments).await;
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }
}

#[tokio::test]
async fn a_database_is_backed_up_restored_hibernated_and_reported_by_command() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.create_archived("shop").await;
    let rows = place.psql("shop", ROWS).await;
    let said = place.sampledb(&["backup", "shop", "--as", "by-hand"]).await;
    assert!(said.contains("by-hand: completed and verified"), "{said}");
    assert_eq!(place.backup_status("by-hand").await.phase, BackupPhase::Completed);
    let said = place.sampledb_error(&["backup", "shop", "--as", "by-hand"]).await;
    assert!(said.contains("\"by-hand\" already exists"), "{said}");

    let said = place.sampledb(&["restore", "by-hand", "copy", "--instances", "1"]).await;
    assert!(said.contains("copy is made of backup by-hand"), "{said}");
    assert_eq!(place.psql("copy", ROWS).await, rows);
    let copy = place.world.api::<SampleDB>().get("copy").await.unwrap();
    assert_eq!((copy.spec.instances, copy.spec.storage.size.0.as_str()), (1, "1Gi"));
    let said = place.sampledb_error(&["restore", "none", "another"]).await;
    assert!(said.contains("sampledbbackups") && said.contains("\"none\" not found"), "{said}");

    let said = place.sampledb(&["hibernate", "copy"]).await;
    assert!(said.contains("its servers are stopped, and its volumes are kept"), "{said}");
    let said = place.sampledb_error(&["hibernate", "copy", "--off", "--timeout", "0"]).await;
    assert!(said.contains("not done after 0 s"), "{said}");
    place.sampledb(&["hibernate", "copy", "--off"]).await;
    assert_eq!(place.psql("copy", ROWS).await, rows);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.yaml");
    let said = place.sampledb(&["report", "shop", "--output", file.to_str().unwrap()]).await;
    assert!(said.contains("documents are in"), "{said}");
    let report = std::fs::read_to_string(&file).unwrap();
    for there in [
        "kind: SampleDB\n",
        "kind: SampleDBInstance\n",
        "kind: SampleDBArchive\n",
        "kind: SampleDBBackup\n",
        "kind: Lease\n",
        "kind: StatefulSet\n",
        "kind: PersistentVolumeClaim\n",
        "kind: Event\n",
        "database system is ready to accept connections",
    ] {
        assert!(report.contains(there), "{there}: {report}");
    }
    assert!(!report.contains("kind: Secret\n") && !report.contains("name: copy-0\n"));
    // Into a folder that is not there.
    let missing = folder.path().join("none/report.yaml");
    let said = place.sampledb_error(&["report", "shop", "--output", missing.to_str().unwrap()]).await;
    assert!(said.contains("none/report.yaml: No such file or directory"), "{said}");
    let said = place.sampledb_error(&["report", "nobody"]).await;
    assert!(said.contains("\"nobody\" not found"), "{said}");

    // Without its original, nothing says how large it is.
    place.patch("shop", json!({"spec": {"deletionPolicy": "Delete"}})).await;
    place.world.api::<SampleDB>().delete("shop", &DeleteParams::default()).await.unwrap();
    let gone = || async { place.world.api::<SampleDB>().get_opt("shop").await.unwrap().is_none() };
    place.until("copy", "shop is gone", gone).await;
    let said = place.sampledb_error(&["restore", "by-hand", "second"]).await;
    assert!(said.contains("set storage"), "{said}");
    place.sampledb(&["restore", "by-hand", "second", "--storage", "1Gi"]).await;
    assert_eq!(place.psql("second", ROWS).await, rows);
    let said = place.sampledb_error(&["backup", "second"]).await;
    assert!(said.contains("second has no archive: set spec.backup"), "{said}");
}
