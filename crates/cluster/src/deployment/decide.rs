//! The next step of a Deployment, given its ReplicaSets.

use super::replica_sets::{
    DESIRED_REPLICAS, HASH_LABEL, MAX_REPLICAS, REVISION, Rollout, annotated_number, annotation,
    find_new_and_old, name, new_annotations, revision, size, sized,
};
use super::scale::{is_empty, new_replicas, next_new_replicas, scale_down_old, scale_proportionally};
use super::status::{
    self, PROGRESSING, calculate_status, condition, is_complete, new_condition, reasons, rollout_status,
    until_deadline,
};
use crate::history;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DeploymentStatus, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::sync::Arc;
use std::time::Duration;

/// The longest name that an object may have.
const MAX_NAME_LENGTH: usize = 253;

/// One step of a rollout: all its writes are valid at the same time.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Create the ReplicaSet of a new template.
    Create(Box<ReplicaSet>),
    /// Update these ReplicaSets; each with its former size.
    Update(Vec<(i32, ReplicaSet)>),
    /// Delete old ReplicaSets beyond the revision history limit.
    Delete(Vec<Arc<ReplicaSet>>),
    /// Update the status, and the revision of the Deployment.
    UpdateStatus(Box<DeploymentStatus>, Option<String>),
    /// Nothing to do; reconcile again after this time, when the progress deadline passes.
    Done(Option<Duration>),
}

/// The next step. `runs` says whether a ReplicaSet still has running pods.
pub(super) fn step(
    rollout: &Rollout<'_>,
    sets: Vec<Arc<ReplicaSet>>,
    owner: OwnerReference,
    runs: impl Fn(&ReplicaSet) -> bool,
    now: Timestamp,
) -> Step {
    let (new, old) = find_new_and_old(rollout.spec, sets);
    let new = new.as_ref();
    if rollout.deployment.metadata.deletion_timestamp.is_some() {
        return update_status(rollout, new, calculate_status(rollout, new, &old, now), now);
    }
    if let Some(status) = paused_or_resumed(rollout, now) {
        return Step::UpdateStatus(Box::new(status), None);
    }
    if let Some(step) = new.and_then(|new| sync_new_replica_set(rollout, new, &old, now)) {
        return step;
    }
    let paused = rollout.spec.paused == Some(true);
    if paused || is_scaling_event(rollout, new, &old) {
        let old_status = rollout.deployment.status.as_ref();
        let sizes = scale_proportionally(rollout, old_status, new, &old);
        let cleaned = || if paused { clean_up(rollout, &old) } else { None };
        return resize(rollout, sizes)
            .or_else(cleaned)
            .unwrap_or_else(|| update_status(rollout, new, calculate_status(rollout, new, &old, now), now));
    }
    let next = match rollout.rolling {
        true => rolling_update(rollout, new, &old, owner),
        false => recreate(rollout, new, &old, owner, runs),
    };
    let complete = rollout.deployment.status.as_ref().is_some_and(|status| is_complete(rollout, status));
    next.or_else(|| clean_up(rollout, &old).filter(|_| complete))
        .unwrap_or_else(|| update_status(rollout, new, rollout_status(rollout, new, &old, now), now))
}

fn rolling_update(
    rollout: &Rollout<'_>,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
    owner: OwnerReference,
) -> Option<Step> {
    let Some(new) = new else { return Some(new_replica_set(rollout, old, owner)) };
    if let Some(next) = next_new_replicas(rollout, new, old) {
        return resize(rollout, vec![(new.clone(), next)]);
    }
    resize(rollout, scale_down_old(rollout, new, old))
}

fn recreate(
    rollout: &Rollout<'_>,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
    owner: OwnerReference,
    runs: impl Fn(&ReplicaSet) -> bool,
) -> Option<Step> {
    let active: Vec<_> = old.iter().filter(|set| size(set) > 0).map(|set| (set.clone(), 0)).collect();
    if !active.is_empty() {
        return resize(rollout, active);
    }
    if old.iter().any(|set| runs(set)) {
        return None;
    }
    match new {
        None => Some(new_replica_set(rollout, old, owner)),
        Some(new) => resize(rollout, vec![(new.clone(), rollout.wanted)]),
    }
}

