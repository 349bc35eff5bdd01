//! Pods that are given to nodes.

use crate::support::Client;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn binding(name: &str, more: Value) -> Value {
    let mut binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}});
    binding.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    binding
}

async fn client_with_a_pod() -> Client {
    let client = Client::new();
    client
        .post("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "default"}}))
        .await
        .expect(201);
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.post(PODS, pod).await.expect(201);
    client
}

#[tokio::test]
async fn a_pod_is_given_to_a_node_once() {
    let client = client_with_a_pod().await;
    let node =
        json!({"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z", "other": "o"}}});
    client.post("/api/v1/nodes", node).await.expect(201);
    let meta = json!({"metadata": {"name": "a", "annotations": {"by": "me"}}});
    let answer = client.post(&format!("{PODS}/a/binding"), binding("a", meta)).await.expect(201);
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    let pod = client.get(&format!("{PODS}/a")).await.expect(200);
    assert_eq!(pod["spec"]["nodeName"], "n1");
    assert_eq!(pod["metadata"]["annotations"], json!({"by": "me"}));
    assert_eq!(pod["metadata"]["labels"], json!({"topology.kubernetes.io/zone": "z"}), "where it came to be");
    let condition = &pod["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("PodScheduled"), &json!("True")));
    let again = client.post("/api/v1/namespaces/default/bindings", binding("a", json!({}))).await;
    again.refused(
        409,
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\"",
    );
}

#[tokio::test]
async fn what_cannot_be_bound_is_refused_as_the_reference_does() {
    let client = client_with_a_pod().await;
    let path = format!("{PODS}/a/binding");
    let other = client.post(&path, binding("b", json!({}))).await;
    other.refused(400, "name in URL does not match name in Binding object");
    let target = json!({"target": {"kind": "Pod"}});
    client.post(&path, binding("a", target)).await.refused(
        500,
        "[target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\", target.name: Required value]",
    );
    client
        .post(&format!("{PODS}/none/binding"), binding("none", json!({})))
        .await
        .refused(404, "pods \"none\" not found");
    let uid = json!({"metadata": {"name": "a", "uid": "other"}});
    client.post(&path, binding("a", uid)).await.expect(409);
    let gated = json!({
        "metadata": {"name": "g"},
        "spec": {"schedulingGates": [{"name": "x.y/z"}], "containers": [{"name": "c", "image": "i"}]},
    });
    client.post(PODS, gated).await.expect(201);
    client.post(&format!("{PODS}/g/binding"), binding("g", json!({}))).await.refused(
        409,
        "Operation cannot be fulfilled on pods/binding \"g\": pod g has non-empty .spec.schedulingGates",
    );
}
