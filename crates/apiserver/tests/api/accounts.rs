//! Tokens of service accounts: what may be asked for, and how others check them.

use crate::support::Client;
use serde_json::json;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

async fn client_with_bob() -> Client {
    let client = Client::new();
    client.post(ACCOUNTS, json!({"metadata": {"name": "bob"}})).await.expect(201);
    client
}

#[tokio::test]
async fn a_token_is_granted_for_an_hour_and_for_the_server_unless_asked_otherwise() {
    let client = client_with_bob().await;
    let path = format!("{ACCOUNTS}/bob/token");
    let granted = client.post(&path, json!({})).await.expect(201);
    assert_eq!(granted["kind"], "TokenRequest");
    assert_eq!(granted["apiVersion"], "authentication.k8s.io/v1");
    assert_eq!(
        granted["spec"],
        json!({"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600, "boundObjectRef": null})
    );
    assert_eq!(granted["metadata"]["name"], "bob");
    assert_eq!(granted["status"]["token"].as_str().unwrap().split('.').count(), 3);
    let asked = json!({"spec": {"audiences": ["vault"], "expirationSeconds": 7200}});
    let granted = client.post(&path, asked).await.expect(201);
    assert_eq!(granted["spec"]["audiences"], json!(["vault"]));
}

#[tokio::test]
async fn what_no_token_can_be_had_for_is_refused_as_the_reference_does() {
    let client = client_with_bob().await;
    let path = format!("{ACCOUNTS}/bob/token");
    let missing = client.post(&format!("{ACCOUNTS}/none/token"), json!({})).await;
    missing.refused(404, "serviceaccounts \"none\" not found");
    for (seconds, why) in [
        (5_i64, "may not specify a duration less than 10 minutes"),
        (99_999_999_999, "may not specify a duration larger than 2^32 seconds"),
    ] {
        let message = format!(
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: {seconds}: {why}"
        );
        let refused = client.post(&path, json!({"spec": {"expirationSeconds": seconds}})).await;
        refused.refused(422, &message);
    }
    let bind = |kind: &str| json!({"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": "x", "uid": "y"}}});
    client.post(&path, bind("Foo")).await.refused(400, "cannot bind token to object of type /v1, Kind=Foo");
    client.post(&path, bind("Pod")).await.refused(404, "pods \"x\" not found");
    client.post(&path, bind("Secret")).await.refused(404, "secrets \"x\" not found");
    client.post("/api/v1/namespaces/default/secrets", json!({"metadata": {"name": "x"}})).await.expect(201);
    client.post(&path, bind("Secret")).await.refused(
        409,
        "Operation cannot be fulfilled on Secret \"x\": the UID in the bound object reference (y) does not match the UID \
         in record. The object might have been deleted and then recreated",
    );
    let misnamed = client.post(&path, json!({"metadata": {"name": "z"}})).await;
    misnamed.refused(
        422,
        "TokenRequest.authentication.k8s.io \"bob\" is invalid: metadata.name: Invalid value: \"z\": must match the service \
         account name if specified",
    );
    client.get(&path).await.expect(405);
    client.put(&path, json!({})).await.expect(405);
}

#[tokio::test]
async fn others_find_the_key_that_tokens_are_checked_with() {
    let client = Client::new();
    let configuration = client.get("/.well-known/openid-configuration").await.expect(200);
    assert_eq!(configuration["issuer"], "https://kubernetes.default.svc");
    assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES256"]));
    let keys = client.get("/openid/v1/jwks").await.expect(200);
    assert_eq!((&keys["keys"][0]["kty"], &keys["keys"][0]["alg"]), (&json!("EC"), &json!("ES256")));
}