/// The ReplicaSet of a new template.
fn new_replica_set(rollout: &Rollout<'_>, old: &[Arc<ReplicaSet>], owner: OwnerReference) -> Step {
    let old_status = rollout.deployment.status.as_ref();
    let collisions = old_status.and_then(|old_status| old_status.collision_count).unwrap_or_default();
    let written = serde_json::to_value(&rollout.spec.template).unwrap_or_default();
    let hash = history::hash(&written, collisions);
    let mut template = rollout.spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(HASH_LABEL.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = rollout.spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(HASH_LABEL.to_owned(), hash.clone());
    let of = rollout.deployment.metadata.name.as_deref().unwrap_or_default();
    let of: String = of.chars().take(MAX_NAME_LENGTH - 1 - hash.len()).collect();
    let all_old = old.iter().map(|set| size(set)).sum();
    let metadata = ObjectMeta {
        name: Some(format!("{of}-{hash}")),
        namespace: rollout.deployment.metadata.namespace.clone(),
        labels: Some(labels),
        annotations: Some(new_annotations(rollout, None, old)),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let spec = ReplicaSetSpec {
        replicas: Some(0),
        min_ready_seconds: rollout.spec.min_ready_seconds,
        selector,
        template: Some(template),
    };
    let set = ReplicaSet { metadata, spec: Some(spec), status: None };
    Step::Create(Box::new(sized(&set, rollout, new_replicas(rollout, 0, all_old))))
}

/// The status after the new ReplicaSet was created.
pub(super) fn status_when_made(rollout: &Rollout<'_>, set: &ReplicaSet, now: Timestamp) -> DeploymentStatus {
    let mut status = rollout.deployment.status.clone().unwrap_or_default();
    if rollout.deadline.is_some() {
        let message = format!("Created new replica set \"{}\"", name(set));
        status::set(&mut status, new_condition(PROGRESSING, "True", reasons::CREATED, message, now));
    }
    status
}

/// The status after the new ReplicaSet could not be created, if it changed.
pub(super) fn status_when_not_made(
    rollout: &Rollout<'_>,
    message: &str,
    now: Timestamp,
) -> Option<DeploymentStatus> {
    rollout.deadline?;
    let before = rollout.deployment.status.clone().unwrap_or_default();
    let mut status = before.clone();
    let failure = new_condition(PROGRESSING, "False", reasons::NOT_CREATED, message, now);
    status::set(&mut status, failure);
    (status != before).then_some(status)
}

/// Updates the annotations of the new ReplicaSet, and the revision of the Deployment.
fn sync_new_replica_set(
    rollout: &Rollout<'_>,
    new: &Arc<ReplicaSet>,
    old: &[Arc<ReplicaSet>],
    now: Timestamp,
) -> Option<Step> {
    let annotations = new_annotations(rollout, Some(new), old);
    let spec = new.spec.as_ref()?;
    let seconds = |seconds: Option<i32>| seconds.unwrap_or_default();
    let other_wait = seconds(spec.min_ready_seconds) != seconds(rollout.spec.min_ready_seconds);
    if new.metadata.annotations.as_ref() != Some(&annotations) || other_wait {
        let mut set = ReplicaSet::clone(new);
        set.metadata.annotations = Some(annotations);
        if let Some(spec) = &mut set.spec {
            spec.min_ready_seconds = rollout.spec.min_ready_seconds;
        }
        return Some(Step::Update(vec![(size(new), set)]));
    }
    let old_status = rollout.deployment.status.clone().unwrap_or_default();
    let mut status = old_status.clone();
    if rollout.deadline.is_some() && condition(&status, PROGRESSING).is_none() {
        let message = format!("Found new replica set \"{}\"", name(new));
        status::set(&mut status, new_condition(PROGRESSING, "True", reasons::FOUND, message, now));
    }
    let revision = other_revision(rollout, Some(new));
    (revision.is_some() || status != old_status).then(|| Step::UpdateStatus(Box::new(status), revision))
}

/// The revision that the Deployment should have, if it differs.
fn other_revision(rollout: &Rollout<'_>, new: Option<&Arc<ReplicaSet>>) -> Option<String> {
    let should = annotation(new?, REVISION)?;
    let has = rollout.deployment.metadata.annotations.as_ref().and_then(|all| all.get(REVISION));
    (has.map(String::as_str) != Some(should)).then(|| should.to_owned())
}

/// The status that reports that the Deployment was paused or resumed, if it changed, so that the time it was paused does not
/// count towards its progress deadline.
fn paused_or_resumed(rollout: &Rollout<'_>, now: Timestamp) -> Option<DeploymentStatus> {
    rollout.deadline?;
    let mut status = rollout.deployment.status.clone().unwrap_or_default();
    let reason = condition(&status, PROGRESSING).and_then(|condition| condition.reason.as_deref());
    let was_paused = reason == Some(reasons::PAUSED);
    let (reason, message) = match (rollout.spec.paused == Some(true), was_paused) {
        // A timeout is not covered up.
        _ if reason == Some(reasons::TIMED_OUT) => return None,
        (true, false) => (reasons::PAUSED, "Deployment is paused"),
        (false, true) => (reasons::RESUMED, "Deployment is resumed"),
        _ => return None,
    };
    status::set(&mut status, new_condition(PROGRESSING, "Unknown", reason, message, now));
    Some(status)
}

/// Whether the Deployment was scaled since its ReplicaSets were.
fn is_scaling_event(rollout: &Rollout<'_>, new: Option<&Arc<ReplicaSet>>, old: &[Arc<ReplicaSet>]) -> bool {
    let active = old.iter().chain(new).filter(|set| size(set) > 0);
    active.filter_map(|set| annotated_number(set, DESIRED_REPLICAS)).any(|desired| desired != rollout.wanted)
}

/// Updates ReplicaSets whose size or scaling annotations differ.
fn resize(rollout: &Rollout<'_>, sizes: Vec<(Arc<ReplicaSet>, i32)>) -> Option<Step> {
    let is_other = |set: &ReplicaSet, next: i32| {
        size(set) != next
            || annotated_number(set, DESIRED_REPLICAS) != Some(rollout.wanted)
            || annotated_number(set, MAX_REPLICAS) != Some(rollout.max_replicas())
    };
    let others = sizes.into_iter().filter(|(set, next)| is_other(set, *next));
    let others: Vec<_> = others.map(|(set, next)| (size(&set), sized(&set, rollout, next))).collect();
    (!others.is_empty()).then_some(Step::Update(others))
}

/// Deletes the oldest ReplicaSets beyond the revision history limit.
fn clean_up(rollout: &Rollout<'_>, old: &[Arc<ReplicaSet>]) -> Option<Step> {
    let limit = rollout.spec.revision_history_limit.filter(|limit| *limit != i32::MAX)?;
    let mut old: Vec<_> =
        old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).cloned().collect();
    let too_many = old.len().checked_sub(limit.max(0).unsigned_abs() as usize)?;
    old.sort_by_key(|set| revision(set).unwrap_or_default());
    let gone: Vec<_> = old.into_iter().take(too_many).filter(|set| is_empty(set)).collect();
    (!gone.is_empty()).then_some(Step::Delete(gone))
}

fn update_status(
    rollout: &Rollout<'_>,
    new: Option<&Arc<ReplicaSet>>,
    status: DeploymentStatus,
    now: Timestamp,
) -> Step {
    let revision = other_revision(rollout, new);
    if rollout.deployment.status.as_ref() == Some(&status) && revision.is_none() {
        return Step::Done(until_deadline(rollout, &status, now));
    }
    Step::UpdateStatus(Box::new(status), revision)
}
