//! Pods that are never scheduled, since their scheduler does not exist: the test writes their status, as a kubelet would, so that it
//! controls every transition.

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_testing::{TestCluster, object};

/// What such a pod is.
pub fn spec() -> Value {
    json!({
        "schedulerName": "nobody",
        "terminationGracePeriodSeconds": 0,
        "containers": [{ "name": "app", "image": "nginx" }],
    })
}

/// A template of such pods with this label `app`.
pub fn template(app: &str, image: &str) -> Value {
    let mut spec = spec();
    spec["containers"][0]["image"] = image.into();
    json!({ "metadata": { "labels": { "app": app } }, "spec": spec })
}

/// A pod on its own, as those of [`template`]; its namespace has the account that it needs.
///
/// # Errors
/// When it cannot be made.
pub async fn lone_pod(cluster: &TestCluster, name: &str, app: &str) -> anyhow::Result<Pod> {
    cluster.eventually::<ServiceAccount>("default").exists().await?;
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

/// Waits until there are this many of them.
///
/// # Errors
/// When there are not, in time.
pub async fn wait_for_count(cluster: &TestCluster, app: &str, count: usize) -> anyhow::Result<Vec<Pod>> {
    let what = format!("there are {count} pods of {app}");
    cluster.until(&what, || pods(cluster, app), |pods| pods.len() == count).await
}

/// The names of all pods that are there and not on their way out, in order.
///
/// # Errors
/// When they cannot be listed.
pub async fn names(cluster: &TestCluster) -> anyhow::Result<Vec<String>> {
    let pods = cluster.list::<Pod>().await?.into_iter();
    let staying = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let mut names: Vec<String> = staying.map(|pod| pod.name_any()).collect();
    names.sort();
    Ok(names)
}

/// Says that a pod runs and is ready, or not.
///
/// # Errors
/// When the API refuses.
pub async fn fares(cluster: &TestCluster, pod: &Pod, ready: bool) -> anyhow::Result<Pod> {
    let now = now(cluster);
    let running = json!({ "running": { "startedAt": now } });
    says(cluster, &pod.name_any(), "Running", ready, &running).await
}

/// Says that the pod of this name, once it is there, runs and is ready.
///
/// # Errors
/// When it is not there in time.
pub async fn ready(cluster: &TestCluster, name: &str) -> anyhow::Result<Pod> {
    let pod = cluster.eventually::<Pod>(name).exists().await?;
    fares(cluster, &pod, true).await
}

/// Says that the container of the pod of this name, once it is there, ended with this code.
///
/// # Errors
/// When it is not there in time.
pub async fn ended(cluster: &TestCluster, name: &str, code: i32) -> anyhow::Result<Pod> {
    cluster.eventually::<Pod>(name).exists().await?;
    let now = now(cluster);
    let terminated = json!({ "terminated": { "exitCode": code, "startedAt": now, "finishedAt": now } });
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    says(cluster, name, phase, false, &terminated).await
}

async fn says(
    cluster: &TestCluster,
    name: &str,
    phase: &str,
    ready: bool,
    state: &Value,
) -> anyhow::Result<Pod> {
    let now = now(cluster);
    let runs = phase == "Running";
    let status = json!({
        "phase": phase,
        "startTime": now,
        "conditions": [{
            "type": "Ready", "status": if ready { "True" } else { "False" }, "lastTransitionTime": now,
        }],
        "containerStatuses": [{
            "name": "app", "image": "nginx", "imageID": "", "restartCount": 0,
            "ready": ready, "started": runs, "state": state,
        }],
    });
    cluster.patch_status::<Pod>(name, status).await
}

fn now(cluster: &TestCluster) -> String {
    cluster.clock().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
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
