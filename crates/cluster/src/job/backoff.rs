//! The back-off of a Job before it replaces a failed pod.

use crate::pods;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

/// The delay after the first failure; it doubles with each.
const INITIAL: SignedDuration = SignedDuration::from_secs(10);
/// The longest delay.
const MAX: SignedDuration = SignedDuration::from_mins(10);

/// When a pod finished: its last container, else when it stopped being ready, else when it was deleted.
pub(super) fn finished_at(pod: &Pod) -> Timestamp {
    by_containers(pod).or_else(|| by_readiness(pod)).or_else(|| by_deletion(pod)).unwrap_or_else(|| {
        let created = pod.metadata.creation_timestamp.as_ref();
        created.map_or(Timestamp::UNIX_EPOCH, |time| time.0)
    })
}

fn by_containers(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let sidecar = |name: &str| {
        let mut inits = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        inits.any(|init| init.name == name && init.restart_policy.as_deref() == Some("Always"))
    };
    let inits = status.init_container_statuses.iter().flatten().filter(|init| sidecar(&init.name));
    let all = status.container_statuses.iter().flatten().chain(inits);
    let ends = all.map(|container| {
        let state = container.state.as_ref()?;
        Some(state.terminated.as_ref()?.finished_at.as_ref()?.0)
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

fn by_readiness(pod: &Pod) -> Option<Timestamp> {
    let ready = pods::condition(pod, "Ready").filter(|ready| ready.status == "False")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

fn by_deletion(pod: &Pod) -> Option<Timestamp> {
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
    let deleted = pod.metadata.deletion_timestamp.as_ref()?;
    deleted.0.checked_sub(SignedDuration::from_secs(grace)).ok()
}

/// Until when a Job backs off after this many consecutive failures, the last of them at `last`.
pub(super) fn until(failures: u32, last: Timestamp) -> Option<Timestamp> {
    let doublings = failures.checked_sub(1)?.min(16);
    let wait = INITIAL.checked_mul(1 << doublings).map_or(MAX, |wait| wait.min(MAX));
    last.checked_add(wait).ok()
}

/// Until when a Job with these finished pods backs off: by the failures since the last success.
pub(super) fn until_after<'a>(
    succeeded: impl Iterator<Item = &'a Pod>,
    failed: impl Iterator<Item = &'a Pod>,
) -> Option<Timestamp> {
    let well = succeeded.map(finished_at).max();
    let since: Vec<Timestamp> =
        failed.map(finished_at).filter(|at| well.is_none_or(|well| *at > well)).collect();
    until(u32::try_from(since.len()).ok()?, since.into_iter().max()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn ended(second: i64) -> Pod {
        let terminated = json!({ "exitCode": 1, "finishedAt": at(second).to_string() });
        let container = json!({
            "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "terminated": terminated },
        });
        serde_json::from_value(json!({ "status": { "containerStatuses": [container] } })).unwrap()
    }

    #[test]
    fn the_wait_doubles_up_to_ten_minutes() {
        let waits: Vec<_> = (0..9).map(|failures| until(failures, at(0))).collect();
        let seconds = [10, 20, 40, 80, 160, 320, 600, 600].map(|seconds| Some(at(seconds)));
        assert_eq!(waits[0], None);
        assert_eq!(waits[1..], seconds);
        assert_eq!(until(u32::MAX, at(0)), Some(at(600)));
    }

    #[test]
    fn a_success_forgives_the_failures_before_it() {
        let failed = [ended(10), ended(20), ended(30)];
        assert_eq!(until_after([].iter(), failed.iter()), Some(at(70)));
        assert_eq!(until_after([ended(20)].iter(), failed.iter()), Some(at(40)));
        assert_eq!(until_after([ended(40)].iter(), failed.iter()), None);
    }

    #[test]
    fn a_pod_that_was_deleted_ended_when_it_was_asked_to() {
        let metadata = json!({
            "deletionTimestamp": at(100).to_string(), "deletionGracePeriodSeconds": 30,
            "creationTimestamp": at(5).to_string(),
        });
        let deleted: Pod = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        assert_eq!(finished_at(&deleted), at(70));
        assert_eq!(finished_at(&ended(3)), at(3));
    }
}
