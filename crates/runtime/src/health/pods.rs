//! What a pod says of itself.

use k8s_openapi::api::core::v1::Pod;

/// Whether a pod takes requests: its `Ready` condition holds, and it is not being deleted.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// let pod: Pod = serde_json::from_value(serde_json::json!({
///     "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
/// })).unwrap();
/// assert!(windlass::health::is_ready(&pod));
/// ```
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.metadata.deletion_timestamp.is_none()
        && conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
