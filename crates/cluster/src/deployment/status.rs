//! What a Deployment's status says: its pods in numbers, whether enough are available, and whether the rollout gets on.

use super::replica_sets::{Asked, status};
use crate::pods::whole_seconds;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;
use std::time::Duration;

pub(super) const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Why a rollout stands as it does.
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

/// Puts a condition in its place, unless it says what is said already.
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

/// The numbers, and whether enough pods are available.
pub(super) fn counted(
    asked: &Asked<'_>,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
    now: Timestamp,
) -> DeploymentStatus {
    let all = || old.iter().chain(new);
    let sum = |of: fn(&ReplicaSet) -> i32| all().map(|set| of(set)).sum::<i32>();
    let available = sum(super::replica_sets::available);
    // Left out where they are zero, as they are stored.
    let some = |number: i32| (number != 0).then_some(number);
    let told = asked.deployment.status.as_ref();
    let mut next = DeploymentStatus {
        observed_generation: asked.deployment.metadata.generation,
        replicas: some(sum(|set| status(set).replicas)),
        updated_replicas: some(new.map_or(0, |set| status(set).replicas)),
        ready_replicas: some(sum(|set| status(set).ready_replicas.unwrap_or_default())),
        available_replicas: some(available),
        unavailable_replicas: some((sum(super::replica_sets::size) - available).max(0)),
        terminating_replicas: terminating(all()),
        collision_count: told.and_then(|told| told.collision_count),
        conditions: told.and_then(|told| told.conditions.clone()),
    };
    let (holds, reason, message) = match available >= asked.fewest() {
        true => ("True", reasons::ENOUGH, "Deployment has minimum availability."),
        false => ("False", reasons::TOO_FEW, "Deployment does not have minimum availability."),
    };
    set(&mut next, new_condition(AVAILABLE, holds, reason, message, now));
    next
}

/// The sum over all sets; unknown if one that was counted does not tell.
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

/// Whether everything is as declared, by this status.
pub(super) fn is_complete(asked: &Asked<'_>, status: &DeploymentStatus) -> bool {
    let is = |number: Option<i32>| number.unwrap_or_default() == asked.wanted;
    is(status.updated_replicas)
        && is(status.replicas)
        && is(status.available_replicas)
        && status.observed_generation >= asked.deployment.metadata.generation
}

/// The status in a rollout: the numbers, how it gets on, and what the sets have trouble with.
pub(super) fn of_rollout(
    asked: &Asked<'_>,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
    now: Timestamp,
) -> DeploymentStatus {
    let mut next = counted(asked, new, old, now);
    if asked.deadline.is_some() {
        progress(asked, new, &mut next, now);
    } else {
        remove(&mut next, PROGRESSING);
    }
    let trouble = new.into_iter().chain(old).find_map(|set| {
        status(set).conditions.iter().flatten().find(|condition| condition.type_ == REPLICA_FAILURE)
    });
    match trouble {
        Some(trouble) => {
            let failure = DeploymentCondition {
                type_: REPLICA_FAILURE.to_owned(),
                status: trouble.status.clone(),
                reason: trouble.reason.clone(),
                message: trouble.message.clone(),
                last_update_time: trouble.last_transition_time.clone(),
                last_transition_time: trouble.last_transition_time.clone(),
            };
            set(&mut next, failure);
        }
        None => remove(&mut next, REPLICA_FAILURE),
    }
    next
}

fn progress(asked: &Asked<'_>, new: Option<&Arc<ReplicaSet>>, next: &mut DeploymentStatus, now: Timestamp) {
    let before = asked.deployment.status.clone().unwrap_or_default();
    let current = condition(&before, PROGRESSING);
    let was_complete =
        current.is_some_and(|condition| condition.reason.as_deref() == Some(reasons::COMPLETE));
    if was_complete && next.replicas == next.updated_replicas {
        return;
    }
    let who = match new {
        Some(set) => format!("ReplicaSet \"{}\"", super::replica_sets::name(set)),
        None => format!("Deployment \"{}\"", asked.deployment.metadata.name.as_deref().unwrap_or_default()),
    };
    if is_complete(asked, next) {
        let message = format!("{who} has successfully progressed.");
        set(next, new_condition(PROGRESSING, "True", reasons::COMPLETE, message, now));
    } else if gets_on(&before, next) {
        let message = format!("{who} is progressing.");
        let mut condition = new_condition(PROGRESSING, "True", reasons::UPDATED, message, now);
        // Said again with another time: the deadline counts from the last progress.
        if let Some(current) = current.filter(|current| current.status == "True") {
            condition.last_transition_time = current.last_transition_time.clone();
        }
        remove(next, PROGRESSING);
        set(next, condition);
    } else if timed_out(asked, next, now) {
        let message = format!("{who} has timed out progressing.");
        set(next, new_condition(PROGRESSING, "False", reasons::TIMED_OUT, message, now));
    }
}

/// Whether there are more new, ready or available pods than before, or fewer old ones.
fn gets_on(before: &DeploymentStatus, next: &DeploymentStatus) -> bool {
    let number = |number: Option<i32>| number.unwrap_or_default();
    let old = |status: &DeploymentStatus| number(status.replicas) - number(status.updated_replicas);
    number(next.updated_replicas) > number(before.updated_replicas)
        || old(next) < old(before)
        || number(next.ready_replicas) > number(before.ready_replicas)
        || number(next.available_replicas) > number(before.available_replicas)
}

fn timed_out(asked: &Asked<'_>, status: &DeploymentStatus, now: Timestamp) -> bool {
    let Some(condition) = condition(status, PROGRESSING) else { return false };
    match condition.reason.as_deref() {
        Some(reasons::COMPLETE) => false,
        Some(reasons::TIMED_OUT) => true,
        _ => deadline(asked, condition).is_some_and(|deadline| deadline < now),
    }
}

fn deadline(asked: &Asked<'_>, condition: &DeploymentCondition) -> Option<Timestamp> {
    let seconds = SignedDuration::from_secs(asked.deadline?.into());
    condition.last_update_time.as_ref()?.0.checked_add(seconds).ok()
}

/// In how long it is to be looked at again, because it may have got stuck.
pub(super) fn until_deadline(
    asked: &Asked<'_>,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let condition = condition(status, PROGRESSING)?;
    if is_complete(asked, status) || condition.reason.as_deref() == Some(reasons::TIMED_OUT) {
        return None;
    }
    let left = deadline(asked, condition)?.duration_since(now);
    // Just past it.
    Some(Duration::try_from(left).unwrap_or_default() + Duration::from_millis(10))
}
