//! The rules of the built-in kinds, a row each. Their conditions came before there was an agreement on what to call them.

use super::{Health, conditions, number, text};
use serde_json::Value;
use std::time::Duration;
use windlass_clock::Timestamp;

pub(super) type Rule = fn(&Value, Timestamp) -> Health;

const RULES: &[(&str, &str, Rule)] = &[
    ("", "ConfigMap", always),
    ("", "PersistentVolumeClaim", claim),
    ("", "Pod", pod),
    ("", "Secret", always),
    ("", "Service", service),
    ("apiextensions.k8s.io", "CustomResourceDefinition", definition),
    ("apps", "DaemonSet", daemon_set),
    ("apps", "Deployment", deployment),
    ("apps", "ReplicaSet", replica_set),
    ("apps", "StatefulSet", stateful_set),
    ("batch", "CronJob", always),
    ("batch", "Job", job),
    ("policy", "PodDisruptionBudget", always),
];

/// The rule of a kind that has one of its own.
pub(super) fn rule(group: &str, kind: &str) -> Option<Rule> {
    RULES.iter().find(|row| (row.0, row.1) == (group, kind)).map(|row| row.2)
}

/// How long a pod may wait for a node before it counts as failed.
const SCHEDULED_WITHIN: Duration = Duration::from_secs(15);

/// Either it is as it declares once it is there, or the generation that was observed says it all.
fn always(_: &Value, _: Timestamp) -> Health {
    Health::current("it is there")
}

