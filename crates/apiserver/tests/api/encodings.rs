//! Encodings of answers: protobuf and YAML, of objects, lists, watches, documents and errors.

use crate::support::{Client, DEFINITIONS, MAPS, WIDGETS, ask, body, widget, widgets};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use windlass_apiserver::protobuf;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What a path answers a client that takes this: its code, its media type and its bytes.
async fn taken(client: &Client, path: &str, accept: &str) -> (u16, String, Vec<u8>) {
    let response = ask(client, path, &[("accept", accept)]).await;
    let media = response.headers()["content-type"].to_str().unwrap().to_owned();
    (response.status().as_u16(), media, body(response).await.to_vec())
}

/// The same, read as protobuf.
async fn read(client: &Client, path: &str) -> (u16, Value) {
    let (code, media, bytes) = taken(client, path, PROTOBUF).await;
    assert_eq!(media, PROTOBUF);
    (code, protobuf::decode(&bytes).unwrap())
}

async fn with_map() -> Client {
    let client = Client::new();
    let map = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "é"}, "binaryData": {"b": "AP8="}});
    client.post(MAPS, map).await.expect(201);
    client
}

#[tokio::test]
async fn objects_lists_and_errors_say_the_same_in_protobuf() {
    let client = with_map().await;
    let path = format!("{MAPS}/a");
    let (code, map) = read(&client, &path).await;
    assert_eq!((code, &map), (200, &client.get(&path).await.expect(200)));
    let (_, mut list) = read(&client, MAPS).await;
    let mut expected = client.get(MAPS).await.expect(200);
    // What an object is, an envelope says once for all.
    for list in [&mut list, &mut expected] {
        for item in list["items"].as_array_mut().unwrap() {
            item.as_object_mut().unwrap().retain(|name, _| name != "kind" && name != "apiVersion");
        }
    }
    assert_eq!(list, expected);
    let (code, status) = read(&client, &format!("{MAPS}/missing")).await;
    assert_eq!(
        (code, &status["reason"], &status["details"]["name"]),
        (404, &json!("NotFound"), &json!("missing"))
    );
    let (_, _, bytes) = taken(&client, &path, METADATA).await;
    let metadata = protobuf::decode(&bytes).unwrap();
    assert_eq!(
        (&metadata["kind"], &metadata["metadata"]),
        (&json!("PartialObjectMetadata"), &map["metadata"])
    );
    let (_, groups) = read(&client, "/apis").await;
    assert_eq!(groups, client.get("/apis").await.expect(200));
}

#[tokio::test]
async fn a_watch_in_protobuf_tells_frames() {
    let client = with_map().await;
    let path = format!(
        "{MAPS}?watch=1&resourceVersion=0&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    );
    let response = ask(&client, &path, &[("accept", PROTOBUF)]).await;
    assert_eq!(response.headers()["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        bytes.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
        while let Some((head, rest)) = bytes.split_first_chunk::<4>()
            && let Some(frame) = rest.get(..u32::from_be_bytes(*head) as usize)
        {
            let at = frame.windows(4).position(|part| part == b"k8s\0").unwrap();
            let kind = String::from_utf8_lossy(&frame[2..2 + usize::from(frame[1])]).into_owned();
            seen.push((kind, protobuf::decode(&frame[at..]).unwrap()));
            let length = 4 + frame.len();
            bytes.drain(..length);
        }
    }
    assert_eq!((seen[0].0.as_str(), &seen[0].1["data"]["k"]), ("ADDED", &json!("é")));
    assert_eq!(seen[1].0, "BOOKMARK");
    assert_eq!(seen[1].1["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test]
async fn custom_resources_have_no_protobuf_but_for_their_metadata() {
    let client = Client::new();
    client.post(DEFINITIONS, widgets()).await.expect(201);
    client.post(WIDGETS, widget("w", json!({}))).await.expect(201);
    let path = format!("{WIDGETS}/w");
    let (code, media, bytes) = taken(&client, &path, PROTOBUF).await;
    assert_eq!((code, media.as_str()), (406, PROTOBUF));
    assert_eq!(protobuf::decode(&bytes).unwrap()["reason"], "NotAcceptable");
    let (code, media, _) = taken(&client, &path, &format!("{PROTOBUF},application/json")).await;
    assert_eq!((code, media.as_str()), (200, "application/json"));
    let (code, _, bytes) = taken(&client, &path, METADATA).await;
    assert_eq!((code, &protobuf::decode(&bytes).unwrap()["metadata"]["name"]), (200, &json!("w")));
}

#[tokio::test]
async fn yaml_is_what_people_read() {
    let client = with_map().await;
    let (code, media, bytes) = taken(&client, &format!("{MAPS}/missing"), "application/yaml").await;
    assert_eq!((code, media.as_str()), (404, "application/yaml"));
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n  name: missing\nkind: Status\n\
         message: configmaps \"missing\" not found\nmetadata: {}\nreason: NotFound\nstatus: Failure\n"
    );
    let (_, _, bytes) = taken(&client, &format!("{MAPS}/a"), "application/yaml").await;
    assert!(
        String::from_utf8(bytes)
            .unwrap()
            .starts_with("apiVersion: v1\nbinaryData:\n  b: AP8=\ndata:\n  k: é\nkind: ")
    );
}
