//! What a Deployment's next step is, given its sets.

use super::replica_sets::{
    Asked, DESIRED, HASH_LABEL, MOST, REVISION, annotation, name, noted, notes_of_new, revision, size, sized,
    split,
};
use super::scale::{in_proportion, is_empty, next_of_new, shrink_old, size_of_new};
use super::status::{
    self, PROGRESSING, condition, counted, is_complete, new_condition, of_rollout, reasons, until_deadline,
};
use crate::history;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DeploymentStatus, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::sync::Arc;
use std::time::Duration;

/// The longest name that an object may have.
const LONGEST_NAME: usize = 253;

/// One step of a rollout, in which everything is valid at the same time.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// The set of a new template, and the status to tell once it is made.
    Create(Box<ReplicaSet>),
    /// Sets to be written as they are here, after their former sizes.
    Update(Vec<(i32, ReplicaSet)>),
    /// Sets of old that nobody will go back to.
    Delete(Vec<Arc<ReplicaSet>>),
    /// The status is another one; and the revision of the Deployment.
    Tell(Box<DeploymentStatus>, Option<String>),
    /// Nothing; look again after so long, if the rollout may get stuck.
    Rest(Option<Duration>),
}

/// The next step. `runs` says whether pods of a set still run.
pub(super) fn step(
    asked: &Asked<'_>,
    sets: Vec<Arc<ReplicaSet>>,
    owner: OwnerReference,
    runs: impl Fn(&ReplicaSet) -> bool,
    now: Timestamp,
) -> Step {
    let (new, old) = split(asked.spec, sets);
    let new = new.as_ref();
    if asked.deployment.metadata.deletion_timestamp.is_some() {
        return tell(asked, new, counted(asked, new, &old, now), now);
    }
    if let Some(status) = paused_or_resumed(asked, now) {
        return Step::Tell(Box::new(status), None);
    }
    if let Some(step) = new.and_then(|new| furnish(asked, new, &old, now)) {
        return step;
    }
    let paused = asked.spec.paused == Some(true);
    if paused || was_scaled(asked, new, &old) {
        let told = asked.deployment.status.as_ref();
        let sizes = in_proportion(asked, told, new, &old);
        let cleaned = || if paused { clean_up(asked, &old) } else { None };
        return resize(asked, sizes)
            .or_else(cleaned)
            .unwrap_or_else(|| tell(asked, new, counted(asked, new, &old, now), now));
    }
    let next = match asked.rolling {
        true => roll(asked, new, &old, owner),
        false => recreate(asked, new, &old, owner, runs),
    };
    let complete = asked.deployment.status.as_ref().is_some_and(|status| is_complete(asked, status));
    next.or_else(|| clean_up(asked, &old).filter(|_| complete))
        .unwrap_or_else(|| tell(asked, new, of_rollout(asked, new, &old, now), now))
}

fn roll(
    asked: &Asked<'_>,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
    owner: OwnerReference,
) -> Option<Step> {
    let Some(new) = new else { return Some(make(asked, old, owner)) };
    if let Some(next) = next_of_new(asked, new, old) {
        return resize(asked, vec![(new.clone(), next)]);
    }
    resize(asked, shrink_old(asked, new, old))
}

fn recreate(
    asked: &Asked<'_>,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
    owner: OwnerReference,
    runs: impl Fn(&ReplicaSet) -> bool,
) -> Option<Step> {
    let active: Vec<_> = old.iter().filter(|set| size(set) > 0).map(|set| (set.clone(), 0)).collect();
    if !active.is_empty() {
        return resize(asked, active);
    }
    if old.iter().any(|set| runs(set)) {
        return None;
    }
    match new {
        None => Some(make(asked, old, owner)),
        Some(new) => resize(asked, vec![(new.clone(), asked.wanted)]),
    }
}

