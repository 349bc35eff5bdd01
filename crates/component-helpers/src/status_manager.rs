//! What a kubelet writes about a pod: its status, and at last its deletion. What the API answers goes into the cache at once.

use crate::pod_conditions::{KUBELET_CONDITIONS, TERMINATION_BY_KUBELET};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass::Key;
use windlass::cache::{ObjectVersion, Opened};

fn path(key: &Key) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", key.namespace().unwrap_or_default(), key.name())
}

/// Patches a pod's status. Returns whether the pod of this UID still exists.
///
/// # Errors
/// When the API rejects the patch or cannot be reached.
pub async fn patch_status(
    client: &Client,
    pods: &Opened<Pod>,
    key: &Key,
    pod: &Pod,
    status: &PodStatus,
) -> Result<bool, kube::Error> {
    let path = format!("{}/status?fieldManager=kubelet", path(key));
    let request = http::Request::patch(path)
        .header(http::header::CONTENT_TYPE, "application/strategic-merge-patch+json")
        .body(status_patch(pod, status).to_string().into_bytes());
    match client.request_text(request.map_err(kube::Error::HttpError)?).await {
        Ok(answer) => {
            if let Err(error) = pods.wrote_text(answer.as_bytes(), None) {
                tracing::debug!(pod = %key, "the answer to a status patch is no pod: {error}");
            }
            Ok(true)
        }
        // Deleted, or replaced by another of its name: the watch will say so.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes a pod whose containers have terminated, without a grace period.
///
/// # Errors
/// When the API rejects the deletion or cannot be reached.
pub async fn delete_pod(
    client: &Client,
    pods: &Opened<Pod>,
    key: &Key,
    pod: &Pod,
) -> Result<(), kube::Error> {
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "gracePeriodSeconds": 0, "preconditions": { "uid": pod.metadata.uid },
    });
    let request = http::Request::delete(path(key))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(options.to_string().into_bytes());
    match client.request_text(request.map_err(kube::Error::HttpError)?).await {
        Ok(answer) => {
            let Deleted { metadata } = serde_json::from_str(&answer).unwrap_or_default();
            if metadata.finalizers.is_empty() {
                if let Some(last) = metadata.version().or_else(|| pods.version_of(key)) {
                    pods.wrote_gone(key, &last, None);
                }
            } else {
                let _ = pods.wrote_text(answer.as_bytes(), None);
            }
            Ok(())
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The part of the answer to a deletion that is read.
#[derive(Default, Deserialize)]
struct Deleted {
    #[serde(default)]
    metadata: DeletedMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeletedMeta {
    uid: String,
    resource_version: String,
    finalizers: Vec<String>,
}

impl DeletedMeta {
    fn version(&self) -> Option<ObjectVersion> {
        let version = self.resource_version.parse().ok()?;
        (!self.uid.is_empty()).then(|| ObjectVersion { uid: self.uid.as_str().into(), version })
    }
}

/// The strategic merge patch of a status: the conditions that a kubelet owns, and none of the others'.
fn status_patch(pod: &Pod, status: &PodStatus) -> Value {
    let mut status = json!(status);
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.retain(|condition| {
            condition["type"].as_str().is_some_and(|of| KUBELET_CONDITIONS.contains(&of))
                || condition["reason"] == TERMINATION_BY_KUBELET
        });
        for condition in conditions {
            // A merge keeps the fields that a patch does not name: what is unset has to be null.
            for field in ["reason", "message"] {
                if condition.get(field).is_none() {
                    condition[field] = Value::Null;
                }
            }
        }
    }
    json!({ "metadata": { "uid": pod.metadata.uid }, "status": status })
}
