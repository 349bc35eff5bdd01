//! A test that plays the kubelet itself: its pods ask for a scheduler that nobody is, so that no node takes them.

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use windlass_testing::TestCluster;

/// What pods are made from, labelled so: nobody runs them but the test.
pub fn template(app: &str) -> Value {
    json!({ "metadata": { "labels": { "app": app } }, "spec": spec() })
}

/// What such a pod is.
pub fn spec() -> Value {
    json!({
        "schedulerName": "nobody",
        "terminationGracePeriodSeconds": 1,
        "containers": [{ "name": "main", "image": "registry.example/main:1" }],
    })
}

/// The pod runs and is ready.
///
/// # Errors
/// When it is not there in time.
pub async fn ready(cluster: &TestCluster, name: &str) -> anyhow::Result<Pod> {
    let pod = cluster.eventually::<Pod>(name).is_there().await?;
    let now = cluster.clock().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let status = json!({
        "phase": "Running",
        "startTime": now,
        "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": now }],
        "containerStatuses": [container(&json!({ "running": { "startedAt": now } }))],
    });
    let name = pod.metadata.name.context("a pod has a name")?;
    cluster.patch_status::<Pod>(&name, status).await
}

/// The pod's container ended with this code.
///
/// # Errors
/// When it is not there in time.
pub async fn ended(cluster: &TestCluster, name: &str, code: i32) -> anyhow::Result<Pod> {
    cluster.eventually::<Pod>(name).is_there().await?;
    let now = cluster.clock().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let terminated = json!({ "terminated": { "exitCode": code, "startedAt": now, "finishedAt": now } });
    let status = json!({
        "phase": if code == 0 { "Succeeded" } else { "Failed" },
        "startTime": now,
        "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": now }],
        "containerStatuses": [container(&terminated)],
    });
    cluster.patch_status::<Pod>(name, status).await
}

fn container(state: &Value) -> Value {
    let running = state.get("running").is_some();
    json!({
        "name": "main", "image": "registry.example/main:1", "imageID": "", "restartCount": 0,
        "ready": running, "started": running, "state": state,
    })
}

/// The names of the pods that are there and not on their way out, in order.
///
/// # Errors
/// When they cannot be listed.
pub async fn names(cluster: &TestCluster) -> anyhow::Result<Vec<String>> {
    let pods = cluster.list::<Pod>().await?.into_iter();
    let staying = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let mut names: Vec<String> = staying.filter_map(|pod| pod.metadata.name).collect();
    names.sort();
    Ok(names)
}
