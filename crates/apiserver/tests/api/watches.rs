//! Watches, as far as they concern the whole: what flows through the service, and what ends them.

use crate::support::{Client, DEFINITIONS, JSON, MAPS, WIDGETS, widget, widgets};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use windlass_apiserver::ApiBody;

async fn next(body: &mut ApiBody) -> Option<Value> {
    let frame = body.frame().await?.unwrap().into_data().unwrap();
    let line = frame.split(|byte| *byte == b'\n').next().unwrap();
    Some(serde_json::from_slice(line).unwrap())
}

#[tokio::test]
async fn a_watch_tells_what_happens() {
    let client = Client::new();
    let from = client.api.store().revision();
    let path = format!("{MAPS}?watch=1&resourceVersion={from}");
    let mut watch = client.raw("GET", &path, JSON, "").await.into_body();
    client.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let added = next(&mut watch).await.unwrap();
    assert_eq!((&added["type"], &added["object"]["kind"]), (&json!("ADDED"), &json!("ConfigMap")));
    client.delete(&format!("{MAPS}/a")).await.expect(200);
    assert_eq!(next(&mut watch).await.unwrap()["type"], "DELETED");
}

#[tokio::test]
async fn a_changed_definition_ends_its_watches() {
    let client = Client::new();
    client.post(DEFINITIONS, widgets()).await.expect(201);
    client.post(WIDGETS, widget("a", json!({}))).await.expect(201);
    let mut watch = client.raw("GET", &format!("{WIDGETS}?watch=1"), JSON, "").await.into_body();
    assert_eq!(next(&mut watch).await.unwrap()["type"], "ADDED");
    let path = format!("{DEFINITIONS}/widgets.example.com");
    client.merge(&path, json!({"spec": {"names": {"categories": ["all"]}}})).await.expect(200);
    while let Some(event) = next(&mut watch).await {
        assert_eq!(event["type"], "BOOKMARK");
    }
}

#[tokio::test]
async fn a_server_that_stops_ends_its_watches() {
    let client = Client::new();
    let mut watch =
        client.raw("GET", &format!("{MAPS}?watch=1&resourceVersion=1"), JSON, "").await.into_body();
    client.api.end_watches();
    assert!(watch.frame().await.is_none());
}

#[tokio::test]
async fn over_tcp_requests_are_answered_and_a_stop_is_prompt() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let client = Client::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serving = client.api.serve_tcp(listener).unwrap();
    let mut stream = tokio::net::TcpStream::connect(serving.address()).await.unwrap();
    let request = format!("GET {MAPS}?watch=1&resourceVersion=1 HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    serving.stop().await;
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
}
