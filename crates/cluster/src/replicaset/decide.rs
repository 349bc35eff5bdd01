//! What a set of replicas lacks or has too many of, and what its status should say.

use super::replicated::{Condition, Replicated, Told};
use crate::pods;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;
use std::time::Duration;

/// The condition of a set that cannot make or end its pods.
pub(super) const FAILURE: &str = "ReplicaFailure";

/// What is to be done about the number of pods.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create(usize),
    Delete(usize),
    Nothing,
}

/// What is to be done, given the pods that count.
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

/// Why the number of pods could not be brought to what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// What the status should say about pods that are the set's own, ended or not.
pub(super) fn told<K: Replicated>(
    set: &K,
    mine: &[Arc<Pod>],
    trouble: Option<&Trouble>,
    now: Timestamp,
) -> Told {
    let min_ready = set.min_ready_seconds();
    let labels = set.template().and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let fully_labeled = |pod: &Pod| {
        let own = pod.metadata.labels.as_ref();
        labels.into_iter().flatten().all(|(key, value)| own.and_then(|own| own.get(key)) == Some(value))
    };
    let mut told = Told {
        observed_generation: set.meta().generation,
        conditions: set.told().conditions,
        terminating: K::TELLS_TERMINATING.then_some(0),
        ..Told::default()
    };
    for pod in mine.iter().filter(|pod| !pods::has_ended(pod)) {
        if pods::is_going(pod) {
            told.terminating = told.terminating.map(|count| count + 1);
            continue;
        }
        told.replicas += 1;
        told.fully_labeled += i32::from(fully_labeled(pod));
        told.ready += i32::from(pods::is_ready(pod));
        told.available += i32::from(pods::is_available(pod, min_ready, now));
    }
    let failing = told.conditions.iter().any(|condition| condition.of == FAILURE);
    match trouble {
        // What it said first stays: the same trouble in other words is no news.
        Some(_) if failing => {}
        Some(trouble) => told.conditions.push(Condition {
            of: FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(trouble.reason.to_owned()),
            message: Some(trouble.message.clone()),
            since: Some(Time(pods::whole_seconds(now))),
        }),
        None => told.conditions.retain(|condition| condition.of != FAILURE),
    }
    told
}

/// In how long the next ready pod becomes available, if one is on its way to be.
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
        let mut going = set(3);
        going.metadata.deletion_timestamp = Some(Time(now()));
        assert_eq!(step(&going, 0), Step::Nothing);
    }

    #[test]
    fn pods_are_counted_by_how_they_fare() {
        let both = json!({ "app": "web", "tier": "front" });
        let mut going = (*pod(both.clone(), None)).clone();
        going.metadata.deletion_timestamp = Some(Time(now()));
        let mine = [
            pod(both.clone(), Some("2026-01-01T00:00:00Z")),
            pod(both, Some("2026-01-01T00:00:55Z")),
            pod(json!({ "app": "web" }), None),
            Arc::new(going),
        ];
        let told = told(&set(3), &mine, None, now());
        let counts = (told.replicas, told.fully_labeled, told.ready, told.available, told.terminating);
        assert_eq!(counts, (3, 2, 2, 1, Some(1)));
        assert_eq!(told.observed_generation, Some(3));
        assert_eq!(until_available(&mine, 10, now()), Some(Duration::from_secs(5)));
    }

    #[test]
    fn trouble_shows_until_it_is_over() {
        let trouble = Trouble { reason: "FailedCreate", message: "quota".into() };
        let first = told(&set(1), &[], Some(&trouble), now());
        assert_eq!(first.conditions[0].reason.as_deref(), Some("FailedCreate"));
        let failing = set(1).telling(first.clone());
        let later = Trouble { message: "other words".into(), ..trouble };
        assert_eq!(told(&failing, &[], Some(&later), now()), first, "the first words stay");
        assert!(told(&failing, &[], None, now()).conditions.is_empty());
    }
}