/// The set of a new template.
fn make(asked: &Asked<'_>, old: &[Arc<ReplicaSet>], owner: OwnerReference) -> Step {
    let told = asked.deployment.status.as_ref();
    let collisions = told.and_then(|told| told.collision_count).unwrap_or_default();
    let written = serde_json::to_value(&asked.spec.template).unwrap_or_default();
    let hash = history::hash(&written, collisions);
    let mut template = asked.spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(HASH_LABEL.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = asked.spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(HASH_LABEL.to_owned(), hash.clone());
    let of = asked.deployment.metadata.name.as_deref().unwrap_or_default();
    let of: String = of.chars().take(LONGEST_NAME - 1 - hash.len()).collect();
    let all_old = old.iter().map(|set| size(set)).sum();
    let metadata = ObjectMeta {
        name: Some(format!("{of}-{hash}")),
        namespace: asked.deployment.metadata.namespace.clone(),
        labels: Some(labels),
        annotations: Some(notes_of_new(asked, None, old)),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let spec = ReplicaSetSpec {
        replicas: Some(0),
        min_ready_seconds: asked.spec.min_ready_seconds,
        selector,
        template: Some(template),
    };
    let set = ReplicaSet { metadata, spec: Some(spec), status: None };
    Step::Create(Box::new(sized(&set, asked, size_of_new(asked, 0, all_old))))
}

/// The status once the new set was made.
pub(super) fn status_when_made(asked: &Asked<'_>, set: &ReplicaSet, now: Timestamp) -> DeploymentStatus {
    let mut status = asked.deployment.status.clone().unwrap_or_default();
    if asked.deadline.is_some() {
        let message = format!("Created new replica set \"{}\"", name(set));
        status::set(&mut status, new_condition(PROGRESSING, "True", reasons::CREATED, message, now));
    }
    status
}

/// The status when the new set could not be made, if that is news.
pub(super) fn status_when_not_made(
    asked: &Asked<'_>,
    message: &str,
    now: Timestamp,
) -> Option<DeploymentStatus> {
    asked.deadline?;
    let before = asked.deployment.status.clone().unwrap_or_default();
    let mut status = before.clone();
    let trouble = new_condition(PROGRESSING, "False", reasons::NOT_CREATED, message, now);
    status::set(&mut status, trouble);
    (status != before).then_some(status)
}

/// Brings what is noted on the new set, and of it on the Deployment, up to date.
fn furnish(
    asked: &Asked<'_>,
    new: &Arc<ReplicaSet>,
    old: &[Arc<ReplicaSet>],
    now: Timestamp,
) -> Option<Step> {
    let notes = notes_of_new(asked, Some(new), old);
    let spec = new.spec.as_ref()?;
    let seconds = |seconds: Option<i32>| seconds.unwrap_or_default();
    let other_wait = seconds(spec.min_ready_seconds) != seconds(asked.spec.min_ready_seconds);
    if new.metadata.annotations.as_ref() != Some(&notes) || other_wait {
        let mut set = ReplicaSet::clone(new);
        set.metadata.annotations = Some(notes);
        if let Some(spec) = &mut set.spec {
            spec.min_ready_seconds = asked.spec.min_ready_seconds;
        }
        return Some(Step::Update(vec![(size(new), set)]));
    }
    let told = asked.deployment.status.clone().unwrap_or_default();
    let mut status = told.clone();
    if asked.deadline.is_some() && condition(&status, PROGRESSING).is_none() {
        let message = format!("Found new replica set \"{}\"", name(new));
        status::set(&mut status, new_condition(PROGRESSING, "True", reasons::FOUND, message, now));
    }
    let revision = other_revision(asked, Some(new));
    (revision.is_some() || status != told).then(|| Step::Tell(Box::new(status), revision))
}

/// The revision that the Deployment should have, if it has another.
fn other_revision(asked: &Asked<'_>, new: Option<&Arc<ReplicaSet>>) -> Option<String> {
    let should = annotation(new?, REVISION)?;
    let has = asked.deployment.metadata.annotations.as_ref().and_then(|all| all.get(REVISION));
    (has.map(String::as_str) != Some(should)).then(|| should.to_owned())
}

/// The status that says that the Deployment was paused or goes on, if that is news. So the time it was paused does not count
/// towards its deadline.
fn paused_or_resumed(asked: &Asked<'_>, now: Timestamp) -> Option<DeploymentStatus> {
    asked.deadline?;
    let mut status = asked.deployment.status.clone().unwrap_or_default();
    let reason = condition(&status, PROGRESSING).and_then(|condition| condition.reason.as_deref());
    let told_paused = reason == Some(reasons::PAUSED);
    let (reason, message) = match (asked.spec.paused == Some(true), told_paused) {
        // That it got stuck is not covered up.
        _ if reason == Some(reasons::TIMED_OUT) => return None,
        (true, false) => (reasons::PAUSED, "Deployment is paused"),
        (false, true) => (reasons::RESUMED, "Deployment is resumed"),
        _ => return None,
    };
    status::set(&mut status, new_condition(PROGRESSING, "Unknown", reason, message, now));
    Some(status)
}

/// Whether the Deployment was scaled since its sets were sized.
fn was_scaled(asked: &Asked<'_>, new: Option<&Arc<ReplicaSet>>, old: &[Arc<ReplicaSet>]) -> bool {
    let active = old.iter().chain(new).filter(|set| size(set) > 0);
    active.filter_map(|set| noted(set, DESIRED)).any(|desired| desired != asked.wanted)
}

/// Writes those that have another size, or a note of another one.
fn resize(asked: &Asked<'_>, sizes: Vec<(Arc<ReplicaSet>, i32)>) -> Option<Step> {
    let is_other = |set: &ReplicaSet, next: i32| {
        size(set) != next
            || noted(set, DESIRED) != Some(asked.wanted)
            || noted(set, MOST) != Some(asked.most())
    };
    let others = sizes.into_iter().filter(|(set, next)| is_other(set, *next));
    let others: Vec<_> = others.map(|(set, next)| (size(&set), sized(&set, asked, next))).collect();
    (!others.is_empty()).then_some(Step::Update(others))
}

/// Forgets the oldest of the old sets, as far as there are more than should be kept.
fn clean_up(asked: &Asked<'_>, old: &[Arc<ReplicaSet>]) -> Option<Step> {
    let limit = asked.spec.revision_history_limit.filter(|limit| *limit != i32::MAX)?;
    let mut old: Vec<_> =
        old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).cloned().collect();
    let too_many = old.len().checked_sub(limit.max(0).unsigned_abs() as usize)?;
    old.sort_by_key(|set| revision(set).unwrap_or_default());
    let gone: Vec<_> = old.into_iter().take(too_many).filter(|set| is_empty(set)).collect();
    (!gone.is_empty()).then_some(Step::Delete(gone))
}

fn tell(asked: &Asked<'_>, new: Option<&Arc<ReplicaSet>>, status: DeploymentStatus, now: Timestamp) -> Step {
    let revision = other_revision(asked, new);
    if asked.deployment.status.as_ref() == Some(&status) && revision.is_none() {
        return Step::Rest(until_deadline(asked, &status, now));
    }
    Step::Tell(Box::new(status), revision)
}
