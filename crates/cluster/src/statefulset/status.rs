//! The status of a StatefulSet.

use super::identity::{Set, revision};
use crate::pods;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSetStatus;
use k8s_openapi::api::core::v1::Pod;
use std::sync::Arc;

/// The status of these pods. Conditions of others are kept.
pub(super) fn status(
    set: &Set,
    old: Option<&StatefulSetStatus>,
    all: &[(i64, Arc<Pod>)],
    (current, update): (&str, &str),
    collisions: i32,
    now: Timestamp,
) -> StatefulSetStatus {
    let created = || all.iter().map(|(_, pod)| &**pod).filter(|pod| !pods::phase(pod).is_empty());
    let count = |holds: &dyn Fn(&Pod) -> bool| {
        i32::try_from(created().filter(|pod| holds(pod)).count()).unwrap_or(i32::MAX)
    };
    let ready = |pod: &Pod| pods::phase(pod) == "Running" && pods::is_ready(pod);
    let of = |name: &str, pod: &Pod| !pods::is_terminating(pod) && revision(pod) == Some(name);
    let mut status = StatefulSetStatus {
        observed_generation: set.meta.generation,
        replicas: count(&|_| true),
        ready_replicas: Some(count(&ready)),
        available_replicas: Some(count(&|pod| {
            ready(pod) && pods::is_available(pod, set.min_ready_seconds, now)
        })),
        current_replicas: Some(count(&|pod| of(current, pod))),
        updated_replicas: Some(count(&|pod| of(update, pod))),
        current_revision: Some(current.to_owned()),
        update_revision: Some(update.to_owned()),
        collision_count: Some(collisions),
        conditions: old.and_then(|old| old.conditions.clone()),
    };
    let strategy = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    let all_of_it = |count: Option<i32>| count.map(i64::from) == Some(set.replicas);
    if strategy != Some("OnDelete")
        && all_of_it(status.updated_replicas)
        && all_of_it(status.ready_replicas)
        && all_of_it(Some(status.replicas))
    {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
    // Zeros are omitted, as in the API, so that the status can be compared with the stored one.
    for count in [&mut status.ready_replicas, &mut status.current_replicas, &mut status.updated_replicas] {
        *count = count.filter(|count| *count != 0);
    }
    status
}

/// When the next ready pod becomes available, if that takes time.
pub(super) fn next_available(set: &Set, all: &[(i64, Arc<Pod>)], now: Timestamp) -> Option<Timestamp> {
    let at = all.iter().filter_map(|(_, pod)| pods::available_at(pod, set.min_ready_seconds));
    at.filter(|at| *at > now).min()
}
