//! The sizes of a Deployment's sets: in a rollout step by step, and when the Deployment itself is scaled in proportion.

use super::replica_sets::{Asked, MOST, by_age, name, noted, size, status};
use k8s_openapi::api::apps::v1::{DeploymentStatus, ReplicaSet};
use std::cmp::Reverse;
use std::sync::Arc;

/// A set and the size it is to have.
pub(super) type Sizes = Vec<(Arc<ReplicaSet>, i32)>;

/// How many pods of a set can be counted on: what its status says, but never more than it is to have. A set that was just made
/// smaller may not have told yet, and its pods must not be spent twice.
fn available(set: &ReplicaSet) -> i32 {
    super::replica_sets::available(set).min(size(set))
}

fn total<'a>(sets: impl IntoIterator<Item = &'a Arc<ReplicaSet>>) -> i32 {
    sets.into_iter().map(|set| size(set)).sum()
}

/// How big the new set may be, of which there are `current` now, among so many pods in all.
pub(super) fn size_of_new(asked: &Asked<'_>, current: i32, all: i32) -> i32 {
    if !asked.rolling {
        return asked.wanted;
    }
    let room = (asked.most() - all).max(0);
    current + room.min(asked.wanted - current)
}

/// The next size of the new set in a rolling update, if it is another one.
pub(super) fn next_of_new(asked: &Asked<'_>, new: &Arc<ReplicaSet>, old: &[Arc<ReplicaSet>]) -> Option<i32> {
    let current = size(new);
    let next = match current > asked.wanted {
        true => asked.wanted,
        false => size_of_new(asked, current, current + total(old)),
    };
    (next != current).then_some(next)
}

/// The old sets that become smaller in a rolling update. Pods that are not available go first, since nobody misses them; as
/// many others as the available ones of the new set make up for.
pub(super) fn shrink_old(asked: &Asked<'_>, new: &ReplicaSet, old: &[Arc<ReplicaSet>]) -> Sizes {
    let mut old: Vec<_> = old.iter().filter(|set| size(set) > 0).cloned().collect();
    by_age(&mut old);
    let new_unavailable = size(new) - available(new);
    let mut spare = size(new) + total(&old) - asked.fewest() - new_unavailable;
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
    let mut missed = (all_available - asked.fewest()).max(0);
    for (_, size) in &mut sizes {
        let less = (*size).min(missed);
        *size -= less;
        missed -= less;
    }
    sizes.retain(|(set, next)| *next != size(set));
    sizes
}

/// Whether the new set is all that it should be.
fn is_saturated(asked: &Asked<'_>, new: &ReplicaSet) -> bool {
    size(new) == asked.wanted
        && noted(new, super::replica_sets::DESIRED) == Some(asked.wanted)
        && available(new) == asked.wanted
}

/// The sizes after the Deployment itself was scaled: each set in proportion, so that a rollout that goes wrong does not go
/// on faster.
pub(super) fn in_proportion(
    asked: &Asked<'_>,
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
        return vec![(only.clone(), asked.wanted)];
    }
    if new.is_some_and(|new| is_saturated(asked, new)) {
        return old.into_iter().filter(|set| size(set) > 0).map(|set| (set, 0)).collect();
    }
    if !asked.rolling {
        // They go by themselves; only what they are sized for is noted.
        return active.into_iter().map(|set| (size(&set), set)).map(|(size, set)| (set, size)).collect();
    }
    let allowed = if asked.wanted > 0 { asked.most() } else { 0 };
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
        let share = share(asked, &set, before);
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
fn share(asked: &Asked<'_>, set: &ReplicaSet, deployment_had: i32) -> i32 {
    let current = size(set);
    if asked.wanted == 0 {
        return -current;
    }
    let before = noted(set, MOST).filter(|most| *most > 0).unwrap_or(deployment_had);
    if before == 0 {
        return 0;
    }
    let exact = f64::from(current) * f64::from(asked.most()) / f64::from(before);
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a cast of a float saturates, and sizes are within its range"
    )]
    let rounded = exact.round() as i32;
    rounded - current
}

/// Whether a set has no pods and wants none, so that it can be forgotten.
pub(super) fn is_empty(set: &ReplicaSet) -> bool {
    let observed = status(set).observed_generation.unwrap_or_default();
    status(set).replicas == 0
        && size(set) == 0
        && set.metadata.generation.unwrap_or_default() <= observed
        && set.metadata.deletion_timestamp.is_none()
}
