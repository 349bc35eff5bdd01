//! What remains of a terminating namespace, the conditions that report it, and when to check again.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass::Kind;

/// How long a finalizer is expected to take.
const FINALIZER_ESTIMATE_SECONDS: i64 = 15;
/// The shortest pause between two checks of a namespace.
const MIN_REQUEUE: Duration = Duration::from_millis(50);

/// The remaining objects of one kind, after all were deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Remaining {
    pub(super) count: usize,
    finalizers: BTreeMap<String, usize>,
    /// The number of seconds that it may still take.
    estimate: i64,
    /// Objects remain that nothing is known to hold.
    unexpected: bool,
}

/// The remaining objects of a kind, this long after the namespace was deleted.
pub(super) fn remaining(objects: &[ObjectMeta], since: SignedDuration) -> Remaining {
    let mut finalizers = BTreeMap::new();
    for finalizer in objects.iter().flat_map(|object| object.finalizers.iter().flatten()) {
        *finalizers.entry(finalizer.clone()).or_default() += 1;
    }
    let grace = objects.iter().filter_map(|object| object.deletion_grace_period_seconds).max().unwrap_or(0);
    let grace = if since.as_secs() >= grace { 0 } else { grace };
    let estimate = match grace {
        0 if !finalizers.is_empty() => FINALIZER_ESTIMATE_SECONDS,
        grace => grace,
    };
    let unexpected = !objects.is_empty() && estimate == 0;
    Remaining { count: objects.len(), finalizers, estimate, unexpected }
}

/// What a reconcile found.
#[derive(Debug, Default)]
pub(super) struct DeletionProgress {
    /// Why discovery is incomplete.
    pub(super) undiscovered: Option<String>,
    /// Why deletions failed.
    failures: Vec<String>,
    remaining: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    estimate: i64,
}

impl DeletionProgress {
    /// Adds the result for a kind.
    pub(super) fn add(&mut self, namespace: &str, kind: &Kind, remaining: Result<Remaining, String>) {
        let remaining = match remaining {
            Ok(remaining) => remaining,
            Err(why) => return self.failures.push(why),
        };
        if remaining.unexpected {
            let Kind { group, version, plural, .. } = kind;
            self.failures.push(format!(
                "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={plural}"
            ));
        }
        if remaining.count > 0 {
            self.remaining.insert(format!("{}.{}", kind.plural, kind.group), remaining.count);
        }
        for (finalizer, count) in remaining.finalizers {
            *self.finalizers.entry(finalizer).or_default() += count;
        }
        self.estimate = self.estimate.max(remaining.estimate);
    }

    /// Whether nothing remains and nothing is unknown.
    pub(super) fn is_empty(&self) -> bool {
        self.remaining.is_empty() && self.failures.is_empty() && self.undiscovered.is_none()
    }

    /// Whether objects remain.
    pub(super) fn has_remaining(&self) -> bool {
        !self.remaining.is_empty()
    }

