//! What to do for a StatefulSet, given its pods and claims.

use super::claim_retention;
use super::identity::{Set, revision};
use crate::pods;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use std::sync::Arc;

/// A revision of the template.
pub(super) struct TemplateRevision {
    pub(super) name: String,
    pub(super) template: PodTemplateSpec,
}

/// What was observed.
pub(super) struct Observed<'a> {
    pub(super) set: &'a Set<'a>,
    /// The owner reference of created pods.
    pub(super) owner: &'a OwnerReference,
    /// Its own pods, by ordinal.
    pub(super) pods: &'a [(i64, Arc<Pod>)],
    pub(super) claim: &'a (dyn Fn(&str) -> Option<Arc<PersistentVolumeClaim>> + Sync),
    /// The current revision, and the update revision.
    pub(super) current: &'a TemplateRevision,
    pub(super) update: &'a TemplateRevision,
    /// `status.currentReplicas`.
    pub(super) current_replicas: i64,
    pub(super) now: Timestamp,
}

/// One step.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Create the missing claims of a pod, then the pod.
    Create(Vec<PersistentVolumeClaim>, Box<Pod>),
    /// Create claims that a pod waits for.
    CreateClaims(Vec<PersistentVolumeClaim>, Arc<Pod>),
    /// Update a pod whose identity or storage does not match.
    UpdateIdentity(Box<Pod>),
    /// Set the owner references of a claim.
    SetOwners(Arc<PersistentVolumeClaim>, Vec<OwnerReference>),
    /// Record that a claim has a conflicting owner.
    ConflictingOwner(String),
    Delete(Arc<Pod>),
}

/// What to do, in phases: the steps of one phase may run concurrently, unless the set is ordered.
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
        if !observed.sync_replica(*ordinal, pod, &mut steps) && set.ordered {
            return if steps.is_empty() { Vec::new() } else { vec![steps] };
        }
    }
    let mut phases = vec![steps];
    let claim_owner_updates = condemned
        .iter()
        .flat_map(|(ordinal, pod)| observed.claim_owner_updates(*ordinal, pod, true))
        .collect();
    phases.push(claim_owner_updates);
    let (deleted, blocked) = observed.scale_down(&replicas, &condemned);
    phases.push(deleted);
    if !blocked {
        phases.push(observed.rolling_update(&replicas).into_iter().collect());
    }
    phases.retain(|steps| !steps.is_empty());
    phases
}

impl Observed<'_> {
    /// The pod with this ordinal: the existing one, or a new one, which has no phase yet.
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
        pods::is_terminating(pod) || !self.is_available(pod)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pods::is_available(pod, self.set.min_ready_seconds, self.now)
    }

    fn is_running_and_available(&self, pod: &Pod) -> bool {
        pods::phase(pod) == "Running" && pods::is_ready(pod) && self.is_available(pod)
    }

    /// The steps for one replica; false if those after it must wait.
    fn sync_replica(&self, ordinal: i64, pod: &Arc<Pod>, steps: &mut Vec<Step>) -> bool {
        if pods::has_ended(pod) {
            if !pods::is_terminating(pod) {
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
                steps.push(Step::CreateClaims(missing, pod.clone()));
            }
            steps.extend(self.claim_owner_updates(ordinal, pod, false));
        }
        if self.set.ordered && (pods::is_terminating(pod) || !self.is_running_and_available(pod)) {
            return false;
        }
        if pods::phase(pod) != "Pending" {
            steps.extend(self.claim_owner_updates(ordinal, pod, false));
        }
        steps.extend(
            self.set.with_identity(pod, ordinal).map(|updated| Step::UpdateIdentity(Box::new(updated))),
        );
        true
    }

    fn missing(&self, ordinal: i64) -> Vec<PersistentVolumeClaim> {
        let mut claims = self.set.claims(ordinal);
        claims.retain(|claim| (self.claim)(claim.metadata.name.as_deref().unwrap_or_default()).is_none());
        claims
    }

    /// The steps that set the owner references of a pod's claims.
    fn claim_owner_updates(&self, ordinal: i64, pod: &Pod, condemned: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for claim in self.set.claim_names(ordinal).filter_map(|name| (self.claim)(&name)) {
            if let Some(owners) = claim_retention::owners(self.set, &claim, pod, condemned) {
                if claim_retention::has_conflicting_owner(self.set, &claim, pod) {
                    steps.push(Step::ConflictingOwner(claim.metadata.name.clone().unwrap_or_default()));
                }
                steps.push(Step::SetOwners(claim, owners));
            }
        }
        steps
    }

    /// Deletes condemned pods, highest ordinal first; true if the update must wait.
    fn scale_down(&self, replicas: &[(i64, Arc<Pod>)], condemned: &[&(i64, Arc<Pod>)]) -> (Vec<Step>, bool) {
        let mut all = replicas.iter().chain(condemned.iter().rev().copied());
        let first_unhealthy = all.find(|(_, pod)| self.is_unavailable(pod)).map(|(ordinal, _)| *ordinal);
        let mut steps = Vec::new();
        for (ordinal, pod) in condemned {
            let waits = pods::is_terminating(pod)
                || (!self.is_running_and_available(pod) && first_unhealthy != Some(*ordinal));
            if self.set.ordered && waits {
                return (steps, true);
            }
            if !pods::is_terminating(pod) {
                steps.push(Step::Delete(pod.clone()));
                if self.set.ordered {
                    return (steps, true);
                }
            }
        }
        (steps, false)
    }

    /// Deletes the pod with the highest ordinal that is not of the update revision, unless one above it is not available yet.
    fn rolling_update(&self, replicas: &[(i64, Arc<Pod>)]) -> Option<Step> {
        let strategy = self.set.spec.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return None;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or_default();
        let partition = usize::try_from(partition).unwrap_or_default().min(replicas.len());
        for (_, pod) in replicas[partition..].iter().rev() {
            if revision(pod) != Some(&self.update.name) && !pods::is_terminating(pod) {
                // A pod that does not exist yet needs no deletion.
                return (!pods::phase(pod).is_empty()).then(|| Step::Delete(pod.clone()));
            }
            if self.is_unavailable(pod) {
                return None;
            }
        }
        None
    }
}
