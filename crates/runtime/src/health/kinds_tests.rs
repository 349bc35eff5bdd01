//! The rules of the built-in kinds, case by case.

use super::super::{State, of_json};
use serde_json::{Value, json};
use windlass_clock::Timestamp;

fn at(second: i64) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap()
        + std::time::Duration::from_secs(second.unsigned_abs())
}

fn health(version: &str, kind: &str, mut object: Value) -> (State, String) {
    object["apiVersion"] = version.into();
    object["kind"] = kind.into();
    let health = of_json(&object, at(60));
    (health.state, health.reason.into_owned())
}

fn current() -> (State, String) {
    (State::Current, "Current".to_owned())
}

fn in_progress(reason: &str) -> (State, String) {
    (State::InProgress, reason.to_owned())
}

fn failed(reason: &str) -> (State, String) {
    (State::Failed, reason.to_owned())
}

fn condition(of: &str, status: &str, reason: &str) -> Value {
    json!({"type": of, "status": status, "reason": reason})
}

#[test]
fn a_deployment_is_current_when_all_are_updated_available_and_ready() {
    let with = |status: Value, conditions: Value| {
        let mut object = json!({"spec": {"replicas": 2, "progressDeadlineSeconds": 600}, "status": status});
        object["status"]["conditions"] = conditions;
        health("apps/v1", "Deployment", object)
    };
    let counts = |there: i64, updated: i64, available: i64, ready: i64| json!({"replicas": there, "updatedReplicas": updated, "availableReplicas": available, "readyReplicas": ready});
    let progressing = condition("Progressing", "True", "NewReplicaSetAvailable");
    let available = condition("Available", "True", "MinimumReplicasAvailable");
    let fine = json!([progressing, available]);
    assert_eq!(with(counts(2, 2, 2, 2), fine.clone()), current());
    assert_eq!(with(json!({}), json!([])), in_progress("LessReplicas"));
    assert_eq!(with(counts(2, 1, 1, 2), fine.clone()), in_progress("LessUpdated"));
    assert_eq!(with(counts(3, 2, 2, 2), fine.clone()), in_progress("ExtraPods"));
    assert_eq!(with(counts(2, 2, 1, 2), fine.clone()), in_progress("LessAvailable"));
    assert_eq!(with(counts(2, 2, 2, 1), fine), in_progress("LessReady"));
    assert_eq!(with(counts(2, 2, 2, 2), json!([available])), in_progress("ReplicaSetNotAvailable"));
    assert_eq!(with(counts(2, 2, 2, 2), json!([progressing])), in_progress("DeploymentNotAvailable"));
    let stuck = json!([condition("Progressing", "False", "ProgressDeadlineExceeded")]);
    assert_eq!(with(counts(2, 2, 2, 2), stuck), failed("ProgressDeadlineExceeded"));
}

#[test]
fn a_stateful_set_counts_up_to_its_partition_and_compares_revisions() {
    let with = |strategy: Value, status: Value| {
        health(
            "apps/v1",
            "StatefulSet",
            json!({"spec": {"replicas": 3, "updateStrategy": strategy}, "status": status}),
        )
    };
    let full = |current: &str| {
        json!({"replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 1,
               "currentRevision": current, "updateRevision": "b"})
    };
    assert_eq!(with(json!({}), full("b")), current());
    assert_eq!(with(json!({}), full("a")), in_progress("RevisionMismatch"));
    assert_eq!(with(json!({}), json!({"replicas": 3})), in_progress("LessReady"));
    assert_eq!(with(json!({"rollingUpdate": {"partition": 2}}), full("a")), current());
    assert_eq!(with(json!({"rollingUpdate": {"partition": 1}}), full("a")), in_progress("PartitionRollout"));
    assert_eq!(with(json!({"type": "OnDelete"}), json!({})), current());
}

#[test]
fn a_daemon_set_must_have_been_looked_at() {
    let with = |status: Value| {
        health("apps/v1", "DaemonSet", json!({"metadata": {"generation": 1}, "status": status}))
    };
    assert_eq!(with(json!({})), in_progress("NoObservedGeneration"));
    assert_eq!(with(json!({"observedGeneration": 1})), in_progress("NoDesiredNumber"));
    let counts = |ready: i64| {
        json!({"observedGeneration": 1, "desiredNumberScheduled": 2, "currentNumberScheduled": 2,
               "updatedNumberScheduled": 2, "numberAvailable": 2, "numberReady": ready})
    };
    assert_eq!(with(counts(1)), in_progress("LessReady"));
    assert_eq!(with(counts(2)), current());
}

