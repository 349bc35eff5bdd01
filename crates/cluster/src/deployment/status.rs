//! The status of a Deployment: replica counts and the conditions Available, Progressing and ReplicaFailure.

use super::replica_sets::{Rollout, status};
use crate::pods::whole_seconds;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;
use std::time::Duration;

pub(super) const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The reasons of the conditions.
pub(super) mod reasons {
    pub(crate) const CREATED: &str = "NewReplicaSetCreated";
    pub(crate) const FOUND: &str = "FoundNewReplicaSet";
    pub(crate) const NOT_CREATED: &str = "ReplicaSetCreateError";
    pub(crate) const UPDATED: &str = "ReplicaSetUpdated";
    pub(crate) const COMPLETE: &str = "NewReplicaSetAvailable";
    pub(crate) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
    pub(crate) const PAUSED: &str = "DeploymentPaused";
    pub(crate) const RESUMED: &str = "DeploymentResumed";
    pub(crate) const ENOUGH: &str = "MinimumReplicasAvailable";
    pub(crate) const TOO_FEW: &str = "MinimumReplicasUnavailable";
}

pub(super) fn condition<'a>(status: &'a DeploymentStatus, of: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == of)
}

pub(super) fn new_condition(
    of: &str,
    holds: &str,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
) -> DeploymentCondition {
    let now = Some(Time(whole_seconds(now)));
    DeploymentCondition {
        type_: of.to_owned(),
        status: holds.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.into()),
        last_update_time: now.clone(),
        last_transition_time: now,
    }
}

/// Sets a condition, unless it is unchanged.
pub(super) fn set(status: &mut DeploymentStatus, mut new: DeploymentCondition) {
    if let Some(old) = condition(status, &new.type_) {
        if old.status == new.status && old.reason == new.reason {
            return;
        }
        if old.status == new.status {
            new.last_transition_time = old.last_transition_time.clone();
        }
    }
    remove(status, &new.type_);
    status.conditions.get_or_insert_default().push(new);
}

pub(super) fn remove(status: &mut DeploymentStatus, of: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != of);
    }
    if status.conditions.as_ref().is_some_and(Vec::is_empty) {
        status.conditions = None;
    }
}

/// The replica counts, and the condition Available.
pub(super) fn calculate_status(
    rollout: &Rollout<'_>,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
    now: Timestamp,
) -> DeploymentStatus {
    let all = || old.iter().chain(new);
    let sum = |of: fn(&ReplicaSet) -> i32| all().map(|set| of(set)).sum::<i32>();
    let available = sum(super::replica_sets::available);
    // Zeros are omitted, as they are stored.
    let some = |number: i32| (number != 0).then_some(number);
    let old_status = rollout.deployment.status.as_ref();
    let mut next = DeploymentStatus {
        observed_generation: rollout.deployment.metadata.generation,
        replicas: some(sum(|set| status(set).replicas)),
        updated_replicas: some(new.map_or(0, |set| status(set).replicas)),
        ready_replicas: some(sum(|set| status(set).ready_replicas.unwrap_or_default())),
        available_replicas: some(available),
        unavailable_replicas: some((sum(super::replica_sets::size) - available).max(0)),
        terminating_replicas: terminating(all()),
        collision_count: old_status.and_then(|old_status| old_status.collision_count),
        conditions: old_status.and_then(|old_status| old_status.conditions.clone()),
    };
    let (holds, reason, message) = match available >= rollout.min_available() {
        true => ("True", reasons::ENOUGH, "Deployment has minimum availability."),
        false => ("False", reasons::TOO_FEW, "Deployment does not have minimum availability."),
    };
    set(&mut next, new_condition(AVAILABLE, holds, reason, message, now));
    next
}

/// The sum over all ReplicaSets; unknown if one does not report it.
fn terminating<'a>(sets: impl Iterator<Item = &'a Arc<ReplicaSet>>) -> Option<i32> {
    let mut all = 0;
    for set in sets {
        let status = status(set);
        match status.terminating_replicas {
            Some(terminating) => all += terminating,
            None if status.observed_generation.unwrap_or_default() == 0 => {}
            None => return None,
        }
    }
    Some(all)
}

/// Whether the rollout is complete, by this status.
pub(super) fn is_complete(rollout: &Rollout<'_>, status: &DeploymentStatus) -> bool {
    let is = |number: Option<i32>| number.unwrap_or_default() == rollout.wanted;
    is(status.updated_replicas)
        && is(status.replicas)
        && is(status.available_replicas)
        && status.observed_generation >= rollout.deployment.metadata.generation
}

