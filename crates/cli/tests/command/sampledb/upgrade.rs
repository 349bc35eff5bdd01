//! Servers of another version: minor versions, major ones, and the way back.

use super::backup::ROWS;
use super::place::{Place, cannot_run_postgres, first_process, upgrade_process};
use super::versions::versions;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use nix::sys::signal::{Signal, kill};
use sampledb_operator::api::v1alpha1::{BackupPhase, SampleDB, SampleDBBackup};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long Leases last here, in seconds: nothing fails over, also on a busy machine.
const CALM: i32 = 60;
/// How long an upgrade may take on a busy machine.
const LONG: Duration = Duration::from_secs(400);

impl Place {
    /// A cluster with several versions of PostgreSQL, where they can be run.
    async fn with_versions(locales: Option<&Path>) -> Option<Self> {
        let why = cannot_run_postgres().or_else(|| versions().err());
        if let Some(why) = why {
            println!("upgrades are not tried: {why}");
            return None;
        }
        Some(Self::start_with(versions().ok().as_deref(), locales).await)
    }

    async fn create_of_version(&self, name: &str, version: &str, spec: Value) {
        let mut whole = json!({"version": version, "leaseDurationSeconds": CALM});
        for (field, value) in spec.as_object().unwrap() {
            whole[field] = value.clone();
        }
        self.create(name, whole).await;
        self.is_ready(name).await;
        self.runs_version(name, version).await;
        let sql = "CREATE TABLE rows (id int PRIMARY KEY, text text); \
                   INSERT INTO rows SELECT n, md5(n::text) FROM generate_series(1, 5000) n";
        assert_eq!(self.psql(name, sql).await, "");
    }

    /// Waits until it is of a version and ready.
    async fn runs_version(&self, name: &str, version: &str) {
        self.until_within(LONG, name, &format!("runs {version}"), || async {
            let database = self.world.api::<SampleDB>().get(name).await.unwrap();
            let runs = database.status.and_then(|status| status.version);
            runs.is_some_and(|runs| runs.starts_with(version)) && self.is_ready_now(name).await
        })
        .await;
    }

    /// Waits until its primary is of a version.
    async fn runs_version_whatever_is_awaited(&self, name: &str, version: &str) {
        self.until_within(LONG, name, &format!("runs {version}"), || async {
            let database = self.world.api::<SampleDB>().get(name).await.unwrap();
            let runs = database.status.and_then(|status| status.version);
            runs.is_some_and(|runs| runs.starts_with(version))
        })
        .await;
    }

    /// What a condition says.
    async fn told_of(&self, name: &str, condition: &str) -> String {
        let status = self.world.api::<SampleDB>().get(name).await.unwrap().status.unwrap_or_default();
        let one = status.conditions.into_iter().find(|one| one.type_ == condition);
        one.map(|one| one.message).unwrap_or_default()
    }

    /// Waits until a condition says this.
    async fn until_told(&self, name: &str, condition: &str, words: &str) {
        let says = || async { self.told_of(name, condition).await.contains(words) };
        self.until_within(LONG, name, &format!("{condition} says {words}"), says).await;
    }

    async fn annotate(&self, name: &str, annotation: &str, value: &str) {
        let annotation = format!("db.windlass.dev/{annotation}");
        self.patch(name, json!({"metadata": {"annotations": {annotation: value}}})).await;
    }

    async fn images(&self, name: &str) -> Vec<String> {
        let of = ListParams::default().labels(&format!("db.windlass.dev/database={name}"));
        let pods = self.world.api::<Pod>().list(&of).await.unwrap();
        pods.items.into_iter().filter_map(|pod| pod.spec?.containers.remove(0).image).collect()
    }
}

