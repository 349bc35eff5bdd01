//! What is to be done for a StatefulSet, given its pods and claims.

use super::claim_retention;
use super::identity::{Set, revision};
use crate::pods;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use std::sync::Arc;

/// A revision of the template.
pub(super) struct Version {
    pub(super) name: String,
    pub(super) template: PodTemplateSpec,
}

/// What there is.
pub(super) struct Observed<'a> {
    pub(super) set: &'a Set<'a>,
    /// The owner of what is made.
    pub(super) owner: &'a OwnerReference,
    /// Its own pods, by ordinal.
    pub(super) pods: &'a [(i64, Arc<Pod>)],
    pub(super) claim: &'a (dyn Fn(&str) -> Option<Arc<PersistentVolumeClaim>> + Sync),
    /// The revision that is on its way out, and the one that is on its way in.
    pub(super) current: &'a Version,
    pub(super) update: &'a Version,
    /// How many pods of the current revision the status tells of.
    pub(super) current_replicas: i64,
    pub(super) now: Timestamp,
}

/// One thing to do.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Make the claims of a pod that are missing, then the pod.
    Create(Vec<PersistentVolumeClaim>, Box<Pod>),
    /// Make claims that a pod waits for.
    Furnish(Vec<PersistentVolumeClaim>, Arc<Pod>),
    /// Put a pod in the place of what it should be.
    Mend(Box<Pod>),
    /// Give a claim other owners.
    Own(Arc<PersistentVolumeClaim>, Vec<OwnerReference>),
    /// Say that a claim is somebody else's.
    Contested(String),
    Delete(Arc<Pod>),
}

/// What is to be done, in phases: what is in one may be done at once, unless the set is ordered.
pub(super) fn decide(observed: &Observed) -> Vec<Vec<Step>> {
    let set = observed.set;
    if set.meta.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let replicas: Vec<(i64, Arc<Pod>)> =
        (set.start..set.start + set.replicas).map(|ordinal| (ordinal, observed.pod(ordinal))).collect();
    let mut condemned: Vec<&(i64, Arc<Pod>)> =
        observed.pods.iter().filter(|(ordinal, _)| !set.wants(*ordinal)).collect();
    condemned.sort_by_key(|(ordinal, _)| -ordinal);

    let mut steps = Vec::new();
    for (ordinal, pod) in &replicas {
        if !observed.keep(*ordinal, pod, &mut steps) && set.ordered {
            return if steps.is_empty() { Vec::new() } else { vec![steps] };
        }
    }
    let mut phases = vec![steps];
    let owned = condemned.iter().flat_map(|(ordinal, pod)| observed.owned(*ordinal, pod, true)).collect();
    phases.push(owned);
    let (deleted, blocked) = observed.scale_down(&replicas, &condemned);
    phases.push(deleted);
    if !blocked {
        phases.push(observed.roll(&replicas).into_iter().collect());
    }
    phases.retain(|steps| !steps.is_empty());
    phases
}