/// The status during a rollout: counts, progress, and failures of the ReplicaSets.
pub(super) fn rollout_status(
    rollout: &Rollout<'_>,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
    now: Timestamp,
) -> DeploymentStatus {
    let mut next = calculate_status(rollout, new, old, now);
    if rollout.deadline.is_some() {
        update_progressing(rollout, new, &mut next, now);
    } else {
        remove(&mut next, PROGRESSING);
    }
    let failure = new.into_iter().chain(old).find_map(|set| {
        status(set).conditions.iter().flatten().find(|condition| condition.type_ == REPLICA_FAILURE)
    });
    match failure {
        Some(failure) => {
            let failure = DeploymentCondition {
                type_: REPLICA_FAILURE.to_owned(),
                status: failure.status.clone(),
                reason: failure.reason.clone(),
                message: failure.message.clone(),
                last_update_time: failure.last_transition_time.clone(),
                last_transition_time: failure.last_transition_time.clone(),
            };
            set(&mut next, failure);
        }
        None => remove(&mut next, REPLICA_FAILURE),
    }
    next
}

fn update_progressing(
    rollout: &Rollout<'_>,
    new: Option<&Arc<ReplicaSet>>,
    next: &mut DeploymentStatus,
    now: Timestamp,
) {
    let before = rollout.deployment.status.clone().unwrap_or_default();
    let current = condition(&before, PROGRESSING);
    let was_complete =
        current.is_some_and(|condition| condition.reason.as_deref() == Some(reasons::COMPLETE));
    if was_complete && next.replicas == next.updated_replicas {
        return;
    }
    let who = match new {
        Some(set) => format!("ReplicaSet \"{}\"", super::replica_sets::name(set)),
        None => format!("Deployment \"{}\"", rollout.deployment.metadata.name.as_deref().unwrap_or_default()),
    };
    if is_complete(rollout, next) {
        let message = format!("{who} has successfully progressed.");
        set(next, new_condition(PROGRESSING, "True", reasons::COMPLETE, message, now));
    } else if is_progressing(&before, next) {
        let message = format!("{who} is progressing.");
        let mut condition = new_condition(PROGRESSING, "True", reasons::UPDATED, message, now);
        // Updated with a new time: the deadline counts from the last progress.
        if let Some(current) = current.filter(|current| current.status == "True") {
            condition.last_transition_time = current.last_transition_time.clone();
        }
        remove(next, PROGRESSING);
        set(next, condition);
    } else if timed_out(rollout, next, now) {
        let message = format!("{who} has timed out progressing.");
        set(next, new_condition(PROGRESSING, "False", reasons::TIMED_OUT, message, now));
    }
}

/// Whether there are more new, ready or available pods than before, or fewer old ones.
fn is_progressing(before: &DeploymentStatus, next: &DeploymentStatus) -> bool {
    let number = |number: Option<i32>| number.unwrap_or_default();
    let old = |status: &DeploymentStatus| number(status.replicas) - number(status.updated_replicas);
    number(next.updated_replicas) > number(before.updated_replicas)
        || old(next) < old(before)
        || number(next.ready_replicas) > number(before.ready_replicas)
        || number(next.available_replicas) > number(before.available_replicas)
}

fn timed_out(rollout: &Rollout<'_>, status: &DeploymentStatus, now: Timestamp) -> bool {
    let Some(condition) = condition(status, PROGRESSING) else { return false };
    match condition.reason.as_deref() {
        Some(reasons::COMPLETE) => false,
        Some(reasons::TIMED_OUT) => true,
        _ => deadline(rollout, condition).is_some_and(|deadline| deadline < now),
    }
}

fn deadline(rollout: &Rollout<'_>, condition: &DeploymentCondition) -> Option<Timestamp> {
    let seconds = SignedDuration::from_secs(rollout.deadline?.into());
    condition.last_update_time.as_ref()?.0.checked_add(seconds).ok()
}

/// How long until the progress deadline passes.
pub(super) fn until_deadline(
    rollout: &Rollout<'_>,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let condition = condition(status, PROGRESSING)?;
    if is_complete(rollout, status) || condition.reason.as_deref() == Some(reasons::TIMED_OUT) {
        return None;
    }
    let left = deadline(rollout, condition)?.duration_since(now);
    // Just past it.
    Some(Duration::try_from(left).unwrap_or_default() + Duration::from_millis(10))
}
