//! Pods that no node takes: the test itself says how they fare, so that every moment can be looked at.

use anyhow::Context;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_testing::{TestCluster, object};

/// A template of pods with this label `app`, for no node that there is.
pub fn template(app: &str, image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app } },
        "spec": {
            "nodeSelector": { "windlass.dev/by-hand": "yes" },
            "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "app", "image": image }],
        },
    })
}

/// A pod on its own, as those of [`template`]; its namespace has the account that it needs.
///
/// # Errors
/// When it cannot be made.
pub async fn lone_pod(cluster: &TestCluster, name: &str, app: &str) -> anyhow::Result<Pod> {
    cluster.eventually::<ServiceAccount>("default").is_there().await?;
    cluster.create(object(name, template(app, "nginx"))).await
}

/// The pods with this label `app` that count, by name.
///
/// # Errors
/// When the API does not answer.
pub async fn pods(cluster: &TestCluster, app: &str) -> anyhow::Result<Vec<Pod>> {
    let mut pods = cluster.list::<Pod>().await?;
    pods.retain(|pod| {
        let ended = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        pod.labels().get("app").is_some_and(|label| label == app)
            && pod.metadata.deletion_timestamp.is_none()
            && !matches!(ended, Some("Failed" | "Succeeded"))
    });
    pods.sort_by_key(ResourceExt::name_any);
    Ok(pods)
}

/// Waits until there are so many of them.
///
/// # Errors
/// When there are not, in time.
pub async fn so_many(cluster: &TestCluster, app: &str, count: usize) -> anyhow::Result<Vec<Pod>> {
    let what = format!("there are {count} pods of {app}");
    cluster.until(&what, || pods(cluster, app), |pods| pods.len() == count).await
}

/// Says that a pod runs and is ready, or not.
///
/// # Errors
/// When the API refuses.
pub async fn fares(cluster: &TestCluster, pod: &Pod, ready: bool) -> anyhow::Result<Pod> {
    let now = cluster.clock().now();
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        jiff::Timestamp::from_second(now.as_second()).context("a time of now")?,
    );
    let status = if ready { "True" } else { "False" };
    let status = json!({
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": status, "lastTransitionTime": now }],
    });
    cluster.patch_status::<Pod>(&pod.name_any(), status).await
}

/// Says of all pods that count that they are ready.
///
/// # Errors
/// When the API refuses.
pub async fn all_ready(cluster: &TestCluster, app: &str) -> anyhow::Result<usize> {
    let mut changed = 0;
    for pod in pods(cluster, app).await? {
        if !is_ready(&pod) {
            match fares(cluster, &pod, true).await {
                Ok(_) => changed += 1,
                // Gone since it was listed.
                Err(error) if format!("{error:#}").contains("not found") => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(changed)
}

/// Whether a pod is ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Who controls a pod, by name.
pub fn controller(pod: &Pod) -> Option<&str> {
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    Some(&owner.name)
}
