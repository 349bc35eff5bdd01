//! What is decided of backups, restores and deletions.

use super::{IMAGE, database, held, instance, lease};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use sampledb_operator::api::v1alpha1::{
    Role, SampleDB, SampleDBArchive, SampleDBBackup, SampleDBInstance, SampleDBInstanceStatus,
};
use sampledb_operator::controller::{backup, deletion, provisioning};
use sampledb_operator::data_version::{DataVersion, Phase, Upgrade};
use sampledb_operator::{backups, databases};
use serde_json::{Value, json};
use windlass::{Observed, Plan};
use windlass_testing::{named, object};

fn archived(changes: Value) -> SampleDB {
    let mut database = database(changes);
    database.spec.backup = Some(serde_json::from_value(json!({"storage": {"size": "2Gi"}})).unwrap());
    database.metadata.uid = Some("0123456789".to_owned());
    database.metadata.namespace = Some("shop".to_owned());
    database.status = Some(serde_json::from_value(json!({"primary": "db-0", "version": "15.4"})).unwrap());
    database
}

fn nightly(status: Value) -> SampleDBBackup {
    object(
        "nightly",
        json!({"metadata": {"uid": "abcdefghij"}, "spec": {"database": "db"}, "status": status}),
    )
}

fn archive(ready: bool) -> SampleDBArchive {
    let spec = json!({"database": "db", "databaseUid": "0123456789", "image": "postgres:15", "storage": {"size": "2Gi"}});
    object("db-01234567", json!({"spec": spec, "status": {"ready": ready}}))
}

fn take(one: &SampleDBBackup, observed: &Observed) -> Plan {
    let plan = backup::decide(one, observed, IMAGE).expect("it can be carried out");
    backups(IMAGE).check(&plan).expect("it does what the controller declares");
    plan
}

fn world() -> Observed {
    Observed::empty().with(archived(json!({}))).with(archive(true))
}

#[test]
fn a_backup_waits_for_its_archive_and_its_primary_and_is_then_taken_by_a_job() {
    let unready = Observed::empty().with(archived(json!({}))).with(archive(false));
    let plan = take(&nightly(json!({})), &unready);
    assert_eq!(plan.waits()[0].reason.name(), "ArchiveNotReady");
    let mut headless = archived(json!({}));
    headless.status = None;
    let plan = take(&nightly(json!({})), &Observed::empty().with(headless).with(archive(true)));
    assert_eq!(plan.waits()[0].reason.name(), "NoPrimary");
    let none = Observed::empty().with(database(json!({})));
    assert!(
        backup::decide(&nightly(json!({})), &none, IMAGE)
            .unwrap_err()
            .to_string()
            .contains("set spec.backup")
    );
    let plan = take(&nightly(json!({})), &world());
    let connection = plan.applied::<ConfigMap>("nightly-backup").unwrap().data.unwrap();
    assert_eq!(connection["PGHOST"], "db-rw.shop.svc");
    assert_eq!(connection["SAMPLEDB_LOCATION"], "0123456789/nightly.abcdefgh");
    let pod = plan.applied::<Job>("nightly-backup").unwrap().spec.unwrap().template.spec.unwrap();
    assert_eq!((pod.service_account_name, pod.automount_service_account_token), (None, Some(false)));
}

fn job(condition: &str) -> Job {
    object(
        "nightly-backup",
        json!({"status": {"conditions": [{"type": condition, "status": "True", "message": "m"}]}}),
    )
}

fn ended(code: i32, message: &str) -> Pod {
    let end = json!({"terminated": {"exitCode": code, "message": message}});
    let container = json!({"name": "backup", "image": "i", "imageID": "i", "ready": false, "restartCount": 0, "state": end});
    object(format!("nightly-{code}"), json!({"status": {"containerStatuses": [container]}}))
}