#[test]
fn a_replica_set_reports_failures_as_long_as_it_tries() {
    let with =
        |status: Value| health("apps/v1", "ReplicaSet", json!({"spec": {"replicas": 1}, "status": status}));
    let full = json!({"replicas": 1, "fullyLabeledReplicas": 1, "availableReplicas": 1, "readyReplicas": 1});
    assert_eq!(with(full.clone()), current());
    assert_eq!(with(json!({})), in_progress("LessLabelled"));
    let mut quota = full;
    quota["conditions"] = json!([condition("ReplicaFailure", "True", "FailedCreate")]);
    assert_eq!(with(quota), in_progress("ReplicaFailure"));
}

#[test]
fn a_pod_is_judged_by_its_phase() {
    let with = |phase: &str, more: Value| {
        let mut status = more;
        if !phase.is_empty() {
            status["phase"] = phase.into();
        }
        health(
            "v1",
            "Pod",
            json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": status}),
        )
    };
    assert_eq!(with("", json!({})), in_progress("PodNotObserved"));
    assert_eq!(with("Succeeded", json!({})), current());
    assert_eq!(with("Failed", json!({})), current());
    assert_eq!(with("Running", json!({"conditions": [condition("Ready", "True", "")]})), current());
    assert_eq!(with("Running", json!({})), in_progress("PodRunningNotReady"));
    let crashing =
        json!({"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]});
    assert_eq!(with("Running", crashing), failed("ContainerCrashLooping"));
    assert_eq!(with("Pending", json!({})), in_progress("PodPending"));
    let nowhere = json!({"conditions": [condition("PodScheduled", "False", "Unschedulable")]});
    assert_eq!(with("Pending", nowhere.clone()), failed("PodUnschedulable"));
    let young = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
                       "status": {"phase": "Pending", "conditions": nowhere["conditions"]}});
    assert_eq!(of_json(&young, at(14)).reason, "PodNotScheduled");
    assert_eq!(with("Odd", json!({})).0, State::Unknown);
}

#[test]
fn a_job_that_runs_is_as_declared() {
    let with =
        |status: Value| health("batch/v1", "Job", json!({"spec": {"completions": 2}, "status": status}));
    assert_eq!(with(json!({})), in_progress("JobNotStarted"));
    assert_eq!(with(json!({"startTime": "2026-01-01T00:00:00Z"})), current());
    assert_eq!(with(json!({"conditions": [condition("Failed", "True", "")]})), failed("JobFailed"));
    assert_eq!(with(json!({"conditions": [condition("Complete", "True", "")]})), current());
    assert_eq!(with(json!({"conditions": [condition("Suspended", "True", "")]})), current());
}

#[test]
fn the_others_have_a_rule_each() {
    assert_eq!(
        health("v1", "PersistentVolumeClaim", json!({"status": {"phase": "Pending"}})),
        in_progress("NotBound")
    );
    assert_eq!(health("v1", "PersistentVolumeClaim", json!({"status": {"phase": "Bound"}})), current());
    assert_eq!(
        health("v1", "Service", json!({"spec": {"type": "LoadBalancer"}})),
        in_progress("NoIPAssigned")
    );
    assert_eq!(health("v1", "Service", json!({"spec": {"type": "ClusterIP"}})), current());
    assert_eq!(health("v1", "Secret", json!({})), current());
    assert_eq!(health("policy/v1", "PodDisruptionBudget", json!({})), current());
    let budget = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}});
    assert_eq!(
        health("policy/v1", "PodDisruptionBudget", budget),
        in_progress("LatestGenerationNotObserved")
    );
    let definition = |conditions: Value| {
        let object = json!({"status": {"conditions": conditions}});
        health("apiextensions.k8s.io/v1", "CustomResourceDefinition", object)
    };
    assert_eq!(definition(json!([])), in_progress("Installing"));
    assert_eq!(
        definition(json!([condition("Established", "False", "Installing")])),
        in_progress("Installing")
    );
    assert_eq!(definition(json!([condition("Established", "True", "")])), current());
    assert_eq!(definition(json!([condition("NamesAccepted", "False", "Taken")])), failed("Taken"));
}