impl Observed<'_> {
    /// The pod with this ordinal: the one that is there, or a new one, which has no phase yet.
    fn pod(&self, ordinal: i64) -> Arc<Pod> {
        if let Ok(place) = self.pods.binary_search_by_key(&ordinal, |(ordinal, _)| *ordinal) {
            return self.pods[place].1.clone();
        }
        let strategy = self.set.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let rolls = strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete");
        let old = match rolling {
            Some(rolling) => i64::from(rolling.partition.unwrap_or_default()),
            None if rolls => self.current_replicas,
            None => 0,
        };
        let version = if ordinal < self.set.start + old { self.current } else { self.update };
        Arc::new(self.set.pod(ordinal, &version.template, &version.name, self.owner.clone()))
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        pods::is_going(pod) || !self.is_available(pod)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pods::is_available(pod, self.set.min_ready_seconds, self.now)
    }

    fn is_settled(&self, pod: &Pod) -> bool {
        pods::phase(pod) == "Running" && pods::is_ready(pod) && self.is_available(pod)
    }

    /// Keeps one replica; false if those after it must wait.
    fn keep(&self, ordinal: i64, pod: &Arc<Pod>, steps: &mut Vec<Step>) -> bool {
        if pods::has_ended(pod) {
            if !pods::is_going(pod) {
                steps.push(Step::Delete(pod.clone()));
            }
            return false;
        }
        let missing = self.missing(ordinal);
        if pods::phase(pod).is_empty() {
            let waits = |name: String| {
                let claim = (self.claim)(&name);
                claim.is_some_and(|claim| {
                    claim.metadata.deletion_timestamp.is_some()
                        || claim_retention::is_stale(self.set, &claim, pod)
                })
            };
            if !self.set.claim_names(ordinal).any(waits) {
                steps.push(Step::Create(missing, Box::new((**pod).clone())));
            }
            return false;
        }
        if pods::phase(pod) == "Pending" {
            if !missing.is_empty() {
                steps.push(Step::Furnish(missing, pod.clone()));
            }
            steps.extend(self.owned(ordinal, pod, false));
        }
        if self.set.ordered && (pods::is_going(pod) || !self.is_settled(pod)) {
            return false;
        }
        if pods::phase(pod) != "Pending" {
            steps.extend(self.owned(ordinal, pod, false));
        }
        steps.extend(self.set.mended(pod, ordinal).map(|mended| Step::Mend(Box::new(mended))));
        true
    }

    fn missing(&self, ordinal: i64) -> Vec<PersistentVolumeClaim> {
        let mut claims = self.set.claims(ordinal);
        claims.retain(|claim| (self.claim)(claim.metadata.name.as_deref().unwrap_or_default()).is_none());
        claims
    }

    /// Gives the claims of a pod the owners that they should have.
    fn owned(&self, ordinal: i64, pod: &Pod, condemned: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for claim in self.set.claim_names(ordinal).filter_map(|name| (self.claim)(&name)) {
            if let Some(owners) = claim_retention::owners(self.set, &claim, pod, condemned) {
                if claim_retention::is_contested(self.set, &claim, pod) {
                    steps.push(Step::Contested(claim.metadata.name.clone().unwrap_or_default()));
                }
                steps.push(Step::Own(claim, owners));
            }
        }
        steps
    }

    /// Deletes those that are too many, highest first; true if the others must wait.
    fn scale_down(&self, replicas: &[(i64, Arc<Pod>)], condemned: &[&(i64, Arc<Pod>)]) -> (Vec<Step>, bool) {
        let mut all = replicas.iter().chain(condemned.iter().rev().copied());
        let first_unhealthy = all.find(|(_, pod)| self.is_unavailable(pod)).map(|(ordinal, _)| *ordinal);
        let mut steps = Vec::new();
        for (ordinal, pod) in condemned {
            let waits = pods::is_going(pod) || (!self.is_settled(pod) && first_unhealthy != Some(*ordinal));
            if self.set.ordered && waits {
                return (steps, true);
            }
            if !pods::is_going(pod) {
                steps.push(Step::Delete(pod.clone()));
                if self.set.ordered {
                    return (steps, true);
                }
            }
        }
        (steps, false)
    }

    /// Deletes the highest that is not of the update revision, unless one above it is not available yet.
    fn roll(&self, replicas: &[(i64, Arc<Pod>)]) -> Option<Step> {
        let strategy = self.set.spec.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return None;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or_default();
        let partition = usize::try_from(partition).unwrap_or_default().min(replicas.len());
        for (_, pod) in replicas[partition..].iter().rev() {
            if revision(pod) != Some(&self.update.name) && !pods::is_going(pod) {
                // One that is not there yet has nothing to delete.
                return (!pods::phase(pod).is_empty()).then(|| Step::Delete(pod.clone()));
            }
            if self.is_unavailable(pod) {
                return None;
            }
        }
        None
    }
}
