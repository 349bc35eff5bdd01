//! `metrics.k8s.io` on `windlass cluster up`, which `kubectl top` reads.

use crate::process::{Cluster, windlass};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use windlass_clock::Clock;

const NODES: &str = "/apis/metrics.k8s.io/v1beta1/nodes";
const PODS: &str = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
const PATIENCE: Duration = Duration::from_secs(60);

/// A whole cluster with one pod.
struct Running {
    cluster: Cluster,
    client: Client,
    _runtime: tempfile::TempDir,
}

impl Running {
    async fn start(nodes: &str) -> Self {
        let runtime = tempfile::tempdir().unwrap();
        let mut command = windlass(&["cluster", "up", "--nodes", nodes]);
        command.env("XDG_RUNTIME_DIR", runtime.path());
        let cluster = Cluster::of(command);
        let config = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        let running = Self { cluster, client: Client::try_from(config).unwrap(), _runtime: runtime };
        let container = json!({"name": "main", "image": "busybox", "command": ["sleep", "3600"]});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sleeper"},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
        });
        let create = http::Request::post("/api/v1/namespaces/default/pods")
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&pod).unwrap())
            .unwrap();
        running.client.request::<Value>(create).await.unwrap();
        running
    }

    async fn get(&self, path: &str) -> Value {
        self.client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap()
    }

    /// The metrics of the one object of a list, once there are.
    async fn only(&self, path: &str) -> Value {
        let deadline = Clock::real().moment() + PATIENCE;
        loop {
            let list = self.get(path).await;
            match list["items"].as_array().unwrap().as_slice() {
                [one] => return one.clone(),
                items => assert!(items.is_empty(), "{list}"),
            }
            assert!(Clock::real().moment() < deadline, "{path} stays empty");
            Clock::real().sleep(Duration::from_millis(50)).await;
        }
    }

    /// What `kubectl top` prints below its header; nothing where there is no kubectl.
    fn top(&self, what: &str) -> Option<String> {
        let mut kubectl = Command::new("kubectl");
        kubectl.args(["top", what, "--no-headers"]).env("KUBECONFIG", self.cluster.kubeconfig());
        let Ok(said) = kubectl.output() else {
            println!("skipped: kubectl top, for want of kubectl");
            return None;
        };
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        Some(String::from_utf8(said.stdout).unwrap())
    }
}

#[tokio::test]
async fn simulated_nodes_and_pods_use_nothing() {
    let running = Running::start("simulated=1").await;
    let node = running.only(NODES).await;
    assert_eq!(node["metadata"]["name"], "node-1");
    assert_eq!(node["usage"], json!({"cpu": "0", "memory": "0Ki"}));
    let pod = running.only(PODS).await;
    assert_eq!(pod["containers"], json!([{"name": "main", "usage": {"cpu": "0", "memory": "0Ki"}}]));
    if let Some(said) = running.top("node") {
        assert!(said.starts_with("node-1 "), "{said}");
    }
    if let Some(said) = running.top("pod") {
        assert!(said.starts_with("sleeper "), "{said}");
    }
    assert!(running.cluster.end(Signal::SIGTERM).success());
}

#[tokio::test]
async fn nodes_whose_pods_are_processes_are_measured() {
    let said = windlass(&["doctor", "-o", "json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&said.stdout).unwrap();
    let findings = doctor["findings"].as_array().unwrap();
    let has_busybox = findings.iter().any(|one| one["about"] == "image busybox" && one["level"] == "ok");
    if doctor["canRunPods"] != true || !has_busybox {
        println!("skipped: pods cannot be processes here, or there is no busybox");
        return;
    }
    let running = Running::start("process=1").await;
    let pod = running.only(PODS).await;
    let memory = pod["containers"][0]["usage"]["memory"].as_str().unwrap();
    assert!(memory.trim_end_matches("Ki").parse::<u64>().unwrap() > 0, "{pod}");
    let node = running.only(NODES).await;
    assert_eq!(node["metadata"]["name"], "process-1");
    if let Some(said) = running.top("pod") {
        assert!(said.starts_with("sleeper "), "{said}");
    }
    assert!(running.cluster.end(Signal::SIGTERM).success());
}
