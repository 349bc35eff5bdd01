//! The sizes of a Deployment's ReplicaSets: step by step in a rollout, and proportionally when the Deployment itself is
//! scaled.

use super::replica_sets::{MAX_REPLICAS, Rollout, annotated_number, by_age, name, size, status};
use k8s_openapi::api::apps::v1::{DeploymentStatus, ReplicaSet};
use std::cmp::Reverse;
use std::sync::Arc;

/// A ReplicaSet and its new size.
pub(super) type Sizes = Vec<(Arc<ReplicaSet>, i32)>;

/// How many available pods of a ReplicaSet can be counted on: its status, but never more than its spec asks for. The status of
/// a ReplicaSet that was just scaled down lags behind, and its pods must not be spent twice.
fn available(set: &ReplicaSet) -> i32 {
    super::replica_sets::available(set).min(size(set))
}

fn total<'a>(sets: impl IntoIterator<Item = &'a Arc<ReplicaSet>>) -> i32 {
    sets.into_iter().map(|set| size(set)).sum()
}

/// The size of the new ReplicaSet, which has `current` of `all` pods.
pub(super) fn new_replicas(rollout: &Rollout<'_>, current: i32, all: i32) -> i32 {
    if !rollout.rolling {
        return rollout.wanted;
    }
    let room = (rollout.max_replicas() - all).max(0);
    current + room.min(rollout.wanted - current)
}

/// The next size of the new set in a rolling update, if it is another one.
pub(super) fn next_new_replicas(
    rollout: &Rollout<'_>,
    new: &Arc<ReplicaSet>,
    old: &[Arc<ReplicaSet>],
) -> Option<i32> {
    let current = size(new);
    let next = match current > rollout.wanted {
        true => rollout.wanted,
        false => new_replicas(rollout, current, current + total(old)),
    };
    (next != current).then_some(next)
}

/// The old ReplicaSets to scale down in a rolling update. Unavailable pods are removed first, since they serve nobody; then as
/// many others as available pods of the new ReplicaSet replace.
pub(super) fn scale_down_old(rollout: &Rollout<'_>, new: &ReplicaSet, old: &[Arc<ReplicaSet>]) -> Sizes {
    let mut old: Vec<_> = old.iter().filter(|set| size(set) > 0).cloned().collect();
    by_age(&mut old);
    let new_unavailable = size(new) - available(new);
    let mut spare = size(new) + total(&old) - rollout.min_available() - new_unavailable;
    if spare <= 0 {
        return Vec::new();
    }
    let mut sizes: Sizes =
        old.into_iter().map(|set| (size(&set), set)).map(|(size, set)| (set, size)).collect();
    for (set, size) in &mut sizes {
        let unhealthy = (*size - available(set)).max(0).min(spare);
        *size -= unhealthy;
        spare -= unhealthy;
    }
    let all_available = available(new) + sizes.iter().map(|(set, _)| available(set)).sum::<i32>();
    let mut missed = (all_available - rollout.min_available()).max(0);
    for (_, size) in &mut sizes {
        let less = (*size).min(missed);
        *size -= less;
        missed -= less;
    }
    sizes.retain(|(set, next)| *next != size(set));
    sizes
}

/// Whether the new set is all that it should be.
fn is_saturated(rollout: &Rollout<'_>, new: &ReplicaSet) -> bool {
    size(new) == rollout.wanted
        && annotated_number(new, super::replica_sets::DESIRED_REPLICAS) == Some(rollout.wanted)
        && available(new) == rollout.wanted
}

/// The sizes after the Deployment itself was scaled: each ReplicaSet proportionally, so that a failing rollout does not
/// proceed faster.
pub(super) fn scale_proportionally(
    rollout: &Rollout<'_>,
    deployment: Option<&DeploymentStatus>,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
) -> Sizes {
    let mut old = old.to_vec();
    by_age(&mut old);
    let mut active: Vec<_> = old.iter().chain(new).filter(|set| size(set) > 0).cloned().collect();
    let only = match &active[..] {
        [] => new.or(old.last()),
        [only] => Some(only),
        _ => None,
    };
    if let Some(only) = only {
        // Though the size fits, that it is of the Deployment as it is now must be noted.
        return vec![(only.clone(), rollout.wanted)];
    }
    if new.is_some_and(|new| is_saturated(rollout, new)) {
        return old.into_iter().filter(|set| size(set) > 0).map(|set| (set, 0)).collect();
    }
    if !rollout.rolling {
        // They go by themselves; only what they are sized for is noted.
        return active.into_iter().map(|set| (size(&set), set)).map(|(size, set)| (set, size)).collect();
    }
    let allowed = if rollout.wanted > 0 { rollout.max_replicas() } else { 0 };
    let to_add = allowed - total(&active);
    let created = |set: &Arc<ReplicaSet>| set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    match to_add {
        // The largest first; of equals the newer when growing, the older when shrinking.
        1.. => active.sort_by_key(|set| (Reverse(size(set)), Reverse((created(set), name(set).to_owned())))),
        _ => active.sort_by_key(|set| (Reverse(size(set)), (created(set), name(set).to_owned()))),
    }
    let before = deployment.and_then(|status| status.replicas).unwrap_or_default();
    let mut added = 0;
    let mut sizes: Sizes = Vec::with_capacity(active.len());
    for set in active {
        let share = share(rollout, &set, before);
        let share = match to_add - added {
            0 => 0,
            left if to_add > 0 => share.min(left),
            left => share.max(left),
        };
        added += share;
        let next = size(&set) + share;
        sizes.push((set, next));
    }
    if let Some((_, largest)) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    sizes
}

/// By how much one set grows or shrinks when the whole does.
fn share(rollout: &Rollout<'_>, set: &ReplicaSet, deployment_had: i32) -> i32 {
    let current = size(set);
    if rollout.wanted == 0 {
        return -current;
    }
    let before = annotated_number(set, MAX_REPLICAS)
        .filter(|max_replicas| *max_replicas > 0)
        .unwrap_or(deployment_had);
    if before == 0 {
        return 0;
    }
    let exact = f64::from(current) * f64::from(rollout.max_replicas()) / f64::from(before);
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a cast of a float saturates, and sizes are within its range"
    )]
    let rounded = exact.round() as i32;
    rounded - current
}

/// Whether a ReplicaSet has no pods and wants none, so that it can be deleted.
pub(super) fn is_empty(set: &ReplicaSet) -> bool {
    let observed = status(set).observed_generation.unwrap_or_default();
    status(set).replicas == 0
        && size(set) == 0
        && set.metadata.generation.unwrap_or_default() <= observed
        && set.metadata.deletion_timestamp.is_none()
}