    /// The errors, to retry on.
    pub(super) fn error(&self) -> Option<String> {
        let all: Vec<&str> = self.undiscovered.iter().chain(&self.failures).map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// When to check again: soon at first, then less often, and never later than half of the estimate.
    pub(super) fn requeue_after(&self, since: SignedDuration) -> Duration {
        let longest = Duration::from_secs(u64::try_from(self.estimate / 2 + 1).unwrap_or(1));
        let since = Duration::try_from(since).unwrap_or_default();
        (since / 4).clamp(MIN_REQUEUE, longest)
    }

    /// The conditions that report it; unchanged ones keep their transition time.
    pub(super) fn conditions(
        &self,
        before: &[NamespaceCondition],
        now: Timestamp,
    ) -> Vec<NamespaceCondition> {
        let listed = |all: &BTreeMap<String, usize>, verb: &str| {
            let all: Vec<String> =
                all.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect();
            (!all.is_empty()).then(|| all.join(", "))
        };
        let mut failures = self.failures.clone();
        failures.sort();
        let failed = (!failures.is_empty()).then(|| {
            format!(
                "Failed to delete all resource types, {} remaining: {}",
                failures.len(),
                failures.join(", ")
            )
        });
        let states = [
            (
                "NamespaceDeletionDiscoveryFailure",
                self.undiscovered.clone().map(|why| ("DiscoveryFailed", why)),
                ("ResourcesDiscovered", "All resources successfully discovered"),
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                None,
                ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
            ),
            (
                "NamespaceDeletionContentFailure",
                failed.map(|why| ("ContentDeletionFailed", why)),
                ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
            ),
            (
                "NamespaceContentRemaining",
                listed(&self.remaining, "has")
                    .map(|all| ("SomeResourcesRemain", format!("Some resources are remaining: {all}"))),
                ("ContentRemoved", "All content successfully removed"),
            ),
            (
                "NamespaceFinalizersRemaining",
                listed(&self.finalizers, "in").map(|all| {
                    (
                        "SomeFinalizersRemain",
                        format!("Some content in the namespace has finalizers remaining: {all}"),
                    )
                }),
                ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
            ),
        ];
        let mut after = before.to_vec();
        for (of, trouble, (reason, message)) in states {
            let status = if trouble.is_some() { "True" } else { "False" };
            let (reason, message) = trouble.unwrap_or_else(|| (reason, message.to_owned()));
            let known = after.iter().position(|condition| condition.type_ == of);
            let since = known.map(|at| &after[at]).filter(|old| old.status == status);
            let since = since.and_then(|old| old.last_transition_time.clone()).unwrap_or(Time(now));
            let condition = NamespaceCondition {
                type_: of.to_owned(),
                status: status.to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message),
                last_transition_time: Some(since),
            };
            match known {
                Some(at) => after[at] = condition,
                None => after.push(condition),
            }
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(finalizers: &[&str], grace: Option<i64>) -> ObjectMeta {
        ObjectMeta {
            finalizers: Some(finalizers.iter().map(|name| (*name).to_owned()).collect()),
            deletion_grace_period_seconds: grace,
            ..ObjectMeta::default()
        }
    }

    fn kind() -> Kind {
        Kind {
            group: "".into(),
            version: "v1".into(),
            kind: "Pod".into(),
            plural: "pods".into(),
            namespaced: true,
        }
    }

    fn progress(objects: &[ObjectMeta], since: i64) -> DeletionProgress {
        let mut progress = DeletionProgress::default();
        progress.add("shop", &kind(), Ok(remaining(objects, SignedDuration::from_secs(since))));
        progress
    }

    fn condition_text(progress: &DeletionProgress, of: &str) -> (String, String) {
        let conditions = progress.conditions(&[], Timestamp::UNIX_EPOCH);
        let condition = conditions.into_iter().find(|condition| condition.type_ == of).unwrap();
        (condition.reason.unwrap(), condition.message.unwrap())
    }

    #[test]
    fn what_is_left_and_what_keeps_it_is_named() {
        let progress = progress(&[object(&["a/b"], None), object(&["a/b", "c/d"], None)], 5);
        assert!(!progress.is_empty() && progress.error().is_none());
        let remaining = condition_text(&progress, "NamespaceContentRemaining");
        assert_eq!(remaining.1, "Some resources are remaining: pods. has 2 resource instances");
        let finalizers = condition_text(&progress, "NamespaceFinalizersRemaining");
        assert_eq!(
            finalizers.1,
            "Some content in the namespace has finalizers remaining: a/b in 2 resource instances, c/d in 1 resource instances"
        );
        assert_eq!(condition_text(&progress, "NamespaceDeletionContentFailure").0, "ContentDeleted");
    }

    #[test]
    fn what_should_be_gone_and_is_not_is_a_failure() {
        let stops = progress(&[object(&[], Some(30))], 10);
        assert!(stops.error().is_none(), "it has time");
        let late = progress(&[object(&[], Some(30))], 30);
        assert_eq!(
            condition_text(&late, "NamespaceDeletionContentFailure").1,
            "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop for gvr: \
             /v1, Resource=pods"
        );
    }

    #[test]
    fn it_is_looked_at_ever_more_seldom() {
        let progress = progress(&[object(&["a/b"], None)], 0);
        let requeue_after = |since: i64| progress.requeue_after(SignedDuration::from_secs(since)).as_millis();
        assert_eq!(
            [requeue_after(-1), requeue_after(0), requeue_after(1), requeue_after(4), requeue_after(600)],
            [50, 50, 250, 1000, 8000]
        );
    }

    #[test]
    fn conditions_keep_their_transition_time_until_their_status_changes() {
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(60).unwrap());
        let held = progress(&[object(&["a/b"], None)], 0);
        let first = held.conditions(&[], early);
        assert_eq!(held.conditions(&first, late), first);
        let done = DeletionProgress::default().conditions(&first, late);
        assert_eq!(done[3].last_transition_time, Some(Time(late)));
        assert_eq!(done[0].last_transition_time, Some(Time(early)));
    }
}
