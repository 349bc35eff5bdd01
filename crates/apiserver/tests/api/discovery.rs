//! What the server says about itself.

use crate::support::{Client, DEFINITIONS, widgets};
use serde_json::json;

#[tokio::test]
async fn groups_and_resources_are_listed() {
    let client = Client::new();
    client.post(DEFINITIONS, widgets()).await.expect(201);
    assert_eq!(client.get("/version").await.expect(200)["gitVersion"], "v1.36.4");
    assert_eq!(client.get("/readyz").await.expect(200), "ok");
    assert_eq!(client.get("/api").await.expect(200)["versions"], json!(["v1"]));
    let groups = client.get("/apis").await.expect(200);
    let names: Vec<_> = groups["groups"].as_array().unwrap().iter().map(|group| &group["name"]).collect();
    assert_eq!(names.len(), 21);
    assert_eq!((names[0], names[20]), (&json!("apiregistration.k8s.io"), &json!("example.com")));
    let core = client.get("/api/v1").await.expect(200);
    let names: Vec<_> =
        core["resources"].as_array().unwrap().iter().map(|resource| &resource["name"]).collect();
    assert!(names.contains(&&json!("configmaps")) && names.contains(&&json!("namespaces/status")));
    let custom = client.get("/apis/example.com/v1").await.expect(200);
    assert_eq!(custom["resources"][1]["name"], "widgets/status");
    assert_eq!(client.get("/apis/none/v1").await.expect(404), "404 page not found\n");
}

#[tokio::test]
async fn schemas_are_published_and_complete() {
    let client = Client::new();
    client.post(DEFINITIONS, widgets()).await.expect(201);
    let index = client.get("/openapi/v3").await.expect(200);
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("apis/example.com/v1") && paths.contains_key("api/v1"));
    for path in paths.values() {
        let document = client.get(path["serverRelativeURL"].as_str().unwrap()).await.expect(200);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let text = document.to_string();
        for part in text.split("\"#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name} is referred to and missing");
        }
    }
    let custom = client.get("/openapi/v3/apis/example.com/v1").await.expect(200);
    let widget = &custom["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(widget["properties"]["spec"]["properties"]["size"]["default"], 3);
    assert_eq!(widget["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
}