#[test]
fn a_backup_is_completed_by_what_the_archive_said_and_by_nothing_else() {
    let said = r#"{"sizeBytes":7,"durationSeconds":2,"wal":{"begin":"0/28","end":"0/100","timeline":1},"systemIdentifier":"9"}"#;
    let plan =
        take(&nightly(json!({})), &world().with(job("Complete")).with(ended(1, "no")).with(ended(0, said)));
    let status = plan.reported().unwrap();
    assert_eq!(
        (&status["phase"], &status["sizeBytes"], &status["endLSN"]),
        (&json!("Completed"), &json!(7), &json!("0/100"))
    );
    assert!(plan.is_complete(), "{plan}");
    // The database was upgraded since it was taken.
    let upgraded = said.replace("}", "").replace("\"wal\":{", "\"version\":\"16\",\"wal\":{");
    let upgraded = upgraded.replace(",\"systemIdentifier", "},\"systemIdentifier") + "}";
    let upgraded = take(&nightly(json!({})), &world().with(job("Complete")).with(ended(0, &upgraded)));
    assert_eq!(upgraded.reported().unwrap()["version"], "16", "{upgraded}");
    // Its pod is gone with what it said: it is asked again.
    let lost = take(&nightly(json!({})), &world().with(job("Complete")));
    assert!(lost.deletes::<Job>("nightly-backup") && !lost.is_complete(), "{lost}");
    let failed = take(&nightly(json!({})), &world().with(job("Failed")).with(ended(1, "no space left")));
    assert_eq!(failed.reported().unwrap()["message"], "no space left");
    assert!(failed.notes()[0].warning && !failed.is_complete(), "{failed}");
    // It is taken once, whatever becomes of its Job and its database.
    for phase in ["Completed", "Failed"] {
        let plan = take(&nightly(json!({"phase": phase})), &Observed::empty());
        assert!(plan.steps().is_empty() && plan.reported().unwrap()["phase"] == phase, "{plan}");
    }
    let other = nightly(json!({"phase": "Running", "archive": "db-another"}));
    assert_eq!(take(&other, &world()).reported().unwrap()["phase"], "Failed");
}

fn delete(database: &SampleDB, observed: &Observed) -> Plan {
    let plan = deletion::decide(database, observed, IMAGE).expect("it can be carried out");
    databases(IMAGE).check(&plan).expect("it does what the controller declares");
    plan
}

/// A database whose primary says this of its clients.
fn running_with(closed: Option<bool>) -> Observed {
    let status = SampleDBInstanceStatus {
        role: Role::Primary,
        pod_uid: Some("pod-0".to_owned()),
        closed,
        ..Default::default()
    };
    running().with(instance("db-0", "a", status))
}

fn running() -> Observed {
    let claim: PersistentVolumeClaim = named("data-db-0");
    let (servers, secret): (StatefulSet, Secret) = (named("db"), named("db-credentials"));
    Observed::empty().with(lease(&held())).with(servers).with(claim).with(secret)
}

fn last(status: Value) -> SampleDBBackup {
    object("db-01234567-last", json!({"spec": {"database": "db"}, "status": status}))
}

#[test]
fn nothing_is_deleted_before_the_last_backup_is_completed() {
    let mut database = archived(json!({}));
    database.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    let is_kept = |plan: &Plan| {
        let deletes = plan.steps().iter().any(|step| {
            step.effect.verb() == "delete"
                && step.effect.kind().is_some_and(|kind| kind.kind != "SampleDBBackup")
        });
        !deletes && !plan.is_complete() && plan.applied::<StatefulSet>("db").is_some()
    };
    let begins = |plan: &Plan| plan.applied::<SampleDBBackup>("db-01234567-last").is_some();
    // What clients write is in it, so they are kept out before.
    for still_open in [running(), running_with(Some(false))] {
        let closes = delete(&database, &still_open);
        assert!(is_kept(&closes) && !begins(&closes), "{closes}");
        assert!(closes.applied::<SampleDBInstance>("db-0").unwrap().spec.closed, "{closes}");
    }
    // An agent of an earlier version does not say.
    for closed in [Some(true), None] {
        let first = delete(&database, &running_with(closed));
        assert!(is_kept(&first) && begins(&first), "{first}");
    }
    let under_way = delete(&database, &running().with(last(json!({"phase": "Running"}))));
    assert!(
        is_kept(&under_way) && under_way.applied::<SampleDBBackup>("db-01234567-last").is_none(),
        "{under_way}"
    );
    let failed =
        json!({"phase": "Failed", "completedAt": "2026-01-01T00:00:00Z", "message": "the disk is full"});
    let at = |time: &str| running().with(last(failed.clone())).now_is(time.parse().unwrap());
    let told = delete(&database, &at("2026-01-01T00:01:00Z"));
    assert!(is_kept(&told) && !told.deletes::<SampleDBBackup>("db-01234567-last"), "{told}");
    let waits: Vec<String> = told.waits().iter().map(|wait| wait.reason.to_string()).collect();
    assert!(waits.iter().any(|wait| wait.contains("abandon-snapshot=true")), "{waits:?}");
    let again = delete(&database, &at("2026-01-01T00:06:00Z"));
    assert!(is_kept(&again) && again.deletes::<SampleDBBackup>("db-01234567-last"), "{again}");
    let taken = delete(&database, &running().with(last(json!({"phase": "Completed"}))));
    assert!(
        taken.deletes::<StatefulSet>("db") && taken.deletes::<PersistentVolumeClaim>("data-db-0"),
        "{taken}"
    );
    let gone = Observed::empty().with(lease(&held())).with(last(json!({"phase": "Completed"})));
    assert!(delete(&database, &gone).is_complete());
}

