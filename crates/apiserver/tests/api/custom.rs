//! Custom resources and their definitions.

use crate::support::{Client, DEFINITIONS, WIDGETS, widget, widgets};
use serde_json::{Value, json};

async fn serving() -> Client {
    let client = Client::new();
    client.post(DEFINITIONS, widgets()).await.expect(201);
    client
}

fn condition<'a>(crd: &'a Value, kind: &str) -> &'a Value {
    let conditions = crd["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap()
}

#[tokio::test]
async fn a_definition_is_served_as_soon_as_it_is_made() {
    let client = serving().await;
    let crd = client.get(&format!("{DEFINITIONS}/widgets.example.com")).await.expect(200);
    assert_eq!(condition(&crd, "NamesAccepted")["reason"], "NoConflicts");
    assert_eq!(condition(&crd, "Established")["message"], "the initial names have been accepted");
    assert_eq!(crd["status"]["acceptedNames"]["listKind"], "WidgetList");
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    let made = client.post(WIDGETS, widget("a", json!({}))).await.expect(201);
    assert_eq!((&made["spec"]["size"], &made["metadata"]["generation"]), (&json!(3), &json!(1)));
}

#[tokio::test]
async fn what_the_schema_does_not_know_is_pruned_and_told() {
    let client = serving().await;
    let warn = client.post(WIDGETS, widget("a", json!({"size": 1, "other": 2}))).await;
    assert_eq!(warn.warnings, ["299 - \"unknown field \\\"spec.other\\\"\""]);
    assert_eq!(warn.expect(201)["spec"], json!({"size": 1}));
    let strict =
        client.post(&format!("{WIDGETS}?fieldValidation=Strict"), widget("b", json!({"other": 2}))).await;
    strict.refused(
        400,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.other\"",
    );
    client.post(WIDGETS, widget("b", json!({"size": 11}))).await.refused(
        422,
        "Widget.example.com \"b\" is invalid: spec.size: Invalid value: 11: spec.size in body should be less than or \
         equal to 10",
    );
}

#[tokio::test]
async fn the_status_is_written_apart() {
    let client = serving().await;
    let path = format!("{WIDGETS}/a");
    let mut object = widget("a", json!({}));
    object["status"] = json!({"ready": true});
    assert!(client.post(WIDGETS, object).await.expect(201).get("status").is_none());
    let patch = json!({"spec": {"size": 5}, "status": {"ready": true}});
    let status = client.merge(&format!("{path}/status"), patch.clone()).await.expect(200);
    assert_eq!((&status["spec"]["size"], &status["status"]["ready"]), (&json!(3), &json!(true)));
    assert_eq!(status["metadata"]["generation"], 1);
    let spec =
        client.merge(&path, json!({"spec": {"size": 5}, "status": {"ready": false}})).await.expect(200);
    assert_eq!((&spec["spec"]["size"], &spec["status"]["ready"]), (&json!(5), &json!(true)));
    assert_eq!(spec["metadata"]["generation"], 2);
}

#[tokio::test]
async fn names_that_are_taken_are_not_accepted_until_they_are_free() {
    let client = serving().await;
    let mut other = widgets();
    other["metadata"]["name"] = json!("gadgets.example.com");
    other["spec"]["names"]["plural"] = json!("gadgets");
    client.post(DEFINITIONS, other).await.expect(201);
    let path = format!("{DEFINITIONS}/gadgets.example.com");
    let waiting = client.get(&path).await.expect(200);
    assert_eq!(condition(&waiting, "NamesAccepted")["reason"], "ListKindConflict");
    assert_eq!(condition(&waiting, "Established")["status"], "False");
    client.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.expect(200);
    assert_eq!(condition(&client.get(&path).await.expect(200), "Established")["status"], "True");
    client.get("/apis/example.com/v1/namespaces/default/gadgets").await.expect(200);
}

