//! Creating, changing and deleting built-in objects.

use crate::support::{Client, MAPS};
use serde_json::json;

fn path(name: &str) -> String {
    format!("{MAPS}/{name}")
}

#[tokio::test]
async fn what_was_created_can_be_read() {
    let client = Client::new();
    let made = client.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await.expect(201);
    assert_eq!(made["kind"], "ConfigMap");
    assert_eq!(
        made["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:data": {".": {}, "f:k": {}}}),
        "the user agent's first part owns what it sent"
    );
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "tester");
    assert_eq!(client.get(&path("a")).await.expect(200), made);
    let list = client.get(MAPS).await.expect(200);
    assert_eq!(list["items"][0]["data"], json!({"k": "v"}));
    assert!(list["items"][0].get("kind").is_none(), "items of built-in lists do not say what they are");
    let taken = client.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    taken.refused(409, "configmaps \"a\" already exists");
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let client = Client::new();
    let before = client.api.store().revision();
    let path = format!("{MAPS}?dryRun=All");
    let shown = client.post(&path, json!({"metadata": {"generateName": "a-"}})).await.expect(201);
    assert!(shown["metadata"]["name"].as_str().is_some_and(|name| name.len() == 7));
    assert!(shown["metadata"].get("resourceVersion").is_none());
    assert_eq!(client.api.store().revision(), before);
}

#[tokio::test]
async fn an_update_needs_the_version_it_was_made_from() {
    let client = Client::new();
    client.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let stale = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
    client.put(&path("a"), stale).await.refused(
        409,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to \
         the latest version and try again",
    );
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    client.post(leases, json!({"metadata": {"name": "l"}})).await.expect(201);
    client.put(&format!("{leases}/l"), json!({"metadata": {"name": "l"}})).await.refused(
        422,
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for \
         an update",
    );
}

#[tokio::test]
async fn a_write_that_changes_nothing_makes_no_version() {
    let client = Client::new();
    let made = client.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await.expect(201);
    let same = client.merge(&path("a"), json!({"data": {"k": "v"}})).await.expect(200);
    assert_eq!(same, made);
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}});
    let path = format!("{}?fieldManager=m", path("a"));
    let first = client.apply(&path, applied.clone()).await.expect(200);
    assert_eq!(client.apply(&path, applied).await.expect(200), first);
}

#[tokio::test]
async fn an_apply_that_takes_a_field_from_another_conflicts() {
    let client = Client::new();
    let intent = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
    client.apply(&format!("{}?fieldManager=one", path("a")), intent("1")).await.expect(201);
    let other = format!("{}?fieldManager=two", path("a"));
    let conflict = client
        .apply(&other, intent("2"))
        .await
        .refused(409, "Apply failed with 1 conflict: conflict with \"one\": .data.k");
    assert_eq!(conflict["details"]["causes"][0]["field"], ".data.k");
    let forced = client.apply(&format!("{other}&force=true"), intent("2")).await.expect(200);
    assert_eq!(forced["data"]["k"], "2");
    client.apply(&path("a"), intent("2")).await.refused(
        422,
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
    );
}

#[tokio::test]
async fn finalizers_hold_a_deleted_object() {
    let client = Client::new();
    client.post(MAPS, json!({"metadata": {"name": "a", "finalizers": ["example.com/x"]}})).await.expect(201);
    let held = client.delete(&path("a")).await.expect(200);
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    client
        .merge(&path("a"), json!({"metadata": {"finalizers": ["example.com/x", "example.com/y"]}}))
        .await
        .expect(422);
    client.merge(&path("a"), json!({"metadata": {"finalizers": null}})).await.expect(200);
    client.get(&path("a")).await.refused(404, "configmaps \"a\" not found");
}

#[tokio::test]
async fn propagation_is_told_by_finalizers() {
    let client = Client::new();
    client.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let held = client.delete(&format!("{}?propagationPolicy=Foreground", path("a"))).await.expect(200);
    assert_eq!(held["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let orphaned = client.delete(&format!("{}?propagationPolicy=Orphan", path("a"))).await.expect(200);
    assert_eq!(orphaned["metadata"]["finalizers"], json!(["orphan"]));
    let gone = client.delete(&format!("{}?propagationPolicy=Background", path("a"))).await.expect(200);
    assert_eq!((&gone["kind"], &gone["status"]), (&json!("Status"), &json!("Success")));
}

#[tokio::test]
async fn preconditions_guard_a_deletion() {
    let client = Client::new();
    let made = client.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let with = |key: &str, value: &str| json!({"preconditions": {key: value}}).to_string();
    let delete = |body: String| {
        client.send("DELETE", "/api/v1/namespaces/default/configmaps/a", "application/json", body)
    };
    delete(with("uid", "other")).await.expect(409);
    delete(with("resourceVersion", "1")).await.expect(409);
    delete(with("uid", made["metadata"]["uid"].as_str().unwrap())).await.expect(200);
}

#[tokio::test]
async fn a_collection_goes_by_its_labels() {
    let client = Client::new();
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        client.post(MAPS, json!({"metadata": {"name": name, "labels": {"color": color}}})).await.expect(201);
    }
    let gone = client.delete(&format!("{MAPS}?labelSelector=color%3Dred")).await.expect(200);
    assert_eq!(gone["items"].as_array().map(Vec::len), Some(2));
    let left = client.get(MAPS).await.expect(200);
    assert_eq!(left["items"][0]["metadata"]["name"], "b");
}

#[tokio::test]
async fn immutable_config_stays() {
    let client = Client::new();
    client
        .post(MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "v"}, "immutable": true}))
        .await
        .expect(201);
    client.merge(&path("a"), json!({"data": {"k": "w"}})).await.refused(
        422,
        "ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
    );
}

#[tokio::test]
async fn secrets_hide_their_plain_text_and_check_their_type() {
    let client = Client::new();
    let secrets = "/api/v1/namespaces/default/secrets";
    let made =
        client.post(secrets, json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}})).await.expect(201);
    assert_eq!((&made["data"], &made["type"]), (&json!({"k": "dg=="}), &json!("Opaque")));
    assert!(made.get("stringData").is_none());
    client.post(secrets, json!({"metadata": {"name": "t"}, "type": "kubernetes.io/tls"})).await.refused(
        422,
        "Secret \"t\" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]",
    );
}

#[tokio::test]
async fn events_spell_out_their_empty_times() {
    let client = Client::new();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "x"}, "reason": "R"});
    let events = "/api/v1/namespaces/default/events";
    let made = client.post(events, event).await.expect(201);
    assert_eq!((&made["firstTimestamp"], &made["source"]), (&json!(null), &json!({})));
    let found =
        client.get(&format!("{events}?fieldSelector=involvedObject.name%3Dx,reason%3DR")).await.expect(200);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
}
