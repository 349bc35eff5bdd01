//! Nodes and what is on them: scheduling, the life of pods, and nodes that fall silent.

use crate::grounds::whole_cluster;
use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use windlass_harness::{Suite, Target};
use windlass_testing::object;

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite.test("a pod is scheduled, runs, is ready, and goes when it is deleted", runs_and_goes)
}

fn pod(name: &str, annotations: Value, spec: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
    });
    if let (Some(whole), Some(more)) = (pod["spec"].as_object_mut(), spec.as_object()) {
        whole.extend(more.clone());
    }
    object(name, pod)
}

async fn runs_and_goes(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(pod("web", json!({}), json!({}))).await?;
    let running = cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    let status = running.status.unwrap_or_default();
    ensure!(status.phase.as_deref() == Some("Running"), "{status:?}");
    ensure!(status.pod_ip.is_some() && status.host_ip.is_some() && status.start_time.is_some(), "{status:?}");
    let conditions: Vec<(&str, &str)> =
        status.conditions.iter().flatten().map(|condition| (&*condition.type_, &*condition.status)).collect();
    for of in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        ensure!(conditions.contains(&(of, "True")), "{conditions:?}");
    }
    cluster.delete::<Pod>("web").await?;
    cluster.eventually::<Pod>("web").is_gone().await
}
