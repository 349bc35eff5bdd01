//! What leads to a node, as far as it gets without one.

use super::support::Client;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn with_pod(spec: Value) -> Client {
    let client = Client::new();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    client.post("/api/v1/namespaces/default/serviceaccounts", account).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    client.post(PODS, pod).await.expect(201);
    client
}

fn containers(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name, "image": "i"})).collect()
}

#[tokio::test]
async fn a_pod_without_a_node_has_written_nothing_and_runs_nothing() {
    let client = with_pod(json!({"containers": containers(&["a"])})).await;
    client.get(&format!("{PODS}/other/log")).await.refused(404, "pods \"other\" not found");
    assert_eq!(client.get(&format!("{PODS}/p/log")).await.expect(200), "");
    for what in ["exec?command=true&stdout=1", "attach?stdout=1", "portforward"] {
        let refused = client.get(&format!("{PODS}/p/{what}")).await;
        refused.refused(400, "pod p does not have a host assigned");
        client.delete(&format!("{PODS}/p/{what}")).await.expect(405);
    }
    client.get(&format!("{PODS}/p/proxy/path")).await.refused(400, "address not allowed");
    client.get(&format!("{PODS}/a:b:c:d/proxy")).await.refused(400, "invalid pod request \"a:b:c:d\"");
    client.post(&format!("{PODS}/p/log"), json!({})).await.expect(405);
}

#[tokio::test]
async fn a_container_is_named_where_there_are_several() {
    let client = with_pod(json!({"containers": containers(&["a", "b"]), "nodeName": "gone"})).await;
    let why = "a container name must be specified for pod p, choose one of: [a b]";
    client.get(&format!("{PODS}/p/log")).await.refused(400, why);
    client.get(&format!("{PODS}/p/exec?command=true&stdout=1")).await.refused(400, why);
    let refused = client.get(&format!("{PODS}/p/log?container=c")).await;
    refused.refused(400, "container c is not valid for pod p");
    client.get(&format!("{PODS}/p/log?container=b")).await.refused(404, "nodes \"gone\" not found");
}

#[tokio::test]
async fn a_node_that_does_not_answer_is_told_of() {
    let client = with_pod(json!({"containers": containers(&["a"]), "nodeName": "n"})).await;
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }});
    client.post("/api/v1/nodes", node).await.expect(201);
    let why = format!(
        "Get \"https://127.0.0.1:{port}/containerLogs/default/p/a?tailLines=1\": dial tcp 127.0.0.1:{port}: connect: connection refused"
    );
    client.get(&format!("{PODS}/p/log?tailLines=1")).await.refused(500, &why);
    // Without a connection of its own there is nothing to upgrade.
    let refused = client.get(&format!("{PODS}/p/exec?command=true&stdout=1")).await;
    refused.refused(400, "Upgrade request required");
    // What cannot be asked has no figures.
    client.api.serve_metrics();
    let list = client.get("/apis/metrics.k8s.io/v1beta1/nodes").await.expect(200);
    assert_eq!((&list["kind"], &list["items"]), (&json!("NodeMetricsList"), &json!([])));
    let one = client.get("/apis/metrics.k8s.io/v1beta1/nodes/n").await;
    one.refused(404, "nodes.metrics.k8s.io \"n\" not found");
    let groups = client.get("/apis").await.expect(200);
    assert!(groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "metrics.k8s.io"));
    client.get("/openapi/v3/apis/metrics.k8s.io/v1beta1").await.expect(200);
}
