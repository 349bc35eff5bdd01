//! What a Deployment knows about its ReplicaSets: which is the new one, their sizes, revisions and annotations.

use crate::int_or_percent;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The label that distinguishes the pods of different templates.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// The revision of the template, on a ReplicaSet and on the Deployment.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The replicas of the Deployment when the ReplicaSet was last scaled: another number means that it was scaled since.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations that are not copied from the Deployment to its ReplicaSets.
const NOT_COPIED: [&str; 6] = [
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
];
/// The longest revision history annotation.
const MAX_HISTORY_LENGTH: usize = 2000;

/// What a Deployment asks for, parsed once.
#[derive(Debug, Clone)]
pub(super) struct Rollout<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) spec: &'a DeploymentSpec,
    pub(super) wanted: i32,
    pub(super) rolling: bool,
    pub(super) surge: i32,
    pub(super) unavailable: i32,
    /// The progress deadline in seconds.
    pub(super) deadline: Option<i32>,
}

impl<'a> Rollout<'a> {
    pub(super) fn of(deployment: &'a Deployment) -> Option<Self> {
        let spec = deployment.spec.as_ref()?;
        let wanted = spec.replicas.unwrap_or(1);
        let strategy = spec.strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("Recreate");
        let bounds = strategy.and_then(|strategy| strategy.rolling_update.as_ref()).filter(|_| rolling);
        let (surge, unavailable) = match (rolling, bounds) {
            (true, bounds) => int_or_percent::resolve_fenceposts(
                bounds.and_then(|bounds| bounds.max_surge.as_ref()),
                bounds.and_then(|bounds| bounds.max_unavailable.as_ref()),
                wanted,
            ),
            (false, _) => (0, 0),
        };
        let deadline = spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX);
        // No more than all can be unavailable.
        let unavailable = unavailable.min(wanted);
        Some(Self { deployment, spec, wanted, rolling, surge, unavailable, deadline })
    }

    /// The most pods at a time.
    pub(super) fn max_replicas(&self) -> i32 {
        self.wanted.saturating_add(self.surge)
    }

    /// The fewest available pods.
    pub(super) fn min_available(&self) -> i32 {
        self.wanted - self.unavailable
    }
}

pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

pub(super) fn status(set: &ReplicaSet) -> &ReplicaSetStatus {
    static NONE: ReplicaSetStatus = ReplicaSetStatus {
        available_replicas: None,
        conditions: None,
        fully_labeled_replicas: None,
        observed_generation: None,
        ready_replicas: None,
        replicas: 0,
        terminating_replicas: None,
    };
    set.status.as_ref().unwrap_or(&NONE)
}

pub(super) fn available(set: &ReplicaSet) -> i32 {
    status(set).available_replicas.unwrap_or_default()
}

pub(super) fn name(set: &ReplicaSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// The oldest first, those of one second by name.
pub(super) fn by_age(sets: &mut [Arc<ReplicaSet>]) {
    let age = |set: &ReplicaSet| set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    sets.sort_by(|one, other| (age(one), name(one)).cmp(&(age(other), name(other))));
}

/// The ReplicaSet of the Deployment's template, the oldest if there are several, and the others.
pub(super) fn find_new_and_old(
    spec: &DeploymentSpec,
    mut sets: Vec<Arc<ReplicaSet>>,
) -> (Option<Arc<ReplicaSet>>, Vec<Arc<ReplicaSet>>) {
    by_age(&mut sets);
    let is_new = |set: &Arc<ReplicaSet>| {
        let template = set.spec.as_ref().and_then(|set| set.template.as_ref());
        template.is_some_and(|template| same(template, &spec.template))
    };
    match sets.iter().position(is_new) {
        Some(place) => (Some(sets.remove(place)), sets),
        None => (None, sets),
    }
}

/// Whether two templates are equal, ignoring the pod-template-hash label.
pub(super) fn same(one: &PodTemplateSpec, other: &PodTemplateSpec) -> bool {
    let bare = |template: &PodTemplateSpec| {
        let mut meta = template.metadata.clone().unwrap_or_default();
        meta.labels.get_or_insert_default().remove(HASH_LABEL);
        meta.annotations.get_or_insert_default();
        meta
    };
    one.spec == other.spec && bare(one) == bare(other)
}

pub(super) fn annotation<'a>(set: &'a ReplicaSet, key: &str) -> Option<&'a str> {
    set.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The revision of a ReplicaSet; none if it is unset or no number.
pub(super) fn revision(set: &ReplicaSet) -> Option<i64> {
    annotation(set, REVISION)?.parse().ok()
}

/// A number in an annotation.
pub(super) fn annotated_number(set: &ReplicaSet, key: &str) -> Option<i32> {
    annotation(set, key)?.parse().ok().filter(|number| *number >= 0)
}

/// The same ReplicaSet with this size, annotated with what it was scaled for.
pub(super) fn sized(set: &ReplicaSet, rollout: &Rollout<'_>, size: i32) -> ReplicaSet {
    let mut set = set.clone();
    if let Some(spec) = &mut set.spec {
        spec.replicas = Some(size);
    }
    let annotations = set.metadata.annotations.get_or_insert_default();
    annotations.insert(DESIRED_REPLICAS.to_owned(), rollout.wanted.to_string());
    annotations.insert(MAX_REPLICAS.to_owned(), rollout.max_replicas().to_string());
    set
}

/// The annotations of the new ReplicaSet: the Deployment's own, and a revision above all old ones. When an old ReplicaSet is
/// new again, its former revisions are kept as history.
pub(super) fn new_annotations(
    rollout: &Rollout<'_>,
    set: Option<&ReplicaSet>,
    old: &[Arc<ReplicaSet>],
) -> BTreeMap<String, String> {
    let mut annotations = set.and_then(|set| set.metadata.annotations.clone()).unwrap_or_default();
    for (key, value) in rollout.deployment.metadata.annotations.iter().flatten() {
        if !NOT_COPIED.contains(&key.as_str()) {
            annotations.insert(key.clone(), value.clone());
        }
    }
    let next = old.iter().filter_map(|set| revision(set)).max().unwrap_or_default().max(0) + 1;
    let had = annotations.get(REVISION).cloned();
    let number = match had.as_deref() {
        None | Some("") => Some(0),
        Some(text) => text.parse::<i64>().ok(),
    };
    // A revision that is no number is somebody's own, and is left alone.
    if number.is_some_and(|number| number < next) {
        annotations.insert(REVISION.to_owned(), next.to_string());
        if let Some(had) = had.filter(|had| !had.is_empty()) {
            let history = annotations.entry(REVISION_HISTORY.to_owned()).or_default();
            *history = appended(history, &had);
        }
    }
    annotations
}

/// A history with one more revision; the oldest are dropped where it would be too long.
fn appended(history: &str, revision: &str) -> String {
    let mut all: Vec<&str> = history.split(',').filter(|one| !one.is_empty()).chain([revision]).collect();
    while all.len() > 1 && all.iter().map(|one| one.len() + 1).sum::<usize>() - 1 > MAX_HISTORY_LENGTH {
        all.remove(0);
    }
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_forgets_its_oldest() {
        assert_eq!(appended("", "1"), "1");
        assert_eq!(appended("1,3", "5"), "1,3,5");
        let long = (0..900).map(|_| "1").collect::<Vec<_>>().join(",");
        let longer = appended(&long, &"9".repeat(300));
        assert!(longer.len() <= MAX_HISTORY_LENGTH && longer.ends_with("999"), "{}", longer.len());
    }
}
