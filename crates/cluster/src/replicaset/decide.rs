//! How many pods to create or delete for a ReplicaSet, and what its status should be.

use super::replicated::{Condition, Replicated, Status};
use crate::pods;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;
use std::time::Duration;

/// The condition of a set that cannot create or delete its pods.
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// What to do about the number of pods.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create(usize),
    Delete(usize),
    Nothing,
}

/// What to do, given the number of active pods.
pub(super) fn step<K: Replicated>(set: &K, active: usize) -> Step {
    if set.meta().deletion_timestamp.is_some() {
        return Step::Nothing;
    }
    match set.wanted() {
        wanted if wanted > active => Step::Create(wanted - active),
        wanted if wanted < active => Step::Delete(active - wanted),
        _ => Step::Nothing,
    }
}

/// Why pods could not be created or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The status of a set with these pods.
pub(super) fn status<K: Replicated>(
    set: &K,
    mine: &[Arc<Pod>],
    failure: Option<&Failure>,
    now: Timestamp,
) -> Status {
    let min_ready = set.min_ready_seconds();
    let labels = set.template().and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let fully_labeled = |pod: &Pod| {
        let own = pod.metadata.labels.as_ref();
        labels.into_iter().flatten().all(|(key, value)| own.and_then(|own| own.get(key)) == Some(value))
    };
    let mut status = Status {
        observed_generation: set.meta().generation,
        conditions: set.status().conditions,
        terminating: K::REPORTS_TERMINATING.then_some(0),
        ..Status::default()
    };
    for pod in mine.iter().filter(|pod| !pods::has_ended(pod)) {
        if pods::is_terminating(pod) {
            status.terminating = status.terminating.map(|count| count + 1);
            continue;
        }
        status.replicas += 1;
        status.fully_labeled += i32::from(fully_labeled(pod));
        status.ready += i32::from(pods::is_ready(pod));
        status.available += i32::from(pods::is_available(pod, min_ready, now));
    }
    let failing = status.conditions.iter().any(|condition| condition.of == REPLICA_FAILURE);
    match failure {
        // The first message stays: the same failure in other words is no change.
        Some(_) if failing => {}
        Some(failure) => status.conditions.push(Condition {
            of: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(failure.reason.to_owned()),
            message: Some(failure.message.clone()),
            since: Some(Time(pods::whole_seconds(now))),
        }),
        None => status.conditions.retain(|condition| condition.of != REPLICA_FAILURE),
    }
    status
}

/// How long until the next ready pod becomes available.
pub(super) fn until_available(mine: &[Arc<Pod>], min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
    if min_ready_seconds == 0 {
        return None;
    }
    let active = mine.iter().filter(|pod| pods::is_active(pod));
    let at =
        active.filter_map(|pod| pods::available_at(pod, min_ready_seconds)).filter(|at| *at > now).min()?;
    Duration::try_from(at.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use serde_json::{Value, json};

    fn set(replicas: i32) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": { "name": "web", "generation": 3 },
            "spec": {
                "replicas": replicas, "minReadySeconds": 10,
                "selector": { "matchLabels": { "app": "web" } },
                "template": { "metadata": { "labels": { "app": "web", "tier": "front" } } },
            },
        }))
        .unwrap()
    }

    fn pod(labels: Value, ready_at: Option<&str>) -> Arc<Pod> {
        let conditions =
            ready_at.map(|at| json!([{ "type": "Ready", "status": "True", "lastTransitionTime": at }]));
        Arc::new(
            serde_json::from_value(json!({
                "metadata": { "labels": labels },
                "status": { "phase": "Running", "conditions": conditions },
            }))
            .unwrap(),
        )
    }

    fn now() -> Timestamp {
        "2026-01-01T00:01:00Z".parse().unwrap()
    }

    #[test]
    fn the_number_decides() {
        assert_eq!(step(&set(3), 1), Step::Create(2));
        assert_eq!(step(&set(3), 5), Step::Delete(2));
        assert_eq!(step(&set(3), 3), Step::Nothing);
        let mut terminating = set(3);
        terminating.metadata.deletion_timestamp = Some(Time(now()));
        assert_eq!(step(&terminating, 0), Step::Nothing);
    }

    #[test]
    fn pods_are_counted_by_how_they_fare() {
        let both = json!({ "app": "web", "tier": "front" });
        let mut terminating = (*pod(both.clone(), None)).clone();
        terminating.metadata.deletion_timestamp = Some(Time(now()));
        let mine = [
            pod(both.clone(), Some("2026-01-01T00:00:00Z")),
            pod(both, Some("2026-01-01T00:00:55Z")),
            pod(json!({ "app": "web" }), None),
            Arc::new(terminating),
        ];
        let status = status(&set(3), &mine, None, now());
        let counts =
            (status.replicas, status.fully_labeled, status.ready, status.available, status.terminating);
        assert_eq!(counts, (3, 2, 2, 1, Some(1)));
        assert_eq!(status.observed_generation, Some(3));
        assert_eq!(until_available(&mine, 10, now()), Some(Duration::from_secs(5)));
    }

    #[test]
    fn trouble_shows_until_it_is_over() {
        let failure = Failure { reason: "FailedCreate", message: "quota".into() };
        let first = status(&set(1), &[], Some(&failure), now());
        assert_eq!(first.conditions[0].reason.as_deref(), Some("FailedCreate"));
        let failing = set(1).with_status(first.clone());
        let later = Failure { message: "other words".into(), ..failure };
        assert_eq!(status(&failing, &[], Some(&later), now()), first, "the first words stay");
        assert!(status(&failing, &[], None, now()).conditions.is_empty());
    }
}
