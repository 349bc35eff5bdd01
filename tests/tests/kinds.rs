//! For every built-in kind: the least object that a real server accepts, created on the embedded API and on the reference,
//! and what comes back compared field by field.
//!
//! `WINDLASS_KIND` runs those whose title contains it, and shows both objects whole.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::{Ground, Suite, Target};
use windlass_tests::as_protobuf;
use windlass_tests::compare::exchange::media;
use windlass_tests::compare::{Answer, Normaliser, Request, Server, first_difference};
use windlass_tests::from_the_start;
use windlass_tests::full::{self, Step};
use windlass_tests::grounds::Embedded;
use windlass_tests::minimal::{self, Minimal};

/// Kinds that do not come back equal yet; each is explained in docs/parity.md.
const UNEQUAL: &[&str] = &[];

/// Kinds whose status the reference writes by itself, some time after an object was created: it is seen or not, and so is
/// who owns it.
const TOUCHED: &[&str] = &["APIService", "CustomResourceDefinition", "FlowSchema"];

/// Steps in the lives of full objects that are not equal yet; each is explained in docs/parity.md.
const UNEQUAL_STEPS: &str = include_str!("../src/full/unequal.txt");

/// What limits and quotas of one test would do to another is kept apart.
const NAMESPACE: &str = "minimal-objects";
const FULL: &str = "full-objects";

fn main() -> ExitCode {
    Suite::on([Ground::reference()])
        .limit(Duration::from_secs(300))
        .test("a cluster has the same objects from the start", from_the_start)
        .test("minimal objects of all kinds come back equal", minimal_objects)
        .test("full objects of all kinds live equal lives", full_objects)
        .run()
}

async fn from_the_start(target: Target) -> anyhow::Result<()> {
    let embedded = Embedded::in_process();
    let ours = from_the_start::all(&Server::new("embedded", embedded.client())).await?;
    let theirs = from_the_start::all(&Server::new("reference", target.client())).await?;
    let mut differences = Vec::new();
    for name in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        match (ours.get(name), theirs.get(name)) {
            (Some(ours), Some(theirs)) if ours == theirs => {}
            (Some(ours), Some(theirs)) => {
                differences.push(format!("{name}: {}", first_difference(ours, theirs, "")))
            }
            (Some(_), None) => differences.push(format!("{name}: only here")),
            _ => differences.push(format!("{name}: only there")),
        }
    }
    println!("{} objects from the start, {} differences", theirs.len(), differences.len());
    ensure!(differences.is_empty(), "{}", differences.join("\n  "));
    Ok(())
}

async fn minimal_objects(target: Target) -> anyhow::Result<()> {
    let embedded = Embedded::in_process();
    let left = Server::new("embedded", embedded.client());
    let right = Server::new("reference", target.client());
    for server in [&left, &right] {
        prepare(server, NAMESPACE).await?;
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
async fn prepare(server: &Server, namespace: &str) -> anyhow::Result<()> {
    let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    for (path, object) in [("/api/v1/namespaces".to_owned(), home), (accounts, account)] {
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
        let [mut ours, mut theirs] =
            [ours, theirs].map(|answer| full::comparable(&mut Normaliser::default(), &request, answer));
        if TOUCHED.contains(&minimal.object["kind"].as_str().unwrap_or_default()) {
            forget_status(&mut ours.body);
            forget_status(&mut theirs.body);
        }
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

fn forget_status(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
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
    Ok(full::comparable(&mut Normaliser::default(), &request, answer))
}

async fn full_objects(target: Target) -> anyhow::Result<()> {
    let embedded = Embedded::in_process();
    let left = Server::new("embedded", embedded.client());
    let right = Server::new("reference", target.client());
    for server in [&left, &right] {
        prepare(server, FULL).await?;
    }
    let only = std::env::var("WINDLASS_KIND").unwrap_or_default();
    let (mut steps, mut equal, mut surprises) = (0, 0, Vec::new());
    for full in full::all(FULL)?.into_iter().filter(|full| full.title.contains(&only)) {
        let mut sides = [Normaliser::default(), Normaliser::default()];
        for (name, step) in &full.steps {
            let title = format!("{}: {name}", full.title);
            let ours = take(&left, &mut sides[0], &full.path, step).await?;
            let theirs = take(&right, &mut sides[1], &full.path, step).await?;
            if name == "created" && !theirs.is_success() {
                surprises.push(format!("the reference refuses {title}: {}", theirs.body["message"]));
            }
            steps += 1;
            let same = ours == theirs;
            equal += usize::from(same);
            if !only.is_empty() {
                println!("{title} {step:?}\n  {ours}\n  {theirs}");
            }
            if !same {
                let difference = first_difference(&ours.body, &theirs.body, "");
                println!("{title}: {} against {}: {difference}", ours.status, theirs.status);
            }
            if same == UNEQUAL_STEPS.lines().any(|known| known == title) {
                surprises.push(title);
            }
        }
    }
    println!("{steps} steps with full objects, {equal} equal");
    ensure!(surprises.is_empty(), "not as listed: {}", surprises.join("\n  "));
    Ok(())
}

async fn take(
    server: &Server,
    normaliser: &mut Normaliser,
    path: &str,
    step: &Step,
) -> anyhow::Result<Answer> {
    let request = match step {
        Step::Ask(request) => (**request).clone(),
        Step::Relabel => {
            let mut object = server.send(&Request::new("GET", path)).await?.body;
            object["metadata"]["labels"]["by"] = json!("update");
            Request::new("PUT", path).body(media::JSON, object)
        }
    };
    let answer = server.send(&request).await?;
    Ok(full::comparable(normaliser, &request, answer))
}
