//! Forms of answers: tables, metadata alone, aggregated discovery, OpenAPI, indentation.

use crate::support::{Client, DEFINITIONS, MAPS, WIDGETS, ask, body, widget, widgets};
use http_body_util::BodyExt;
use serde_json::{Value, json};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What a path answers in a form: its code and its JSON.
async fn formed(client: &Client, path: &str, accept: &str) -> (u16, Value) {
    let response = ask(client, path, &[("accept", accept)]).await;
    (response.status().as_u16(), serde_json::from_slice(&body(response).await).unwrap())
}

/// The first lines of a watch in a form.
async fn lines(client: &Client, path: &str, accept: &str, count: usize) -> Vec<Value> {
    let mut body = ask(client, path, &[("accept", accept)]).await.into_body();
    let mut text = Vec::new();
    while text.iter().filter(|byte| **byte == b'\n').count() < count {
        text.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

async fn with_maps() -> Client {
    let client = Client::new();
    for (name, data) in [("a", json!({"x": "1", "y": "2"})), ("b", json!({}))] {
        client.post(MAPS, json!({"metadata": {"name": name}, "data": data})).await.expect(201);
    }
    client
}

#[tokio::test]
async fn objects_are_rows_of_a_table() {
    let client = with_maps().await;
    let (code, table) = formed(&client, MAPS, TABLE).await;
    assert_eq!(
        (code, &table["kind"], &table["apiVersion"]),
        (200, &json!("Table"), &json!("meta.k8s.io/v1"))
    );
    let columns: Vec<_> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(columns, ["Name", "Data", "Age"]);
    assert_eq!(table["rows"][0]["cells"][1], 2);
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][1]["object"]["metadata"]["name"], "b");
    let (_, one) = formed(&client, &format!("{MAPS}/a?includeObject=Object"), TABLE).await;
    assert_eq!(one["rows"][0]["object"]["data"]["x"], "1");
    assert_eq!(one["metadata"]["resourceVersion"], one["rows"][0]["object"]["metadata"]["resourceVersion"]);
    let (_, bare) = formed(&client, &format!("{MAPS}?includeObject=None"), TABLE).await;
    assert_eq!(bare["rows"][0]["object"], json!(null));
    let (code, refused) = formed(&client, &format!("{MAPS}?includeObject=All"), TABLE).await;
    assert_eq!((code, &refused["reason"]), (400, &json!("BadRequest")));
    let (code, _) = formed(&client, MAPS, "application/json;as=Table;v=v9;g=meta.k8s.io").await;
    assert_eq!(code, 406);
}

