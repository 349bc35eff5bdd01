//! Bodies in protobuf, which typed Go clients and kubectl send. The messages are those of client-go.

use crate::support::{Client, DEFINITIONS, MAPS, WIDGETS, widgets};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::json;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const MAP: &str =
    "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEi8KGQoBYxIAGgAiACoAMgA4AEIAWgYKAWESAWISBwoBaxICw6kaBwoBYhICAP8gARoAIgA=";
const LEASE: &str = "azhzAAofChZjb29yZGluYXRpb24uazhzLmlvL3YxEgVMZWFzZRIkChEKAWwSABoAIgAqADIAOABCABIPEA8iCwiA8tbKBhCAlO86GgAiAA==";
/// Asks for a UID.
const DELETE: &str = "azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxIIEgYKBG5vcGUaACIA";

fn bytes(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

#[tokio::test]
async fn an_object_is_what_the_same_object_in_json_is() {
    let client = Client::new();
    let map = client.send("POST", MAPS, PROTOBUF, bytes(MAP)).await.expect(201);
    assert_eq!(map["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!((&map["data"], &map["binaryData"]), (&json!({"k": "é"}), &json!({"b": "AP8="})));
    assert_eq!(map["immutable"], true);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = client.send("POST", leases, PROTOBUF, bytes(LEASE)).await.expect(201);
    let spec = json!({"leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.123456Z"});
    assert_eq!(lease["spec"], spec);
}

#[tokio::test]
async fn a_deletion_says_in_protobuf_what_it_expects() {
    let client = Client::new();
    client.send("POST", MAPS, PROTOBUF, bytes(MAP)).await.expect(201);
    let path = format!("{MAPS}/c");
    client.send("DELETE", &path, PROTOBUF, bytes(DELETE)).await.expect(409);
    client.get(&path).await.expect(200);
}

#[tokio::test]
async fn what_is_no_message_is_refused_in_kubernetes_words() {
    let client = Client::new();
    client.send("POST", MAPS, PROTOBUF, "abc").await.refused(
        400,
        "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a \
         protobuf message, expected prefix [107 56 115 0] (616263)",
    );
    let mut cut = bytes(MAP);
    // The envelope still says how long the message is.
    let at = cut.windows(2).position(|pair| pair == [0x12, 0x2f]).unwrap();
    cut[at + 2] = 0x08;
    client.send("POST", MAPS, PROTOBUF, cut).await.refused(
        400,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field ObjectMeta",
    );
    client.send("POST", MAPS, PROTOBUF, bytes(LEASE)).await.refused(
        400,
        "Lease in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Lease) to (core.ConfigMap): unknown \
         conversion",
    );
}

#[tokio::test]
async fn custom_resources_have_no_protobuf() {
    let client = Client::new();
    client.post(DEFINITIONS, widgets()).await.expect(201);
    client.send("POST", WIDGETS, PROTOBUF, bytes(MAP)).await.expect(415);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn broken_messages_never_end_the_server(at in 0_usize..70, byte in any::<u8>(), cut in 0_usize..76) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::new();
            let mut message = bytes(MAP);
            message[at] = byte;
            message.truncate(cut);
            let answer = client.send("POST", MAPS, PROTOBUF, message).await;
            assert!(answer.code == 201 || (400..=422).contains(&answer.code), "{}", answer.body);
        });
    }
}
