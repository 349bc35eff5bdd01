//! Strategic merge patches of built-in kinds.

use crate::support::{Answer, Client, DEFINITIONS, MAPS, WIDGETS, widget, widgets};
use serde_json::{Value, json};

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

async fn patch(client: &Client, path: &str, patch: Value) -> Answer {
    client.send("PATCH", path, STRATEGIC, patch.to_string()).await
}

async fn deployed() -> (Client, String) {
    let client = Client::new();
    let containers = json!([{"name": "web", "image": "a"}, {"name": "log", "image": "b"}]);
    let deployment = json!({
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}},
        },
    });
    client.post(DEPLOYMENTS, deployment).await.expect(201);
    (client, format!("{DEPLOYMENTS}/d"))
}

#[tokio::test]
async fn containers_merge_by_name_in_the_order_that_is_asked_for() {
    let (client, path) = deployed().await;
    let change = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "log"}, {"name": "web"}],
        "containers": [{"name": "web", "env": [{"name": "A", "value": "1"}]}],
    }}}});
    let patched = patch(&client, &path, change).await.expect(200);
    let containers = &patched["spec"]["template"]["spec"]["containers"];
    assert_eq!((&containers[0]["name"], &containers[1]["name"]), (&json!("log"), &json!("web")));
    assert_eq!(containers[1]["image"], "a");
    assert_eq!(containers[1]["env"], json!([{"name": "A", "value": "1"}]));
}

#[tokio::test]
async fn a_patch_that_does_not_fit_is_refused_in_kubernetes_words() {
    let (client, path) = deployed().await;
    patch(&client, &path, json!({"spec": {"replicas": "x"}})).await.refused(
        422,
        " \"\" is invalid: patch: Invalid value: \"map[spec:map[replicas:x]]\": unrecognized type: int32",
    );
    let keyless = json!({"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}});
    let why = "map: map[image:x] does not contain declared merge key: name";
    patch(&client, &path, keyless).await.refused(500, why);
    patch(&client, &path, json!({"spec": {"$retainKeys": 1}}))
        .await
        .refused(400, "invalid patch format of retainKeys");
    client
        .send("PATCH", &path, STRATEGIC, "[]")
        .await
        .refused(400, "json: cannot unmarshal array into Go value of type map[string]interface {}");
    patch(&client, &format!("{MAPS}/nope"), json!([])).await.expect(404);
}

#[tokio::test]
async fn unknown_and_duplicate_fields_are_minded() {
    let (client, path) = deployed().await;
    let twice = client.send("PATCH", &path, STRATEGIC, r#"{"foo":1,"foo":2,"metadata":{"bar":1}}"#).await;
    assert_eq!(
        twice.warnings,
        [
            "299 - \"duplicate field \\\"foo\\\"\"",
            "299 - \"unknown field \\\"foo\\\"\"",
            "299 - \"unknown field \\\"metadata.bar\\\"\""
        ]
    );
}

#[tokio::test]
async fn finalizers_are_added_and_deleted_one_by_one() {
    let client = Client::new();
    let map = json!({"metadata": {"name": "c", "finalizers": ["a.b/c"]}});
    client.post(MAPS, map).await.expect(201);
    let path = format!("{MAPS}/c");
    let added = patch(&client, &path, json!({"metadata": {"finalizers": ["x.y/z"]}})).await.expect(200);
    assert_eq!(added["metadata"]["finalizers"], json!(["x.y/z", "a.b/c"]));
    let gone = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}});
    let gone = patch(&client, &path, gone).await.expect(200);
    assert_eq!(gone["metadata"]["finalizers"], json!(["x.y/z"]));
}

#[tokio::test]
async fn custom_resources_have_none() {
    let client = Client::new();
    client.post(DEFINITIONS, widgets()).await.expect(201);
    client.post(WIDGETS, widget("w", json!({}))).await.expect(201);
    patch(&client, &format!("{WIDGETS}/w"), json!({})).await.refused(
        415,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    );
}