#[tokio::test]
#[ignore = "takes minutes, and downloads servers of three versions: make test-upgrades"]
async fn a_database_is_upgraded_to_a_minor_and_to_a_major_version() {
    let Some(place) = Place::with_versions(None).await else { return };
    let backup = json!({"storage": {"size": "1Gi"}});
    place.create_of_version("ledger", "16.11", json!({"instances": 2, "backup": backup})).await;
    let rows = place.psql("ledger", ROWS).await;
    assert!(rows.starts_with("5000|"), "{rows}");

    let began = place.world.clock.moment();
    place.change("ledger", json!({"version": "16.14"})).await;
    place.runs_version("ledger", "16.14").await;
    println!("a minor version: {:?}", place.world.clock.moment() - began);
    assert_eq!(place.images("ledger").await, ["postgres:16.14", "postgres:16.14"]);
    // The primary handed over before its server restarted.
    assert_eq!(place.primary("ledger").await.as_deref(), Some("ledger-1"));
    assert_eq!(place.psql("ledger", ROWS).await, rows);

    let began = place.world.clock.moment();
    place.change("ledger", json!({"version": "18.4"})).await;
    place.runs_version("ledger", "18.4").await;
    println!("a major version: {:?}", place.world.clock.moment() - began);
    place.has_condition("ledger", "UpToDate", "True", "RunsVersion").await;
    assert_eq!(place.psql("ledger", ROWS).await, rows);
    assert_eq!(place.psql("ledger", "INSERT INTO rows VALUES (0, 'new') RETURNING id").await, "0");
    assert_eq!(place.psql("ledger", "SELECT reltuples FROM pg_class WHERE relname = 'rows'").await, "5000");
    let backups = place.world.api::<SampleDBBackup>().list(&ListParams::default()).await.unwrap();
    assert_eq!(backups.items.iter().map(SampleDBBackup::phase).collect::<Vec<_>>(), [BackupPhase::Completed]);
    let primary = first_process(&place.primary("ledger").await.unwrap()).unwrap();
    let before = format!("/proc/{primary}/root/var/lib/sampledb/pgdata.before");
    let is_gone = || async { !std::path::Path::new(&before).exists() };
    place.until("ledger", "the data of the version before is deleted", is_gone).await;

    // Back is only by a backup.
    place.change("ledger", json!({"version": "16.14"})).await;
    place.has_condition("ledger", "UpToDate", "False", "DowngradeRefused").await;
    assert!(place.psql("ledger", ROWS).await.starts_with("5001|"));
    assert_eq!(place.images("ledger").await, ["postgres:18.4", "postgres:18.4"]);
    place.change("ledger", json!({"version": "18.4"})).await;
    place.is_ready("ledger").await;
    let restored = json!({"version": "16.14", "restoreFrom": {"backup": backups.items[0].metadata.name}});
    place.create("before", restored).await;
    place.is_ready("before").await;
    assert_eq!(place.psql("before", ROWS).await, rows);
}

#[tokio::test]
#[ignore = "takes minutes, and downloads servers of three versions: make test-upgrades"]
async fn an_upgrade_that_fails_or_is_taken_back_leaves_the_data_as_it_was() {
    let Some(place) = Place::with_versions(None).await else { return };
    place.create_of_version("books", "16.14", json!({"instances": 2})).await;
    let rows = place.psql("books", ROWS).await;
    place.change("books", json!({"version": "18.4"})).await;
    place.has_condition("books", "UpToDate", "False", "UpgradeNeedsBackup").await;
    assert_eq!(place.psql("books", ROWS).await, rows);

    // pg_upgrade refuses it, and says why.
    assert_eq!(place.psql("books", "CREATE TABLE refused (name regproc)").await, "");
    place.annotate("books", "upgrade-without-backup", "true").await;
    place.until_told("books", "UpToDate", "the upgrade to PostgreSQL 18 failed").await;
    let told = place.told_of("books", "UpToDate").await;
    assert!(told.contains("reg* data types") && told.contains("public.refused.name"), "{told}");
    place.until("books", "takes writes again", || async { place.psql("books", ROWS).await == rows }).await;
    place.runs_version_whatever_is_awaited("books", "16.14").await;
    assert_eq!(place.psql("books", "DROP TABLE refused").await, "");

    // It is set back, and asked for again, with a parameter that the next version does not know: its server does not start.
    place.change("books", json!({"version": "16.14", "parameters": {"old_snapshot_threshold": "60"}})).await;
    place.is_ready("books").await;
    place.change("books", json!({"version": "18.4"})).await;
    place.until_told("books", "UpToDate", "servers of PostgreSQL 18 start").await;
    place.change("books", json!({"version": "16.14"})).await;
    place.runs_version("books", "16.14").await;
    assert_eq!(place.psql("books", ROWS).await, rows);

    // Without it, it does.
    place.change("books", json!({"version": "18.4", "parameters": null})).await;
    place.runs_version("books", "18.4").await;
    assert_eq!(place.psql("books", ROWS).await, rows);
}