#[tokio::test]
async fn only_a_watchs_first_event_has_columns() {
    let client = with_maps().await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let told = lines(&client, &format!("{MAPS}?{query}"), TABLE, 3).await;
    let kinds: Vec<_> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ADDED", "ADDED", "BOOKMARK"]);
    assert_eq!(told[0]["object"]["columnDefinitions"][1]["name"], "Data");
    assert_eq!(told[1]["object"]["columnDefinitions"], json!(null));
    let last = &told[2]["object"]["rows"][0];
    assert_eq!(last["cells"], json!(["", 0, "<unknown>"]));
    assert_eq!(last["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let told = lines(&client, &format!("{MAPS}?{query}"), METADATA, 3).await;
    assert_eq!(told[0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(told[0]["object"]["data"], json!(null));
}

#[tokio::test]
async fn metadata_comes_alone_where_it_is_asked_for() {
    let client = with_maps().await;
    let (_, one) = formed(&client, &format!("{MAPS}/a"), METADATA).await;
    assert_eq!((&one["kind"], &one["metadata"]["name"]), (&json!("PartialObjectMetadata"), &json!("a")));
    assert_eq!(one.as_object().unwrap().len(), 3);
    let (_, list) = formed(&client, MAPS, METADATA_LIST).await;
    assert_eq!(
        (&list["kind"], &list["items"][1]["metadata"]["name"]),
        (&json!("PartialObjectMetadataList"), &json!("b"))
    );
    let (code, refused) = formed(&client, &format!("{MAPS}/a"), METADATA_LIST).await;
    let message =
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)";
    assert_eq!((code, refused["message"].as_str()), (406, Some(message)));
    let (code, refused) = formed(&client, MAPS, METADATA).await;
    let message =
        "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)";
    assert_eq!((code, refused["message"].as_str()), (406, Some(message)));
}

#[tokio::test]
async fn custom_resources_have_the_columns_of_their_definition() {
    let client = Client::new();
    let mut definition = widgets();
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How many."},
        {"name": "First", "type": "string", "jsonPath": ".spec.tags[0]", "priority": 1},
    ]);
    client.post(DEFINITIONS, definition).await.expect(201);
    client.post(WIDGETS, widget("w", json!({"tags": ["t"]}))).await.expect(201);
    let (_, table) = formed(&client, WIDGETS, TABLE).await;
    assert_eq!(table["rows"][0]["cells"], json!(["w", 3, "t"]));
    assert_eq!(table["columnDefinitions"][1]["description"], "How many.");
    assert_eq!(table["columnDefinitions"][2]["priority"], 1);
    assert_eq!(table["metadata"].get("continue"), None);
}

#[tokio::test]
async fn everything_is_discovered_at_once() {
    let client = Client::new();
    client.post(DEFINITIONS, widgets()).await.expect(201);
    let response = ask(&client, "/apis", &[("accept", AGGREGATED)]).await;
    assert_eq!(response.headers()["content-type"], AGGREGATED);
    let tag = response.headers()["etag"].to_str().unwrap().to_owned();
    let document: Value = serde_json::from_slice(&body(response).await).unwrap();
    let custom =
        document["items"].as_array().unwrap().iter().find(|group| group["metadata"]["name"] == "example.com");
    let resource = &custom.unwrap()["versions"][0]["resources"][0];
    assert_eq!(resource["responseKind"], json!({"group": "example.com", "version": "v1", "kind": "Widget"}));
    assert_eq!(resource["subresources"][0]["subresource"], "status");
    let again = ask(&client, "/apis", &[("accept", AGGREGATED), ("if-none-match", &tag)]).await;
    assert_eq!(again.status(), 304);
    let (_, core) = formed(&client, "/api", AGGREGATED).await;
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
    let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    assert_eq!(formed(&client, "/apis", old).await.0, 406);
    assert_eq!(formed(&client, "/apis", &format!("{old},application/json")).await.1["kind"], "APIGroupList");
}

#[tokio::test]
async fn schemas_have_addresses_that_change_with_them() {
    let client = Client::new();
    let path = "apis/coordination.k8s.io/v1";
    let index = client.get("/openapi/v3").await.expect(200);
    let address = index["paths"][path]["serverRelativeURL"].as_str().unwrap().to_owned();
    let kept = ask(&client, &address, &[]).await;
    assert_eq!(
        (kept.status().as_u16(), &kept.headers()["cache-control"]),
        (200, &"public, immutable".parse().unwrap())
    );
    assert!(address.contains(kept.headers()["etag"].to_str().unwrap().trim_matches('"')));
    let moved = ask(&client, &format!("/openapi/v3/{path}?hash=OLD"), &[]).await;
    assert_eq!(
        (moved.status().as_u16(), moved.headers()["location"].to_str().unwrap()),
        (301, address.as_str())
    );
    assert_eq!(ask(&client, "/openapi/v3/apis/none/v1", &[]).await.status(), 404);
    let document: Value = serde_json::from_slice(&body(kept).await).unwrap();
    let patch =
        &document["paths"]["/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Lease");
    assert!(
        patch["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .any(|parameter| parameter["name"] == "fieldValidation")
    );
    let before = index["paths"]["apis/example.com/v1"].clone();
    client.post(DEFINITIONS, widgets()).await.expect(201);
    let after = client.get("/openapi/v3").await.expect(200)["paths"]["apis/example.com/v1"].clone();
    assert!(before.is_null() && after.is_object());
}

#[tokio::test]
async fn the_older_notation_refers_only_to_what_it_has() {
    let client = Client::new();
    client.post(DEFINITIONS, widgets()).await.expect(201);
    let document = client.get("/openapi/v2").await.expect(200);
    let definitions = document["definitions"].as_object().unwrap();
    assert!(definitions.contains_key("com.example.v1.Widget"));
    for part in document.to_string().split("\"#/definitions/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(definitions.contains_key(name), "{name} is referred to and missing");
    }
    assert!(!document.to_string().contains("#/components/"));
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let response = ask(&client, "/openapi/v2", &[("accept", protobuf)]).await;
    assert_eq!(response.headers()["content-type"], protobuf.replace('@', "."));
    let bytes = body(response).await;
    assert!(bytes.windows(21).any(|part| part == b"com.example.v1.Widget"));
    assert_eq!(ask(&client, "/openapi/v2", &[("accept", "application/yaml")]).await.status(), 406);
}

#[tokio::test]
async fn people_are_answered_with_indentation() {
    let client = with_maps().await;
    let text = |response| async { String::from_utf8(body(response).await.to_vec()).unwrap() };
    let path = format!("{MAPS}/a");
    assert!(text(ask(&client, &format!("{path}?pretty=true"), &[]).await).await.contains("\n  \"data\""));
    assert!(text(ask(&client, &path, &[("user-agent", "curl/8.0")]).await).await.contains('\n'));
    assert!(!text(ask(&client, &path, &[]).await).await.contains('\n'));
}
