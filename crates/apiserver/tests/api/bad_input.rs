//! Requests that make no sense: refused in Kubernetes' words, and never the end of the server.

use crate::support::{APPLY, Client, JSON, MAPS, MERGE};
use proptest::prelude::*;
use serde_json::json;

#[tokio::test]
async fn wrong_types_are_told_as_go_tells_them() {
    let client = Client::new();
    let cases = [
        (
            json!({"metadata": {"name": 3}}),
            "cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
        ),
        (
            json!({"metadata": {"name": "a"}, "data": {"k": 1}}),
            "cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            json!({"metadata": "x"}),
            "cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
        ),
        (
            json!({"metadata": {"name": "a", "ownerReferences": [{"uid": 1}]}}),
            "cannot unmarshal number into Go struct field OwnerReference.metadata.ownerReferences.uid of type types.UID",
        ),
    ];
    for (body, why) in cases {
        let message = format!("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: {why}");
        client.post(MAPS, body).await.refused(400, &message);
    }
}

#[tokio::test]
async fn unknown_and_duplicate_fields_warn_or_refuse() {
    let client = Client::new();
    let body = r#"{"metadata":{"name":"a"},"foo":1,"data":{"k":"v","k":"w"}}"#;
    let warned = client.send("POST", MAPS, JSON, body).await;
    assert_eq!(
        warned.warnings,
        ["299 - \"unknown field \\\"foo\\\"\"", "299 - \"duplicate field \\\"data.k\\\"\""]
    );
    warned.expect(201);
    let strict = client.send("POST", &format!("{MAPS}?fieldValidation=Strict"), JSON, body).await;
    strict.refused(
        400,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"foo\", \
         duplicate field \"data.k\"",
    );
}

#[tokio::test]
async fn bodies_are_bounded_in_size_and_depth() {
    let client = Client::new();
    let large = vec![b' '; 3 * 1024 * 1024 + 1];
    let refused = client.send("POST", MAPS, JSON, large).await;
    refused.refused(413, "Request entity too large: limit is 3145728");
    for media in [JSON, "application/yaml", MERGE, APPLY] {
        let deep = "[".repeat(200_000);
        let method = if media == MERGE || media == APPLY { "PATCH" } else { "POST" };
        let path = if method == "PATCH" { format!("{MAPS}/a?fieldManager=m") } else { MAPS.to_owned() };
        let answer = client.send(method, &path, media, deep).await;
        assert!(answer.code >= 400, "{media}: {}", answer.code);
    }
}

#[tokio::test]
async fn paths_that_lead_nowhere_are_not_found() {
    let client = Client::new();
    for path in [
        "/nowhere",
        "/api/v1/nokinds",
        "/api/v1/configmaps/a",
        "/api/v1/namespaces/default/namespaces",
        "/api/v1/namespaces/default/configmaps/a/b/c",
        "/api/v1/namespaces/default/configmaps/a%2Fb",
        "/apis/x/y/z",
        "/api/v1/namespaces/default/configmaps/..%2f..",
        "/openapi/v3/apis/none/v1",
        "/openapi/v3/..",
    ] {
        client.get(path).await.expect(404);
    }
    client.get("/api/v1/%ff").await.expect(400);
    client.send("FOO", MAPS, JSON, "").await.expect(405);
    client.send("PUT", MAPS, JSON, "{}").await.expect(405);
    client.send("POST", MAPS, "text/plain", "{}").await.expect(415);
    client.send("PATCH", &format!("{MAPS}/a"), "application/patch", "{}").await.expect(415);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        path in "/(api|apis|openapi)(/[a-z0-9.%]{0,12}){0,6}(\\?[a-zA-Z0-9=&%]{0,30})?",
        method in prop::sample::select(vec!["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]),
        media in prop::sample::select(vec![JSON, MERGE, APPLY, "application/yaml", "application/json-patch+json"]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let client = Client::new();
            client.send(method, &path, media, bytes.clone()).await;
            client.send("POST", MAPS, media, bytes.clone()).await;
            client.send("PATCH", &format!("{MAPS}/a?fieldManager=m"), media, bytes).await;
            client.get(MAPS).await.expect(200);
        });
    }
}
