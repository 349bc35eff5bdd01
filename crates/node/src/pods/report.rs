//! What is written to the API about a pod: its status, and its end.

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::Client;
use serde_json::{Value, json};
use windlass::Key;
use windlass::cache::{ObjectVersion, Opened};
use windlass_cluster::node::conditions::{BY_NODE, OURS};

fn path(key: &Key) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", key.namespace().unwrap_or_default(), key.name())
}

/// Writes a pod's status. Answers whether it is still the same pod.
pub(crate) async fn status(
    client: &Client,
    pods: &Opened<Pod>,
    key: &Key,
    pod: &Pod,
    status: &PodStatus,
) -> Result<bool, kube::Error> {
    let path = format!("{}/status?fieldManager=kubelet", path(key));
    let request = http::Request::patch(path)
        .header(http::header::CONTENT_TYPE, "application/strategic-merge-patch+json")
        .body(patch(pod, status).to_string().into_bytes());
    match client.request::<Value>(request.map_err(kube::Error::HttpError)?).await {
        Ok(answer) => {
            if let Err(error) = pods.wrote(&answer, None) {
                tracing::debug!(pod = %key, "a pod's status was answered with something else: {error}");
            }
            Ok(true)
        }
        // Gone, or another of its name: the watch tells.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the pod away: nothing of it runs any more.
pub(crate) async fn remove(
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
    match client.request::<Value>(request.map_err(kube::Error::HttpError)?).await {
        Ok(answer) => {
            let held = answer.pointer("/metadata/finalizers").and_then(Value::as_array);
            if held.is_some_and(|held| !held.is_empty()) {
                let _ = pods.wrote(&answer, None);
            } else if let Some(last) = stamp(&answer).or_else(|| pods.stamp(key)) {
                pods.wrote_gone(key, &last, None);
            }
            Ok(())
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error),
    }
}

fn stamp(answer: &Value) -> Option<ObjectVersion> {
    let meta = answer.get("metadata")?;
    let version = meta.get("resourceVersion")?.as_str()?.parse().ok()?;
    Some(ObjectVersion { uid: meta.get("uid")?.as_str()?.into(), version })
}

/// The status as a kubelet sends it: what it says itself, and nothing of what others do.
fn patch(pod: &Pod, status: &PodStatus) -> Value {
    let mut status = json!(status);
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.retain(|condition| {
            condition["type"].as_str().is_some_and(|of| OURS.contains(&of)) || condition["reason"] == BY_NODE
        });
        for condition in conditions {
            // What is not said any more must go, and a merge keeps what is not named.
            for field in ["reason", "message"] {
                if condition.get(field).is_none() {
                    condition[field] = Value::Null;
                }
            }
        }
    }
    json!({ "metadata": { "uid": pod.metadata.uid }, "status": status })
}
