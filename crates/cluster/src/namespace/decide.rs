//! What a namespace that ends says of itself, and when it is looked at again.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass::Kind;

/// What a finalizer is given to do its work, before it is looked at again.
const FINALIZERS: i64 = 15;
/// No namespace is looked at more often.
const SHORTEST: Duration = Duration::from_millis(50);

/// What became of the objects of one kind, after they were all deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) count: usize,
    finalizers: BTreeMap<String, usize>,
    /// How many seconds it may still take.
    estimate: i64,
    /// Nothing is known that keeps them.
    unexpected: bool,
}

/// What is left of a kind, so long after the namespace was deleted.
pub(super) fn left(objects: &[ObjectMeta], since: SignedDuration) -> Left {
    let mut finalizers = BTreeMap::new();
    for finalizer in objects.iter().flat_map(|object| object.finalizers.iter().flatten()) {
        *finalizers.entry(finalizer.clone()).or_default() += 1;
    }
    let grace = objects.iter().filter_map(|object| object.deletion_grace_period_seconds).max().unwrap_or(0);
    let grace = if since.as_secs() >= grace { 0 } else { grace };
    let estimate = match grace {
        0 if !finalizers.is_empty() => FINALIZERS,
        grace => grace,
    };
    let unexpected = !objects.is_empty() && estimate == 0;
    Left { count: objects.len(), finalizers, estimate, unexpected }
}

/// All that was found out in a reconcile.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Why the kinds are not all known.
    pub(super) undiscovered: Option<String>,
    /// Why something was not deleted.
    failures: Vec<String>,
    left: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    estimate: i64,
}

impl Found {
    /// What became of a kind.
    pub(super) fn add(&mut self, namespace: &str, kind: &Kind, left: Result<Left, String>) {
        let left = match left {
            Ok(left) => left,
            Err(why) => return self.failures.push(why),
        };
        if left.unexpected {
            let Kind { group, version, plural, .. } = kind;
            self.failures.push(format!(
                "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={plural}"
            ));
        }
        if left.count > 0 {
            self.left.insert(format!("{}.{}", kind.plural, kind.group), left.count);
        }
        for (finalizer, count) in left.finalizers {
            *self.finalizers.entry(finalizer).or_default() += count;
        }
        self.estimate = self.estimate.max(left.estimate);
    }

    /// Whether nothing is left and nothing is unknown.
    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty() && self.failures.is_empty() && self.undiscovered.is_none()
    }

    /// Whether something is left.
    pub(super) fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// What went wrong, for who tries again.
    pub(super) fn error(&self) -> Option<String> {
        let all: Vec<&str> = self.undiscovered.iter().chain(&self.failures).map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// When to look again: soon at first, later as time goes by, and never later than half of what it may take.
    pub(super) fn pace(&self, since: SignedDuration) -> Duration {
        let longest = Duration::from_secs(u64::try_from(self.estimate / 2 + 1).unwrap_or(1));
        let since = Duration::try_from(since).unwrap_or_default();
        (since / 4).clamp(SHORTEST, longest)
    }

    /// The conditions that say so; those that say what they said keep their time.
    pub(super) fn conditions(
        &self,
        before: &[NamespaceCondition],
        now: Timestamp,
    ) -> Vec<NamespaceCondition> {
        let listed = |all: &BTreeMap<String, usize>, said: &str| {
            let all: Vec<String> =
                all.iter().map(|(name, count)| format!("{name} {said} {count} resource instances")).collect();
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
                listed(&self.left, "has")
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

    fn found(objects: &[ObjectMeta], since: i64) -> Found {
        let mut found = Found::default();
        found.add("shop", &kind(), Ok(left(objects, SignedDuration::from_secs(since))));
        found
    }

    fn said(found: &Found, of: &str) -> (String, String) {
        let conditions = found.conditions(&[], Timestamp::UNIX_EPOCH);
        let condition = conditions.into_iter().find(|condition| condition.type_ == of).unwrap();
        (condition.reason.unwrap(), condition.message.unwrap())
    }

    #[test]
    fn what_is_left_and_what_keeps_it_is_named() {
        let found = found(&[object(&["a/b"], None), object(&["a/b", "c/d"], None)], 5);
        assert!(!found.is_empty() && found.error().is_none());
        let remaining = said(&found, "NamespaceContentRemaining");
        assert_eq!(remaining.1, "Some resources are remaining: pods. has 2 resource instances");
        let finalizers = said(&found, "NamespaceFinalizersRemaining");
        assert_eq!(
            finalizers.1,
            "Some content in the namespace has finalizers remaining: a/b in 2 resource instances, c/d in 1 resource instances"
        );
        assert_eq!(said(&found, "NamespaceDeletionContentFailure").0, "ContentDeleted");
    }

    #[test]
    fn what_should_be_gone_and_is_not_is_a_failure() {
        let stops = found(&[object(&[], Some(30))], 10);
        assert!(stops.error().is_none(), "it has time");
        let late = found(&[object(&[], Some(30))], 30);
        assert_eq!(
            said(&late, "NamespaceDeletionContentFailure").1,
            "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop for gvr: \
             /v1, Resource=pods"
        );
    }

    #[test]
    fn it_is_looked_at_ever_more_seldom() {
        let found = found(&[object(&["a/b"], None)], 0);
        let pace = |since: i64| found.pace(SignedDuration::from_secs(since)).as_millis();
        assert_eq!([pace(-1), pace(0), pace(1), pace(4), pace(600)], [50, 50, 250, 1000, 8000]);
    }

    #[test]
    fn conditions_keep_their_time_until_they_reconcile() {
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(60).unwrap());
        let held = found(&[object(&["a/b"], None)], 0);
        let first = held.conditions(&[], early);
        assert_eq!(held.conditions(&first, late), first);
        let done = Found::default().conditions(&first, late);
        assert_eq!(done[3].last_transition_time, Some(Time(late)));
        assert_eq!(done[0].last_transition_time, Some(Time(early)));
    }
}
