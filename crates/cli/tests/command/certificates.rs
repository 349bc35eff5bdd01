//! From a CertificateSigningRequest to a client that is who it asked to be.

use crate::process::{Cluster, windlass};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Api, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use std::time::Duration;
use windlass_clock::Clock;

async fn client(config: Kubeconfig) -> kube::Client {
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_request_ends_in_a_kubeconfig_that_works() {
    let place = tempfile::tempdir().unwrap();
    let mut up = windlass(&["cluster", "up", "--nodes", "simulated=1"]);
    up.env("XDG_RUNTIME_DIR", place.path());
    let cluster = Cluster::of(up);
    let admin = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "devs");
    params.distinguished_name.push(DnType::CommonName, "jane");
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    let requests: Api<CertificateSigningRequest> = Api::all(client(admin.clone()).await);
    let mut asked: CertificateSigningRequest = serde_json::from_value(json!({
        "metadata": {"name": "jane"},
        "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]},
    }))
    .unwrap();
    asked.spec.request.0 = request.into_bytes();
    requests.create(&Default::default(), &asked).await.unwrap();
    let approved =
        json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}});
    let patch = Patch::Merge(&approved);
    requests.patch_subresource("approval", "jane", &PatchParams::default(), &patch).await.unwrap();
    let clock = Clock::real();
    let deadline = clock.moment() + Duration::from_secs(60);
    let certificate = loop {
        let request = requests.get("jane").await.unwrap();
        match request.status.and_then(|status| status.certificate) {
            Some(certificate) => break certificate,
            None => assert!(clock.moment() < deadline, "it is not signed"),
        }
        clock.sleep(Duration::from_millis(20)).await;
    };
    let mut jane = serde_json::to_value(&admin).unwrap();
    jane["users"][0]["user"] = json!({
        "client-certificate-data": certificate,
        "client-key-data": ByteString(key.serialize_pem().into_bytes()),
    });
    let jane = serde_json::from_value(jane).unwrap();
    let review = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json")
        .body(br#"{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}"#.to_vec())
        .unwrap();
    let answer: Value = client(jane).await.request(review).await.unwrap();
    let user = &answer["status"]["userInfo"];
    assert_eq!(user["username"], "jane");
    assert_eq!(user["groups"], json!(["devs", "system:authenticated"]));
}
