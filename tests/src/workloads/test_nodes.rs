//! Nodes for one test, and pods for them: on the reference other tests have theirs at the same time.

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};
use windlass_cluster::simulated_kubelet::{Options, SimulatedKubelet};
use windlass_testing::{TestCluster, object};

/// A pod with these annotations for the simulated node, and these fields in its spec.
pub(super) fn pod(name: &str, annotations: Value, spec: Value) -> Pod {
    let annotations = annotations.as_object().into_iter().flatten();
    let annotations: serde_json::Map<String, Value> =
        annotations.map(|(key, value)| (format!("simulate.windlass.dev/{key}"), value.clone())).collect();
    let mut pod = json!({
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
    });
    if let (Some(whole), Some(more)) = (pod["spec"].as_object_mut(), spec.as_object()) {
        whole.extend(more.clone());
    }
    object(name, pod)
}

/// Containers that request this much CPU.
pub(super) fn asks(cpu: &str) -> Value {
    json!([{"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": cpu}}}])
}

/// A node of this test's own: nobody else's pods go there.
pub(super) struct Own {
    cluster: TestCluster,
    pub(super) nodes: Vec<SimulatedKubelet>,
}

impl Own {
    pub(super) fn new(cluster: &TestCluster) -> Self {
        Self { cluster: cluster.clone(), nodes: Vec::new() }
    }

    pub(super) fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.cluster.namespace())
    }

    pub(super) async fn join(
        &mut self,
        name: &str,
        more: impl FnOnce(Options) -> Options,
    ) -> anyhow::Result<String> {
        let name = self.name(name);
        let place = self.cluster.namespace();
        let options = Options::named(&name).label("place", place).taint("place", place, "NoSchedule");
        let clock = self.cluster.clock().clone();
        self.nodes.push(SimulatedKubelet::join(self.cluster.client(), clock, more(options)).await?);
        // It is open to pods once its taint for not being ready is gone.
        let open = |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
            taints.len() == 1
        };
        self.cluster.eventually::<Node>(&name).is("open", open).await?;
        Ok(name)
    }

    /// The spec of a pod that is scheduled to one of them.
    pub(super) fn here(&self, more: Value) -> Value {
        let mut spec = json!({
            "nodeSelector": {"place": self.cluster.namespace()},
            "tolerations": [{"key": "place", "operator": "Exists", "effect": "NoSchedule"}],
            "terminationGracePeriodSeconds": 1,
        });
        if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        spec
    }

    pub(super) async fn leave(self) -> anyhow::Result<()> {
        for node in self.nodes {
            node.leave().await?;
        }
        Ok(())
    }
}

/// The node that a pod is on.
pub(super) fn node_of(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}
