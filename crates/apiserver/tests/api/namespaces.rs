//! The life of namespaces.

use crate::support::{Client, MAPS};
use serde_json::json;

#[tokio::test]
async fn four_namespaces_are_there_from_the_start() {
    let list = Client::new().get("/api/v1/namespaces").await.expect(200);
    let names: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    assert_eq!(list["items"][0]["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "default"}));
    assert_eq!(list["items"][0]["spec"], json!({"finalizers": ["kubernetes"]}));
}

#[tokio::test]
async fn nothing_is_created_where_there_is_no_namespace() {
    let client = Client::new();
    let made = client.post("/api/v1/namespaces/none/configmaps", json!({"metadata": {"name": "a"}})).await;
    made.refused(404, "namespaces \"none\" not found");
    let elsewhere = json!({"metadata": {"name": "a", "namespace": "other"}});
    client.post(MAPS, elsewhere).await.refused(
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    );
}

#[tokio::test]
async fn a_terminating_namespace_takes_nothing_and_goes_when_finalized() {
    let client = Client::new();
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await.expect(201);
    let going = client.delete("/api/v1/namespaces/n").await.expect(200);
    assert_eq!(going["status"]["phase"], "Terminating");
    let refused = client.post("/api/v1/namespaces/n/configmaps", json!({"metadata": {"name": "a"}})).await.refused(
        403,
        "configmaps \"a\" is forbidden: unable to create new content in namespace n because it is being terminated",
    );
    assert_eq!(refused["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let finalized = json!({"metadata": {"name": "n"}, "spec": {"finalizers": []}});
    client.put("/api/v1/namespaces/n/finalize", finalized).await.expect(200);
    client.get("/api/v1/namespaces/n").await.expect(404);
}

#[tokio::test]
async fn some_namespaces_stay() {
    let client = Client::new();
    let refused = client.delete("/api/v1/namespaces/default").await;
    refused.refused(403, "namespaces \"default\" is forbidden: this namespace may not be deleted");
    client.delete("/api/v1/namespaces").await.expect(405);
}