/// A folder with a locale of the machine's own C library, or why there is none.
fn locale(folder: &Path) -> Result<(), String> {
    let made = Command::new("localedef")
        .args(["-i", "en_US", "-f", "UTF-8"])
        .arg(folder.join("en_US.utf8"))
        .output();
    let made = made.map_err(|error| format!("localedef: {error}"))?;
    let said = || String::from_utf8_lossy(&made.stderr).into_owned();
    if folder.join("en_US.utf8/LC_COLLATE").is_file() {
        Ok(())
    } else {
        Err(format!("localedef: {}", said()))
    }
}

#[tokio::test]
#[ignore = "takes minutes, and downloads servers of three versions: make test-upgrades"]
async fn where_text_sorts_otherwise_an_upgrade_waits_for_consent() {
    let locales = tempfile::tempdir().unwrap();
    std::fs::set_permissions(locales.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    if let Err(why) = locale(locales.path()) {
        println!("{why}");
        return;
    }
    let Some(place) = Place::with_versions(Some(locales.path())).await else { return };
    place.create_of_version("sorted", "16.14", json!({"instances": 1})).await;
    let rows = place.psql("sorted", ROWS).await;
    // As if an earlier version of the C library had sorted by it.
    let sql = "CREATE COLLATION \"of Old\" (provider = libc, locale = 'en_US.utf8', version = '1.0'); \
               CREATE INDEX by_text ON rows (text COLLATE \"of Old\")";
    let said = place.psql("sorted", sql).await;
    assert!(!said.contains("ERROR"), "{said}");
    place.annotate("sorted", "upgrade-without-backup", "true").await;
    place.change("sorted", json!({"version": "18.4"})).await;
    place.until_told("sorted", "UpToDate", "the upgrade to PostgreSQL 18 failed").await;
    let told = place.told_of("sorted", "UpToDate").await;
    assert!(
        told.contains("collation public.\"of Old\" in app") && told.contains("accept-collation-changes"),
        "{told}"
    );
    assert_eq!(place.psql("sorted", ROWS).await, rows);

    place.annotate("sorted", "accept-collation-changes", "true").await;
    place.change("sorted", json!({"version": "16.14"})).await;
    place.has_condition("sorted", "UpToDate", "True", "RunsVersion").await;
    place.change("sorted", json!({"version": "18.4"})).await;
    place.runs_version("sorted", "18.4").await;
    assert_eq!(place.psql("sorted", ROWS).await, rows);
    let version =
        "SELECT collversion = pg_collation_actual_version(oid) FROM pg_collation WHERE collname = 'of Old'";
    assert_eq!(place.psql("sorted", version).await, "t");
}

#[tokio::test]
#[ignore = "takes minutes, and downloads servers of three versions: make test-upgrades"]
async fn an_upgrade_goes_on_when_its_pod_and_the_operator_are_killed() {
    let Some(mut place) = Place::with_versions(None).await else { return };
    place.create_of_version("killed", "16.14", json!({"instances": 1})).await;
    let rows = place.psql("killed", ROWS).await;
    place.annotate("killed", "upgrade-without-backup", "true").await;
    // Its server cannot give the Lease back either, and has to recover.
    place.stop_operator();
    kill(first_process("killed-0").unwrap(), Signal::SIGKILL).unwrap();
    place.change("killed", json!({"version": "18.4"})).await;
    place.start_operator();
    place.until_told("killed", "UpToDate", "pg_upgrade makes data of the next version").await;
    place.stop_operator();
    kill(upgrade_process("killed-0").unwrap(), Signal::SIGKILL).unwrap();
    place.start_operator();
    place.runs_version("killed", "18.4").await;
    place.has_condition("killed", "UpToDate", "True", "RunsVersion").await;
    assert_eq!(place.psql("killed", ROWS).await, rows);
    let jobs = place.world.api::<Job>().list(&ListParams::default()).await.unwrap();
    assert_eq!(jobs.items[0].status.as_ref().unwrap().failed, Some(1));
}
