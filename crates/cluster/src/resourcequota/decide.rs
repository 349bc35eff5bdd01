//! Whether the status of a quota has to be written, and when.

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass::quantity;

/// How long a lower count must hold before it is written: what admission has charged may be about to be stored.
pub(super) const DECREASE_DELAY: Duration = Duration::from_millis(200);

/// What to do about a quota.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// Its status is up to date.
    Settled,
    /// Write this status.
    Write(ResourceQuotaStatus),
    /// Less may be used than the status says: count again after this pause.
    Wait(Duration),
}

/// What to do about a quota with this usage. `unchanged` is how long the quota has had this resourceVersion while a lower
/// count was observed.
pub(super) fn verdict(
    quota: &ResourceQuota,
    used: BTreeMap<String, Quantity>,
    unchanged: Option<Duration>,
) -> Verdict {
    let before = quota.status.clone().unwrap_or_default();
    let hard = quota.spec.as_ref().and_then(|spec| spec.hard.clone());
    if before.hard == hard && before.used.as_ref() == Some(&used) {
        return Verdict::Settled;
    }
    let known = before.used.unwrap_or_default();
    let lowers = used.iter().any(|(name, now)| known.get(name).is_some_and(|then| is_less(now, then)));
    if lowers && unchanged.is_none_or(|for_so_long| for_so_long < DECREASE_DELAY) {
        return Verdict::Wait(DECREASE_DELAY.saturating_sub(unchanged.unwrap_or_default()));
    }
    Verdict::Write(ResourceQuotaStatus { hard, used: Some(used) })
}

/// What cannot be compared counts as less.
fn is_less(one: &Quantity, other: &Quantity) -> bool {
    match (quantity::parse(one), quantity::parse(other)) {
        (Ok(one), Ok(other)) => one < other,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn used(pods: &str) -> BTreeMap<String, Quantity> {
        [("pods".to_owned(), Quantity(pods.to_owned()))].into()
    }

    fn judge(quota: &ResourceQuota, pods: &str, unchanged: Option<u64>) -> Verdict {
        verdict(quota, used(pods), unchanged.map(Duration::from_millis))
    }

    #[test]
    fn more_is_written_at_once_and_less_only_when_it_stays_less() {
        let hard = json!({"pods": "5"});
        let new: ResourceQuota = serde_json::from_value(json!({"spec": {"hard": hard}})).unwrap();
        let Verdict::Write(first) = judge(&new, "2", None) else { panic!() };
        let known = ResourceQuota { status: Some(first), ..new };
        assert_eq!(judge(&known, "2", None), Verdict::Settled);
        assert!(matches!(judge(&known, "3", None), Verdict::Write(_)));
        assert_eq!(judge(&known, "1", None), Verdict::Wait(DECREASE_DELAY));
        assert_eq!(judge(&known, "1", Some(150)), Verdict::Wait(Duration::from_millis(50)));
        assert!(matches!(judge(&known, "1", Some(200)), Verdict::Write(_)));
    }
}