/// Counts that must be reached: how many of `wanted` there are at each, and what they are called; the first that falls
/// short is told.
fn short_of(wanted: i64, counts: &[(i64, &'static str, &str)]) -> Option<Health> {
    let (have, reason, what) = counts.iter().find(|(have, _, _)| *have < wanted)?;
    Some(Health::in_progress(*reason, format!("{have} of {wanted} {what}")))
}

/// More than wanted: some are still to go.
fn too_many(wanted: i64, have: i64) -> Option<Health> {
    (have > wanted).then(|| Health::in_progress("ExtraPods", format!("{} to be removed", have - wanted)))
}

fn replicas(object: &Value) -> i64 {
    number(object, "/spec/replicas").unwrap_or(1)
}

fn counted(object: &Value, field: &str) -> i64 {
    number(object, &format!("/status/{field}")).unwrap_or_default()
}

fn deployment(object: &Value, _: Timestamp) -> Health {
    // Without a deadline, or with the greatest, nobody says whether it progresses.
    let deadline =
        number(object, "/spec/progressDeadlineSeconds").filter(|seconds| *seconds < i32::MAX.into());
    let (mut progressing, mut available) = (deadline.is_none(), false);
    for condition in conditions(object) {
        match condition.of {
            "Progressing" if condition.reason == "ProgressDeadlineExceeded" => {
                return Health::failed("ProgressDeadlineExceeded", "no progress within its deadline");
            }
            "Progressing" if condition.is("True") && condition.reason == "NewReplicaSetAvailable" => {
                progressing = true;
            }
            "Available" => available = condition.is("True"),
            _ => {}
        }
    }
    let wanted = replicas(object);
    let (there, updated) = (counted(object, "replicas"), counted(object, "updatedReplicas"));
    short_of(wanted, &[(there, "LessReplicas", "there"), (updated, "LessUpdated", "updated")])
        .or_else(|| too_many(wanted, there))
        .or_else(|| {
            short_of(updated, &[(counted(object, "availableReplicas"), "LessAvailable", "available")])
        })
        .or_else(|| short_of(wanted, &[(counted(object, "readyReplicas"), "LessReady", "ready")]))
        .or_else(|| {
            (!progressing)
                .then(|| Health::in_progress("ReplicaSetNotAvailable", "its replica set is not available"))
        })
        .or_else(|| {
            (!available).then(|| Health::in_progress("DeploymentNotAvailable", "it is not available"))
        })
        .unwrap_or_else(|| Health::current(format!("{there} available")))
}

fn replica_set(object: &Value, _: Timestamp) -> Health {
    if conditions(object).any(|condition| condition.of == "ReplicaFailure" && condition.is("True")) {
        return Health::in_progress("ReplicaFailure", "a pod could not be made or removed");
    }
    let (wanted, there) = (replicas(object), counted(object, "replicas"));
    let counts = [
        (counted(object, "fullyLabeledReplicas"), "LessLabelled", "labelled"),
        (counted(object, "availableReplicas"), "LessAvailable", "available"),
        (counted(object, "readyReplicas"), "LessReady", "ready"),
    ];
    short_of(wanted, &counts)
        .or_else(|| too_many(wanted, there))
        .unwrap_or_else(|| Health::current(format!("{there} available")))
}

fn stateful_set(object: &Value, _: Timestamp) -> Health {
    if text(object, "/spec/updateStrategy/type") == Some("OnDelete") {
        return Health::current("it is updated by hand");
    }
    let (wanted, there) = (replicas(object), counted(object, "replicas"));
    let updated = counted(object, "updatedReplicas");
    let counts = [(there, "LessReplicas", "there"), (counted(object, "readyReplicas"), "LessReady", "ready")];
    if let Some(short) = short_of(wanted, &counts).or_else(|| too_many(wanted, there)) {
        return short;
    }
    if let Some(partition) = number(object, "/spec/updateStrategy/rollingUpdate/partition") {
        return short_of(wanted - partition, &[(updated, "PartitionRollout", "updated")])
            .unwrap_or_else(|| Health::current(format!("{updated} updated, up to the partition")));
    }
    if let Some(short) = short_of(wanted, &[(counted(object, "currentReplicas"), "LessCurrent", "current")]) {
        return short;
    }
    if text(object, "/status/currentRevision") != text(object, "/status/updateRevision") {
        return Health::in_progress("RevisionMismatch", "another revision is being rolled out");
    }
    Health::current(format!("{there} ready"))
}

fn daemon_set(object: &Value, _: Timestamp) -> Health {
    for (pointer, reason) in
        [("/metadata/generation", "NoGeneration"), ("/status/observedGeneration", "NoObservedGeneration")]
    {
        if number(object, pointer).is_none() {
            return Health::in_progress(reason, "nobody has looked at it yet");
        }
    }
    let Some(wanted) = number(object, "/status/desiredNumberScheduled") else {
        return Health::in_progress("NoDesiredNumber", "nobody knows yet how many there should be");
    };
    let counts = [
        (counted(object, "currentNumberScheduled"), "LessCurrent", "scheduled"),
        (counted(object, "updatedNumberScheduled"), "LessUpdated", "updated"),
        (counted(object, "numberAvailable"), "LessAvailable", "available"),
        (counted(object, "numberReady"), "LessReady", "ready"),
    ];
    short_of(wanted, &counts).unwrap_or_else(|| Health::current(format!("{wanted} ready")))
}

fn claim(object: &Value, _: Timestamp) -> Health {
    match text(object, "/status/phase") {
        Some("Bound") => Health::current("it is bound"),
        phase => Health::in_progress("NotBound", format!("it is {}, and not bound", phase.unwrap_or("new"))),
    }
}

fn pod(object: &Value, now: Timestamp) -> Health {
    match text(object, "/status/phase") {
        Some("Succeeded") => Health::current("it has ended well"),
        // Nothing more will come of it: whether that is bad is for its owner to say.
        Some("Failed") => Health::current("it has ended, and not well"),
        Some("Running") => running_pod(object),
        Some("Pending") => pending_pod(object, now),
        None => Health::in_progress("PodNotObserved", "nobody has looked at it yet"),
        Some(phase) => Health::new(super::State::Unknown, "UnknownPhase", format!("its phase is {phase}")),
    }
}

fn running_pod(object: &Value) -> Health {
    if conditions(object).any(|condition| condition.of == "Ready" && condition.is("True")) {
        return Health::current("it is ready");
    }
    let containers = object.pointer("/status/containerStatuses").and_then(Value::as_array);
    let crashing: Vec<&str> = containers
        .into_iter()
        .flatten()
        .filter(|container| text(container, "/state/waiting/reason") == Some("CrashLoopBackOff"))
        .filter_map(|container| text(container, "/name"))
        .collect();
    if crashing.is_empty() {
        return Health::in_progress("PodRunningNotReady", "it runs, and is not ready");
    }
    Health::failed("ContainerCrashLooping", format!("crashing again and again: {}", crashing.join(", ")))
}

fn pending_pod(object: &Value, now: Timestamp) -> Health {
    let nowhere = conditions(object)
        .any(|said| said.of == "PodScheduled" && said.is("False") && said.reason == "Unschedulable");
    if !nowhere {
        return Health::in_progress("PodPending", "it is pending");
    }
    let made: Option<Timestamp> = text(object, "/metadata/creationTimestamp").and_then(|at| at.parse().ok());
    let age = made.and_then(|made| Duration::try_from(now.duration_since(made)).ok()).unwrap_or_default();
    match age < SCHEDULED_WITHIN {
        true => Health::in_progress("PodNotScheduled", "no node takes it yet"),
        false => Health::failed("PodUnschedulable", "no node takes it"),
    }
}

fn job(object: &Value, _: Timestamp) -> Health {
    let wanted = number(object, "/spec/completions").or_else(|| number(object, "/spec/parallelism"));
    let wanted = wanted.unwrap_or(1);
    let (done, failed) = (counted(object, "succeeded"), counted(object, "failed"));
    for condition in conditions(object).filter(|condition| condition.is("True")) {
        match condition.of {
            "Complete" => return Health::current(format!("{done} of {wanted} done")),
            "Failed" => return Health::failed("JobFailed", format!("{failed} of {wanted} failed")),
            "Suspended" => return Health::current("it is suspended"),
            _ => {}
        }
    }
    match text(object, "/status/startTime") {
        None => Health::in_progress("JobNotStarted", "it has not started"),
        // It is what a job declares: to run.
        Some(_) => Health::current(format!("it runs: {done} of {wanted} done")),
    }
}

fn service(object: &Value, _: Timestamp) -> Health {
    let balanced = text(object, "/spec/type") == Some("LoadBalancer");
    match balanced && text(object, "/spec/clusterIP").is_none() {
        true => Health::in_progress("NoIPAssigned", "it has no address yet"),
        false => Health::current("it is there"),
    }
}

fn definition(object: &Value, _: Timestamp) -> Health {
    for condition in conditions(object) {
        match condition.of {
            "NamesAccepted" if condition.is("False") => {
                return Health::failed(condition.reason(), condition.message);
            }
            "Established" if condition.is("True") => return Health::current("it is served"),
            "Established" if condition.is("False") && condition.reason != "Installing" => {
                return Health::failed(condition.reason(), condition.message);
            }
            _ => {}
        }
    }
    Health::in_progress("Installing", "it is not served yet")
}

#[cfg(test)]
#[path = "kinds_tests.rs"]
mod tests;