#[test]
fn a_policy_that_keeps_volumes_deletes_none_and_a_deletion_can_be_let_go() {
    let plan = delete(&database(json!({})), &running());
    assert!(plan.is_complete() && plan.steps().is_empty(), "by default they are kept: {plan}");
    let plan = delete(&archived(json!({"deletionPolicy": "Delete"})), &running());
    assert!(plan.deletes::<PersistentVolumeClaim>("data-db-0"), "{plan}");
    let mut stuck = archived(json!({}));
    stuck.metadata.annotations = Some([(deletion::ABANDON.to_owned(), "true".to_owned())].into());
    let plan = delete(&stuck, &running());
    assert!(plan.is_complete() && plan.steps().is_empty(), "{plan}");
    let claim: PersistentVolumeClaim = named("data-db-0");
    let never_made = delete(&archived(json!({})), &Observed::empty().with(claim));
    assert!(never_made.is_complete() && never_made.steps().is_empty(), "an earlier one's: {never_made}");
}

#[test]
fn a_deletion_ends_an_upgrade_that_would_keep_the_volume() {
    let phase = Phase::Upgrading { attempt: 3 };
    let upgrade =
        Upgrade { to: "18".into(), image: "postgres:18".into(), phase, instance: Some("db-0".into()) };
    let data = DataVersion { major: "16".into(), upgrade: Some(upgrade), ..DataVersion::default() };
    let mut held = lease(&held());
    data.write(&mut held);
    let job: Job = named("db-upgrade-3");
    let claim: PersistentVolumeClaim = named("data-db-0");
    let observed = Observed::empty().with(held).with(job).with(claim);
    let plan = delete(&archived(json!({"deletionPolicy": "Delete"})), &observed);
    assert!(
        plan.deletes::<Job>("db-upgrade-3") && plan.deletes::<PersistentVolumeClaim>("data-db-0"),
        "{plan}"
    );
}

#[test]
fn only_a_completed_backup_that_fits_is_restored() {
    let restored = database(json!({"restoreFrom": {"backup": "nightly"}}));
    let secret: Secret = named("db-credentials");
    let decide = |status: Option<Value>| {
        let observed = Observed::empty().with(secret.clone());
        let observed = match status {
            Some(status) => observed.with(nightly(status)),
            None => observed,
        };
        provisioning::decide(&restored, &observed, IMAGE)
    };
    let whole = |version: &str, owner: &str| {
        json!({"phase": "Completed", "archive": "old-1", "location": "u/nightly.1", "systemIdentifier": "9",
               "version": version, "database": "app", "owner": owner})
    };
    for (status, why) in [
        (None, "BackupMissing"),
        (Some(json!({"phase": "Failed"})), "BackupFailed"),
        (Some(whole("14.2", "app")), "OtherVersion"),
        (Some(whole("15.2", "another")), "OtherNames"),
    ] {
        assert!(decide(status).unwrap_err().to_string().starts_with(why), "{why}");
    }
    let early = decide(Some(json!({"phase": "Running"}))).unwrap();
    assert!(early.steps().is_empty() && !early.is_complete(), "{early}");
    let plan = decide(Some(whole("15.2 (Debian)", "app"))).unwrap();
    let source = plan.applied::<SampleDBInstance>("db-0").unwrap().spec.restore.unwrap();
    assert_eq!((source.location.as_str(), source.system_identifier.as_str()), ("u/nightly.1", "9"));
    let pod = plan.applied::<StatefulSet>("db").unwrap().spec.unwrap().template.spec.unwrap();
    assert!(pod.volumes.unwrap().iter().any(|volume| volume.name == "archive"));
}
