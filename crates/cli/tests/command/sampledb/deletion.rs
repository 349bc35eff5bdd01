//! Databases that are deleted, by each policy, and what is left of them.

use super::backup::ROWS;
use super::place::{Place, cannot_run_postgres};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use sampledb_operator::api::v1alpha1::{BackupPhase, SampleDB, SampleDBBackup, SampleDBInstance};
use serde_json::json;

impl Place {
    /// Deletes it, and answers the name of its last backup.
    async fn delete(&self, name: &str, how: &DeleteParams) -> String {
        let database = self.world.api::<SampleDB>().get(name).await.unwrap();
        self.world.api::<SampleDB>().delete(name, how).await.unwrap();
        database.last_backup_name()
    }

    async fn is_gone(&self, name: &str) {
        let gone = || async { self.world.api::<SampleDB>().get_opt(name).await.unwrap().is_none() };
        self.world.until(&format!("{name} is gone"), gone).await;
    }

    /// The claims of its instances.
    pub(super) async fn claims(&self, name: &str) -> Vec<String> {
        let claims = self.world.api::<PersistentVolumeClaim>().list(&ListParams::default()).await.unwrap();
        let names = claims.iter().map(ResourceExt::name_any);
        names.filter(|claim| claim.starts_with(&format!("data-{name}-"))).collect()
    }

    /// Nothing of a database is left but its archive and its backups.
    async fn left_nothing(&self, name: &str) {
        let none = || async {
            self.world.api::<StatefulSet>().get_opt(name).await.unwrap().is_none()
                && self.world.api::<Lease>().get_opt(name).await.unwrap().is_none()
                && self.world.api::<Secret>().get_opt(&format!("{name}-credentials")).await.unwrap().is_none()
                && self.world.api::<SampleDBInstance>().get_opt(&format!("{name}-0")).await.unwrap().is_none()
                && self.claims(name).await.is_empty()
        };
        self.world.until(&format!("nothing is left of {name}"), none).await;
    }
}

#[tokio::test]
async fn a_deleted_database_leaves_a_snapshot_that_is_restored_under_its_name() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let mut place = Place::start().await;
    place.create_archived("vault").await;
    let rows = place.psql("vault", ROWS).await;
    // The operator is away when the deletion comes: nothing happens to the data.
    place.stop_operator();
    let last = place.delete("vault", &DeleteParams::foreground()).await;
    place.world.clock.sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(place.psql("vault", "INSERT INTO rows VALUES (0, 'late') RETURNING id").await, "0");
    let later = place.psql("vault", ROWS).await;
    assert_ne!(later, rows);
    let began = place.world.clock.moment();
    place.start_operator();
    place.is_gone("vault").await;
    println!("deleted with a snapshot: {:?}", place.world.clock.moment() - began);
    place.left_nothing("vault").await;
    let backup = place.world.api::<SampleDBBackup>().get(&last).await.unwrap();
    assert_eq!(backup.phase(), BackupPhase::Completed);

    // Row by row the same, under the same name.
    let from = json!({"backup": last});
    place
        .create("vault", json!({"instances": 2, "restoreFrom": from, "backup": {"storage": {"size": "1Gi"}}}))
        .await;
    place.is_ready("vault").await;
    assert_eq!(place.psql("vault", ROWS).await, later);

    // Without its snapshot it stays, until it is let go: its volumes stay then.
    place.world.api::<SampleDB>().delete("vault", &DeleteParams::default()).await.unwrap();
    let annotation = json!({"metadata": {"annotations": {"db.windlass.dev/abandon-snapshot": "true"}}});
    let _ = place
        .world
        .api::<SampleDB>()
        .patch("vault", &PatchParams::default(), &Patch::Merge(annotation))
        .await;
    place.is_gone("vault").await;
}

#[tokio::test]
async fn a_database_is_deleted_with_its_volumes_or_without() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.create("kept", json!({})).await;
    place.create("thrown", json!({"deletionPolicy": "Delete"})).await;
    place.is_ready("kept").await;
    place.is_ready("thrown").await;
    assert_eq!(
        place.psql("kept", "CREATE TABLE rows (id int, text text); INSERT INTO rows VALUES (1, 'a')").await,
        ""
    );
    let rows = place.psql("kept", ROWS).await;
    for name in ["kept", "thrown"] {
        place.delete(name, &DeleteParams::default()).await;
    }
    place.is_gone("kept").await;
    place.is_gone("thrown").await;
    place.left_nothing("thrown").await;
    assert_eq!(place.claims("kept").await, ["data-kept-0"]);
    assert_eq!(
        place.world.api::<SampleDBBackup>().list(&ListParams::default()).await.unwrap().items.len(),
        0
    );
    // A database of that name goes on with what was kept.
    place.create("kept", json!({})).await;
    place.is_ready("kept").await;
    assert_eq!(place.psql("kept", ROWS).await, rows);
}

/// Writers connect to every instance directly, and write for as long as they can.
#[tokio::test]
async fn the_last_backup_of_a_deleted_database_has_every_commit_that_was_acknowledged() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.create_archived("till").await;
    place.begin_to_write("till").await;
    place.until_more_are_acknowledged("till", 200).await;
    let last = place.delete("till", &DeleteParams::default()).await;
    place.is_gone("till").await;
    println!("acknowledged until it was deleted: {}", place.acknowledged().await);
    place.create("till", json!({"instances": 1, "restoreFrom": {"backup": last}})).await;
    place.is_ready("till").await;
    place.has_lost_nothing("till").await;
}
