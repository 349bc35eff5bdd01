//! `windlass node simulate`.

use crate::process::{Cluster, windlass};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

async fn made<K>(client: &Client, object: serde_json::Value)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + DeserializeOwned,
{
    let object = serde_json::from_value(object).unwrap();
    Api::<K>::default_namespaced(client.clone()).create(&PostParams::default(), &object).await.unwrap();
}

#[tokio::test]
async fn nodes_join_run_pods_and_go_with_a_signal() {
    let runtime = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(runtime.path(), &[]);
    let kubeconfig = cluster.kubeconfig();
    let config = Kubeconfig::read_from(&kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let path = kubeconfig.to_str().unwrap();
    let arguments = ["node", "simulate", "--kubeconfig", path, "--count", "2", "--label", "zone=a"];
    let mut child = windlass(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.starts_with("joined: simulated-1, simulated-2;"), "{said}");
    let nodes = Api::<Node>::all(client.clone());
    let labelled = nodes.list(&ListParams::default().labels("zone=a")).await.unwrap();
    assert_eq!(labelled.items.len(), 2);
    made::<ServiceAccount>(&client, json!({"metadata": {"name": "default"}})).await;
    let spec = json!({"nodeName": "simulated-2", "containers": [{"name": "c", "image": "i"}]});
    made::<Pod>(&client, json!({"metadata": {"name": "p"}, "spec": spec})).await;
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let phase = |pod: Pod| pod.status.and_then(|status| status.phase);
    let mut looks = 0;
    while phase(pods.get("p").await.unwrap()).as_deref() != Some("Running") {
        looks += 1;
        assert!(looks < 4000, "the pod does not run");
        windlass_clock::Clock::real().sleep(std::time::Duration::from_millis(5)).await;
    }
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert!(tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap().success());
    assert!(nodes.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[test]
fn what_cannot_be_joined_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let stages = folder.path().join("stages.yaml");
    std::fs::write(&stages, "- says: { ready: 5s }").unwrap();
    let stages = stages.to_str().unwrap();
    for (arguments, part) in [
        (vec!["--kubeconfig", "/nowhere"], "cannot use /nowhere"),
        (
            vec!["--kubeconfig", "/nowhere", "--stages", stages],
            "stage 1: unknown key \"ready\"; known keys are start-after",
        ),
        (vec!["--kubeconfig", "/nowhere", "--stages", "/none.yaml"], "cannot read /none.yaml"),
    ] {
        let said = windlass(&["node", "simulate"]).args(arguments).output().unwrap();
        let text = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(1));
        assert!(text.starts_with("error: ") && text.contains(part) && text.lines().count() == 1, "{text}");
    }
    let said = windlass(&["node", "simulate", "--kubeconfig", "x", "--label", "zone"]).output().unwrap();
    assert!(String::from_utf8(said.stderr).unwrap().contains("it is written as name=value"));
}