#[tokio::test]
async fn a_definition_goes_with_its_last_object() {
    let client = serving().await;
    let mut held = widget("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/x"]);
    client.post(WIDGETS, held).await.expect(201);
    client.post(WIDGETS, widget("free", json!({}))).await.expect(201);
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let going = client.delete(&path).await.expect(200);
    assert_eq!(going["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(client.get(WIDGETS).await.expect(200)["items"].as_array().map(Vec::len), Some(1));
    client.post(WIDGETS, widget("late", json!({}))).await.refused(
        403,
        "widgets.example.com \"late\" is forbidden: create not allowed while custom resource definition is terminating",
    );
    client.merge(&format!("{WIDGETS}/held"), json!({"metadata": {"finalizers": null}})).await.expect(200);
    client.get(&path).await.expect(404);
    client.get(WIDGETS).await.expect(404);
}

#[tokio::test]
async fn versions_differ_in_name_and_in_what_they_know() {
    let client = serving().await;
    client.post(WIDGETS, widget("a", json!({"size": 4}))).await.expect(201);
    let second = json!({"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}});
    let patch = json!([{"op": "add", "path": "/spec/versions/-", "value": second}]).to_string();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    client.send("PATCH", &path, "application/json-patch+json", patch).await.expect(200);
    let read = client.get("/apis/example.com/v2/namespaces/default/widgets/a").await.expect(200);
    assert_eq!((&read["apiVersion"], &read["spec"]["size"]), (&json!("example.com/v2"), &json!(4)));
    let patched =
        client.merge("/apis/example.com/v2/namespaces/default/widgets/a", json!({"spec": {"size": 5}})).await;
    assert_eq!(patched.expect(200)["apiVersion"], "example.com/v2");
    assert_eq!(client.get(&format!("{WIDGETS}/a")).await.expect(200)["spec"]["size"], 5);
}

#[tokio::test]
async fn a_new_default_shows_in_what_is_already_stored() {
    let client = serving().await;
    client.post(WIDGETS, widget("a", json!({"size": 4}))).await.expect(201);
    let patch = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color",
        "value": {"type": "string", "default": "red"}}]);
    let path = format!("{DEFINITIONS}/widgets.example.com");
    client.send("PATCH", &path, "application/json-patch+json", patch.to_string()).await.expect(200);
    assert_eq!(client.get(&format!("{WIDGETS}/a")).await.expect(200)["spec"]["color"], "red");
    assert_eq!(client.get(WIDGETS).await.expect(200)["items"][0]["spec"]["color"], "red");
}

#[tokio::test]
async fn a_rule_is_checked_with_its_definition_and_with_every_write() {
    let client = Client::new();
    let mut definition = widgets();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] = json!([{"rule": "self.size == oldSelf.size", "message": "set once"}, {"rule": "!has(self.tags) || self.tags.size() < 3"}]);
    client.post(DEFINITIONS, definition).await.expect(201);
    client.post(WIDGETS, widget("a", json!({"tags": ["a", "b", "c"]}))).await.refused(
        422,
        "Widget.example.com \"a\" is invalid: spec: Invalid value: failed rule: !has(self.tags) || self.tags.size() < 3",
    );
    client.post(WIDGETS, widget("a", json!({}))).await.expect(201);
    client
        .merge(&format!("{WIDGETS}/a"), json!({"spec": {"size": 4}}))
        .await
        .refused(422, "Widget.example.com \"a\" is invalid: spec: Invalid value: set once");
}

#[tokio::test]
async fn without_its_webhook_an_object_is_served_in_the_storage_version_alone() {
    let client = Client::new();
    let mut definition = widgets();
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().push(second);
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "https://127.0.0.1:9/convert"}, "conversionReviewVersions": ["v1"]}});
    client.post(DEFINITIONS, definition).await.expect(201);
    let in_second = WIDGETS.replace("/v1/", "/v2/");
    assert_eq!(client.get(&in_second).await.expect(200)["items"], json!([]));
    client.post(WIDGETS, widget("a", json!({}))).await.expect(201);
    client.get(&format!("{WIDGETS}/a")).await.expect(200);
    for path in [in_second.clone(), format!("{in_second}/a")] {
        let status = client.get(&path).await.expect(500);
        let message = status["message"].as_str().unwrap();
        assert!(message.contains("conversion webhook for example.com/v1, Kind=Widget failed"), "{message}");
    }
}

#[tokio::test]
async fn a_definition_that_cannot_be_served_is_refused() {
    let client = Client::new();
    let mut bad = widgets();
    bad["spec"]["versions"][0]["storage"] = json!(false);
    let status = client.post(DEFINITIONS, bad).await.expect(422);
    let fields: Vec<_> =
        status["details"]["causes"].as_array().unwrap().iter().map(|cause| &cause["field"]).collect();
    assert_eq!(fields, ["spec.versions", "status.storedVersions"]);
    let mut loose = widgets();
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"properties": {"a": {}}});
    client.post(DEFINITIONS, loose).await.expect(422);
}

#[tokio::test]
async fn what_is_as_deep_as_a_body_may_be_is_written_and_read_again() {
    let client = Client::new();
    let mut definition = widgets();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    client.post(DEFINITIONS, definition).await.expect(201);
    let deep = (0..250).fold(json!(1), |inner, _| json!({"a": inner}));
    let made = client.post(WIDGETS, widget("w", deep)).await.expect(201);
    let path = format!("{WIDGETS}/w");
    let changed = client.merge(&path, json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    assert_eq!(changed["spec"], made["spec"]);
    client.apply(&format!("{path}?fieldManager=one"), widget("w", json!({"b": 1}))).await.expect(200);
}
