//! What becomes of requests for certificates.

use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde_json::json;
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, object};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

const JANE: &str = include_str!("../parity/identities/requests/jane.csr");
const NODE: &str = include_str!("../parity/identities/requests/node.csr");
const SERVING: &str = include_str!("../parity/identities/requests/serving.csr");
const MIXED: &str = include_str!("../parity/identities/requests/mixed.csr");

const API_SERVER_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("an approved request for a client's certificate is signed", a_client)
        .test("an approved request for a kubelet's serving certificate is signed", a_server)
        .test("every name of a request is in its certificate", all_names)
        .test("a certificate holds as long as was asked", for_an_hour)
        .test("a request that does not fit its signer fails", unfit)
        .test("a request for another signer stays approved", another_signer)
        .test("a kubelet's request is approved if it may ask", a_kubelet)
}

/// Asks for a certificate, under a name of this test's own.
async fn ask(
    cluster: &TestCluster,
    pem: &str,
    signer: &str,
    usages: &[&str],
    seconds: Option<i32>,
) -> anyhow::Result<String> {
    let name = format!("{}-request", cluster.namespace());
    let mut request: CertificateSigningRequest =
        object(&name, json!({"spec": {"request": "", "signerName": signer, "usages": usages}}));
    request.spec.request = ByteString(pem.as_bytes().to_vec());
    request.spec.expiration_seconds = seconds;
    cluster.create(request).await?;
    Ok(name)
}

async fn approve(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
    let condition = json!({"type": "Approved", "status": "True", "reason": "Test", "message": "by a test"});
    let patch = json!({"status": {"conditions": [condition]}});
    let path = format!("/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}/approval");
    let request = http::Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes())?;
    cluster.client().request_text(request).await?;
    Ok(())
}

async fn signed(cluster: &TestCluster, name: &str) -> anyhow::Result<Vec<u8>> {
    let wait = cluster.eventually::<CertificateSigningRequest>(name);
    let request = wait.is("signed", |request| certificate(request).is_some()).await?;
    let (_, pem) = parse_x509_pem(certificate(&request).context("a certificate")?)?;
    ensure!(pem.label == "CERTIFICATE", "{}", pem.label);
    Ok(pem.contents)
}

fn certificate(request: &CertificateSigningRequest) -> Option<&[u8]> {
    Some(request.status.as_ref()?.certificate.as_ref()?.0.as_slice())
}

/// What a certificate says, in words that can be compared.
fn said(der: &[u8]) -> anyhow::Result<(String, Vec<String>, String)> {
    let (_, certificate) = X509Certificate::from_der(der)?;
    let mut names: Vec<String> = certificate
        .subject()
        .iter_attributes()
        .map(|part| format!("{}={}", part.attr_type(), part.as_str().unwrap_or_default()))
        .collect();
    names.sort();
    let alternative = certificate.subject_alternative_name()?;
    let others = alternative.iter().flat_map(|found| &found.value.general_names);
    let others = others.map(|name| match name {
        GeneralName::IPAddress(bytes) => format!("IP {bytes:?}"),
        name => name.to_string(),
    });
    let usage = certificate.key_usage()?.map(|usage| usage.value.to_string()).unwrap_or_default();
    let extended = certificate.extended_key_usage()?;
    let extended = extended.map(|usage| (usage.value.client_auth, usage.value.server_auth));
    Ok((names.join(","), others.collect(), format!("{usage} {extended:?} ca {}", certificate.is_ca())))
}

/// How long it holds, in minutes.
fn minutes(der: &[u8]) -> anyhow::Result<i64> {
    let (_, certificate) = X509Certificate::from_der(der)?;
    let validity = certificate.validity();
    Ok((validity.not_after.timestamp() - validity.not_before.timestamp()) / 60)
}

async fn a_client(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let usages = ["digital signature", "key encipherment", "client auth"];
    let name = ask(&cluster, JANE, API_SERVER_CLIENT, &usages, None).await?;
    approve(&cluster, &name).await?;
    let certificate = signed(&cluster, &name).await?;
    let (subject, names, uses) = said(&certificate)?;
    ensure!(subject == "2.5.4.10=dev,2.5.4.10=ops,2.5.4.3=jane", "{subject}");
    ensure!(names.is_empty(), "{names:?}");
    ensure!(uses == "Digital Signature, Key Encipherment Some((true, false)) ca false", "{uses}");
    let holds = minutes(&certificate)?;
    ensure!(holds == 365 * 24 * 60, "{holds} minutes");
    Ok(())
}

