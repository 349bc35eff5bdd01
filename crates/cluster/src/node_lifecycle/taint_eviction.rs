//! When pods are evicted from a tainted node. Pure.

use crate::scheduler::covers;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, Taint, Toleration};

/// When a pod is evicted from a node with these taints; never, if it tolerates them without a limit. Toleration seconds count
/// from when the taint was added or the pod was started, whichever is later.
pub(super) fn eviction_time(pod: &Pod, taints: &[Taint], now: Timestamp) -> Option<Timestamp> {
    let taints: Vec<&Taint> = taints.iter().filter(|taint| taint.effect == "NoExecute").collect();
    if taints.is_empty() {
        return None;
    }
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let mut used: Vec<&Toleration> = Vec::new();
    for taint in &taints {
        match tolerations.iter().find(|toleration| covers(toleration, taint)) {
            Some(toleration) => used.push(toleration),
            None => return Some(now),
        }
    }
    let seconds = used.iter().filter_map(|toleration| toleration.toleration_seconds).min()?.max(0);
    let added = taints.iter().filter_map(|taint| taint.time_added.as_ref()).map(|time| time.0).max();
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0);
    let since = added.into_iter().chain(started).max().unwrap_or(now);
    since.checked_add(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn toleration_seconds_delay_the_eviction() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let taints: Vec<Taint> = serde_json::from_value(
            json!([{"key": "bad", "effect": "NoExecute", "timeAdded": "2026-01-01T00:09:00Z"}, {"key": "no", "effect": "NoSchedule"}]),
        )
        .unwrap();
        let pod = |tolerations: serde_json::Value| -> Pod {
            serde_json::from_value(json!({"spec": {"containers": [], "tolerations": tolerations}})).unwrap()
        };
        let at = |text: &str| Some(text.parse().unwrap());
        assert_eq!(eviction_time(&pod(json!([])), &taints, now), Some(now));
        assert_eq!(eviction_time(&pod(json!([{"operator": "Exists"}])), &taints, now), None);
        let patient = pod(json!([{"key": "bad", "operator": "Exists", "tolerationSeconds": 300}]));
        assert_eq!(eviction_time(&patient, &taints, now), at("2026-01-01T00:14:00Z"));
        assert_eq!(eviction_time(&patient, &[], now), None);
        let hasty = pod(json!([{"key": "bad", "operator": "Exists", "tolerationSeconds": -5}]));
        assert_eq!(eviction_time(&hasty, &taints, now), at("2026-01-01T00:09:00Z"));
    }
}
