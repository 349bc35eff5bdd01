//! For every built-in kind: the least object that a real server accepts, created on the embedded API and on the reference,
//! and what comes back compared field by field.
//!
//! `WINDLASS_KIND` runs those whose title contains it, and shows both objects whole.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::{Ground, Suite, Target};
use windlass_tests::as_protobuf;
use windlass_tests::compare::exchange::media;
use windlass_tests::compare::{Answer, Normaliser, Request, Server, first_difference};
use windlass_tests::grounds::Embedded;
use windlass_tests::minimal::{self, Minimal};

/// Kinds that do not come back equal yet; each is explained in docs/parity.md.
const UNEQUAL: &[&str] = &[];

const NAMESPACE: &str = "minimal-objects";

fn main() -> ExitCode {
    Suite::on([Ground::reference()])
        .limit(Duration::from_secs(300))
        .test("minimal objects of all kinds come back equal", minimal_objects)
        .run()
}

async fn minimal_objects(target: Target) -> anyhow::Result<()> {
    let embedded = Embedded::in_process();
    let left = Server::new("embedded", embedded.client());
    let right = Server::new("reference", target.client());
    for server in [&left, &right] {
        prepare(server).await?;
    }
    let only = std::env::var("WINDLASS_KIND").unwrap_or_default();
    let (mut kinds, mut equal, mut broken) = (0, 0, Vec::new());
    for minimal in minimal::all(NAMESPACE) {
        let (ours, theirs) = (create(&left, &minimal).await?, create(&right, &minimal).await?);
        if !minimal.title.contains(&only) {
            continue;
        }
        if !only.is_empty() {
            println!("{}\n  {ours}\n  {theirs}", minimal.title);
        }
        ensure!(
            theirs.is_success(),
            "the reference refuses the {}: {}",
            minimal.title,
            theirs.body["message"]
        );
        kinds += 1;
        if let Some(difference) = protobuf_difference(&left, &right, &minimal).await? {
            println!("{} as protobuf: {difference}", minimal.title);
            broken.push(format!("{} as protobuf", minimal.title));
        }
        if ours == theirs {
            equal += 1;
        } else {
            let difference = if ours.is_success() {
                first_difference(&ours.body, &theirs.body, "")
            } else {
                ours.body["message"].to_string()
            };
            println!("{}: {difference}", minimal.title);
            if !UNEQUAL.contains(&minimal.title.as_str()) {
                broken.push(minimal.title);
            }
        }
    }
    println!("{kinds} kinds, {equal} equal");
    ensure!(broken.is_empty(), "no longer equal: {}", broken.join(", "));
    Ok(())
}

/// A namespace with the account that a controller would put there.
async fn prepare(server: &Server) -> anyhow::Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    for (path, object) in [("/api/v1/namespaces".to_owned(), namespace), (accounts, account)] {
        let answer = server.send(&Request::new("POST", path).body(media::JSON, object)).await?;
        ensure!(answer.is_success() || answer.status == 409, "{answer}");
    }
    Ok(())
}

/// Where both servers differ when the object is written back and read as protobuf.
async fn protobuf_difference(
    left: &Server,
    right: &Server,
    minimal: &Minimal,
) -> anyhow::Result<Option<String>> {
    let name = minimal.object["metadata"]["name"].as_str().context("a name")?;
    let path = format!("{}/{name}", minimal.path);
    let ours = as_protobuf::written_and_read(left, &path).await?;
    let theirs = as_protobuf::written_and_read(right, &path).await?;
    for ((request, ours), (_, theirs)) in ours.into_iter().zip(theirs) {
        let (ours, theirs) = (comparable(&request, ours, minimal), comparable(&request, theirs, minimal));
        if ours != theirs {
            let difference = first_difference(&ours.body, &theirs.body, "");
            return Ok(Some(format!(
                "{} {difference} ({} and {})",
                request.method, ours.status, theirs.status
            )));
        }
    }
    Ok(None)
}

/// Creates the object, anew if an earlier run left it, and makes the answer comparable.
async fn create(server: &Server, minimal: &Minimal) -> anyhow::Result<Answer> {
    let request = Request::new("POST", minimal.path.clone()).body(media::JSON, minimal.object.clone());
    let name = minimal.object["metadata"]["name"].as_str().context("a name")?;
    let mut answer = server.send(&request).await?;
    if answer.status == 409 {
        server.send(&Request::new("DELETE", format!("{}/{name}", minimal.path))).await?;
        answer = server.send(&request).await?;
    }
    Ok(comparable(&request, answer, minimal))
}

/// An answer without what differs from server to server.
fn comparable(request: &Request, answer: Answer, minimal: &Minimal) -> Answer {
    let mut normaliser = Normaliser::default();
    // Known before the first text that quotes them is met.
    for (pointer, kind) in [("/metadata/uid", "uid"), ("/spec/volumes/0/name", "volume")] {
        if let Some(random) = answer.body.pointer(pointer).and_then(Value::as_str) {
            normaliser.named(random, kind);
        }
    }
    let mut answer = normaliser.answer(request, answer);
    name_addresses(&mut answer.body);
    if minimal.object["kind"] == "CertificateSigningRequest" && answer.is_success() {
        name_requester(&mut answer.body);
    }
    answer
}

/// The administrators of two clusters are two people. Of one who comes with a certificate the reference notes down
/// more than it can track, and so tracks nothing.
fn name_requester(request: &mut Value) {
    if let Some(metadata) = request.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    if let Some(spec) = request.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("extra");
        spec.remove("uid");
        for field in ["username", "groups"] {
            if spec.get(field).is_some_and(|value| !value.is_null()) {
                spec.insert(field.to_owned(), json!("<requester>"));
            }
        }
    }
}

/// Which address a Service gets is chance.
fn name_addresses(object: &mut Value) {
    let name = |address: &mut Value| {
        if address.as_str().is_some_and(|text| text.parse::<std::net::IpAddr>().is_ok()) {
            *address = json!("<address>");
        }
    };
    if let Some(spec) = object.get_mut("spec").filter(|spec| spec.get("clusterIPs").is_some()) {
        name(&mut spec["clusterIP"]);
        spec["clusterIPs"].as_array_mut().into_iter().flatten().for_each(name);
    }
}