async fn a_server(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let usages = ["digital signature", "key encipherment", "server auth"];
    let name = ask(&cluster, SERVING, KUBELET_SERVING, &usages, None).await?;
    approve(&cluster, &name).await?;
    let (subject, names, uses) = said(&signed(&cluster, &name).await?)?;
    ensure!(subject == "2.5.4.10=system:nodes,2.5.4.3=system:node:n1", "{subject}");
    ensure!(
        names.len() == 3 && names[0].contains("n1.example.com") && names[1] == "IP [10, 0, 0, 1]",
        "{names:?}"
    );
    ensure!(uses == "Digital Signature, Key Encipherment Some((false, true)) ca false", "{uses}");
    Ok(())
}

async fn all_names(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let name = ask(&cluster, MIXED, API_SERVER_CLIENT, &["client auth"], None).await?;
    approve(&cluster, &name).await?;
    let (subject, names, uses) = said(&signed(&cluster, &name).await?)?;
    // An address of e-mail in the subject is not passed on.
    ensure!(
        subject == "2.5.4.11=x,2.5.4.3=mixed,2.5.4.5=7,2.5.4.6=KR,2.5.4.7=Jung,2.5.4.8=Seoul",
        "{subject}"
    );
    ensure!(names.len() == 3 && names[0].contains("x.y"), "{names:?}");
    ensure!(names[1].contains("a@b.c") && names[2].contains("spiffe://a/b"), "{names:?}");
    ensure!(uses == " Some((true, false)) ca false", "{uses}");
    Ok(())
}

async fn for_an_hour(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let name = ask(&cluster, JANE, API_SERVER_CLIENT, &["client auth"], Some(3600)).await?;
    approve(&cluster, &name).await?;
    let holds = minutes(&signed(&cluster, &name).await?)?;
    // Five minutes more, for clocks that are behind.
    ensure!(holds == 65, "{holds} minutes");
    Ok(())
}

async fn unfit(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let name = ask(&cluster, JANE, KUBELET_SERVING, &["server auth"], None).await?;
    approve(&cluster, &name).await?;
    let wait = cluster.eventually::<CertificateSigningRequest>(&name);
    let failed = wait.has_condition_because("Failed", "SignerValidationFailure").await?;
    let conditions = failed.status.and_then(|status| status.conditions).unwrap_or_default();
    let why = conditions.iter().find(|one| one.type_ == "Failed").and_then(|one| one.message.clone());
    ensure!(why.as_deref() == Some("subject organization is not system:nodes"), "{why:?}");
    Ok(())
}

async fn another_signer(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let name = ask(&cluster, JANE, "example.com/s", &["client auth"], None).await?;
    approve(&cluster, &name).await?;
    // By the time that another one is signed, this one would have been.
    let more = cluster.in_namespace(&format!("{}-more", cluster.namespace()));
    let other = ask(&more, JANE, API_SERVER_CLIENT, &["client auth"], None).await?;
    approve(&cluster, &other).await?;
    signed(&cluster, &other).await?;
    let request = cluster.get::<CertificateSigningRequest>(&name).await?;
    ensure!(certificate(&request).is_none(), "nobody signs for it");
    Ok(())
}

async fn a_kubelet(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    // The administrator may ask for anything, and so for the certificate of any node.
    let usages = ["digital signature", "client auth"];
    let name = ask(&cluster, NODE, KUBELET_CLIENT, &usages, None).await?;
    let certificate = signed(&cluster, &name).await?;
    let (subject, ..) = said(&certificate)?;
    ensure!(subject == "2.5.4.10=system:nodes,2.5.4.3=system:node:n1", "{subject}");
    let request = cluster.get::<CertificateSigningRequest>(&name).await?;
    let conditions = request.status.and_then(|status| status.conditions).unwrap_or_default();
    let said = conditions.first().and_then(|one| one.message.clone()).unwrap_or_default();
    ensure!(said == "Auto approving kubelet client certificate after SubjectAccessReview.", "{said}");
    Ok(())
}
