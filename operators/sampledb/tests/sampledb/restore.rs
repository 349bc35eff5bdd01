//! What is decided of SampleDBRestores.

use sampledb_operator::api::v1alpha1::{SampleDB, SampleDBBackup, SampleDBRestore};
use sampledb_operator::controller::restoring;
use sampledb_operator::restores;
use serde_json::{Value, json};
use windlass::{Observed, Plan};
use windlass_testing::object;

fn restore(phase: &str) -> SampleDBRestore {
    object(
        "move",
        json!({"metadata": {"uid": "89ab"}, "spec": {"backup": "nightly", "database": "copy"}, "status": {"phase": phase}}),
    )
}

fn backup(phase: &str) -> SampleDBBackup {
    object(
        "nightly",
        json!({"spec": {"database": "db"}, "status": {"phase": phase, "version": "16.4", "database": "app", "owner": "app"}}),
    )
}

fn original() -> SampleDB {
    object("db", json!({"spec": {"version": "16.4", "instances": 3, "storage": {"size": "2Gi"}}}))
}

fn copy(by: &str, ready: &str) -> SampleDB {
    let condition = json!({
        "type": "Ready", "status": ready, "reason": "R", "message": "the first instance starts", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    object(
        "copy",
        json!({"metadata": {"generation": 1, "annotations": {"db.windlass.dev/restored-by": by}},
               "spec": {"version": "16.4", "storage": {"size": "2Gi"}}, "status": {"conditions": [condition]}}),
    )
}

fn decide(restore: &SampleDBRestore, observed: &Observed) -> Plan {
    let plan = restoring::decide(restore, observed).expect("it can be carried out");
    restores().check(&plan).expect("it does what the controller declares");
    plan
}

fn reported(plan: &Plan) -> Value {
    plan.reported().unwrap()["phase"].clone()
}

#[test]
fn a_restore_makes_its_database_once_its_backup_is_completed() {
    assert!(restoring::decide(&restore("Pending"), &Observed::empty()).is_err());
    let world = |phase: &str| Observed::empty().with(backup(phase)).with(original());
    let early = decide(&restore("Pending"), &world("Running"));
    assert!(early.steps().is_empty() && !early.is_complete(), "{early}");
    let begins = decide(&restore("Pending"), &world("Completed"));
    let made = begins.applied::<SampleDB>("copy").unwrap();
    assert_eq!(made.spec.restore_from.as_ref().unwrap().backup, "nightly");
    assert_eq!((made.spec.instances, made.spec.storage), (3, original().spec.storage));
    assert_eq!(made.metadata.annotations, copy(&uid(), "False").metadata.annotations);
    let nothing = decide(&restore("Pending"), &world("Failed"));
    assert!(nothing.steps().is_empty() && reported(&nothing) == "Failed", "{nothing}");
    let gone = decide(&restore("Pending"), &Observed::empty().with(backup("Completed")));
    assert!(reported(&gone) == "Failed" && gone.to_string().contains("set storage"), "{gone}");
}

fn uid() -> String {
    restore("Pending").metadata.uid.unwrap()
}

#[test]
fn a_restore_tells_how_its_database_is_until_that_was_ready() {
    let with = |phase: &str, by: &str, ready: &str| {
        decide(&restore(phase), &Observed::empty().with(copy(by, ready)))
    };
    let starts = with("Running", &uid(), "False");
    assert!(
        reported(&starts) == "Running" && starts.to_string().contains("the first instance starts"),
        "{starts}"
    );
    let ready = with("Running", &uid(), "True");
    assert!(reported(&ready) == "Completed" && ready.is_complete(), "{ready}");
    for observed in [Observed::empty(), Observed::empty().with(copy(&uid(), "False"))] {
        let over = decide(&restore("Completed"), &observed);
        assert!(over.steps().is_empty() && over.is_complete() && reported(&over) == "Completed", "{over}");
    }
    // Another's is left alone, and one that was deleted is not made again.
    for (phase, observed) in [
        ("Pending", Observed::empty().with(copy("another", "True"))),
        ("Running", Observed::empty().with(backup("Completed")).with(original())),
    ] {
        let failed = decide(&restore(phase), &observed);
        assert!(failed.steps().is_empty() && reported(&failed) == "Failed", "{failed}");
    }
}
