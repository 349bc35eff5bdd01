//! The CRDs of well-known projects, created on the embedded API and on the reference: accepted alike, established
//! alike, and shown alike in discovery and OpenAPI.
//!
//! They are downloaded with Go. Without Go, or without a way to the module proxy, what is missing is told and skipped.
//! `WINDLASS_PROJECT` runs those whose module contains it.

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::suite::REQUIRE_VARIABLE;
use windlass_harness::{Environment, Suite, Target};
use windlass_tests::compare::{Answer, Normaliser, Request, Server, first_difference};
use windlass_tests::targets::Embedded;
use windlass_tests::well_known::{Missing, Project, definitions, projects};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How long definitions may take to be established, shown, or gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often that is looked at.
const PAUSE: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    Suite::on([Environment::reference()])
        .limit(Duration::from_secs(600))
        .test("the CRDs of well-known projects are served alike", served_alike)
        .run()
}

async fn served_alike(target: Target) -> anyhow::Result<()> {
    let embedded = Embedded::in_process();
    let left = Server::new("embedded", embedded.client());
    let right = Server::new("reference", target.client());
    let only = std::env::var("WINDLASS_PROJECT").unwrap_or_default();
    let (mut seen, mut count, mut equal, mut wrong) = (0, 0, 0, Vec::new());
    for project in projects().into_iter().filter(|project| project.module.contains(&only)) {
        let folder = match project.download().await {
            Ok(folder) => folder,
            Err(Missing::Go) if std::env::var_os(REQUIRE_VARIABLE).is_some() => bail!("there is no Go here"),
            Err(Missing::Go) => {
                println!("skipped: there is no Go here to download the projects with");
                return Ok(());
            }
            Err(Missing::Network(why)) => {
                println!("skipped {}: {why}", project.module);
                continue;
            }
        };
        let documents = definitions(&folder)?;
        let differences = compare(&left, &right, &documents).await.with_context(|| project.module)?;
        seen += 1;
        count += documents.len();
        equal += documents.len() - differences.len().min(documents.len());
        tell(&project, documents.len(), &differences);
        wrong.extend(differences);
    }
    println!("{seen} projects, {count} definitions, {equal} equal");
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn tell(project: &Project, count: usize, differences: &[String]) {
    println!("{}: {count} definitions, {} differ", project.module, differences.len());
    differences.iter().for_each(|difference| println!("  {difference}"));
}

/// Creates all of a project's definitions on both servers, compares what they make of them, and removes them again.
async fn compare(left: &Server, right: &Server, documents: &[String]) -> anyhow::Result<Vec<String>> {
    let mut differences = Vec::new();
    let mut names = Vec::new();
    for document in documents {
        let request = Request::new("POST", DEFINITIONS).raw("application/yaml", document.clone());
        let (ours, theirs) = (left.send(&request).await?, right.send(&request).await?);
        let name = theirs.body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if ours.status != theirs.status {
            differences.push(format!(
                "{name}: {} and {}: {}",
                ours.status,
                theirs.status,
                shown(&ours, &theirs)
            ));
        } else if !ours.is_success() {
            let (ours, theirs) = (&ours.body["message"], &theirs.body["message"]);
            if ours != theirs {
                differences.push(format!("{name}: {ours} and {theirs}"));
            }
        }
        if theirs.is_success() {
            names.push((name, ours.is_success()));
        }
    }
    let mut versions = BTreeSet::new();
    for (name, both) in names.iter().filter(|(_, both)| *both) {
        let request = Request::new("GET", format!("{DEFINITIONS}/{name}"));
        let (ours, theirs) = (until(left, &request, settled).await?, until(right, &request, settled).await?);
        for version in theirs.body["spec"]["versions"].as_array().into_iter().flatten() {
            if version["served"] == Value::Bool(true) {
                let group = theirs.body["spec"]["group"].as_str().unwrap_or_default();
                versions.insert((group.to_owned(), version["name"].as_str().unwrap_or_default().to_owned()));
            }
        }
        let (ours, theirs) = (normal(&request, ours), normal(&request, theirs));
        if *both && ours != theirs {
            differences.push(format!("{name}: {}", first_difference(&ours, &theirs, "")));
        }
    }
    for (group, version) in &versions {
        if let Some(difference) = discovery(left, right, group, version).await? {
            differences.push(format!("discovery of {group}/{version}: {difference}"));
        }
        if let Some(difference) = schemas(left, right, group, version).await? {
            differences.push(format!("schemas of {group}/{version}: {difference}"));
        }
    }
    for server in [left, right] {
        for (name, _) in &names {
            server.send(&Request::new("DELETE", format!("{DEFINITIONS}/{name}"))).await?;
        }
    }
    Ok(differences)
}

fn shown(ours: &Answer, theirs: &Answer) -> String {
    let refused = if ours.is_success() { theirs } else { ours };
    refused.body["message"].as_str().unwrap_or_default().chars().take(2000).collect()
}

/// Is a definition served, and is all told of it? The reference says for a while that it is about to serve a new one,
/// and of some groups it tells apart whether their definitions were approved.
fn settled(answer: &Answer) -> bool {
    let conditions = answer.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let has = |kind: &str| {
        conditions.iter().any(|condition| condition["type"] == kind && condition["reason"] != "Installing")
    };
    let protected = answer.body["spec"]["group"].as_str().is_some_and(|group| group.ends_with(".k8s.io"));
    has("Established") && (!protected || has("KubernetesAPIApprovalPolicyConformant"))
}

/// A definition with what is chance taken out.
fn normal(request: &Request, answer: Answer) -> Value {
    let mut normaliser = Normaliser::default();
    if let Some(uid) = answer.body["metadata"]["uid"].as_str() {
        normaliser.named(uid, "uid");
    }
    let mut body = normaliser.answer(request, answer).body;
    if let Some(conditions) = body["status"]["conditions"].as_array_mut() {
        conditions.sort_by_key(|condition| condition["type"].to_string());
    }
    // How many writes came before is chance where others are served too.
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
    }
    body
}

async fn until(
    server: &Server,
    request: &Request,
    wanted: impl Fn(&Answer) -> bool,
) -> anyhow::Result<Answer> {
    let clock = Clock::real();
    let look = async {
        loop {
            let answer = server.send(request).await?;
            if wanted(&answer) {
                return anyhow::Ok(answer);
            }
            clock.sleep(PAUSE).await;
        }
    };
    clock
        .timeout(PATIENCE, look)
        .await
        .with_context(|| format!("{} never answers {request} as it should", server.name))?
}

async fn discovery(
    left: &Server,
    right: &Server,
    group: &str,
    version: &str,
) -> anyhow::Result<Option<String>> {
    let request = Request::new("GET", format!("/apis/{group}/{version}"));
    let clock = Clock::real();
    let look = async {
        let mut difference = None;
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            let (ours, theirs) = (left.send(&request).await?, right.send(&request).await?);
            let (ours, theirs) = (by_name(&ours.body), by_name(&theirs.body));
            if ours == theirs {
                return Ok(None);
            }
            difference = Some(first_difference(&ours, &theirs, ""));
            clock.sleep(PAUSE).await;
        }
        anyhow::Ok(difference)
    };
    look.await
}

/// The resources of a version in the order of their names: on the reference they come as their definitions did.
fn by_name(list: &Value) -> Value {
    let mut resources = list["resources"].as_array().cloned().unwrap_or_default();
    resources.sort_by_key(|resource| resource["name"].to_string());
    Value::Array(resources)
}

/// Compares the schemas of custom resources in OpenAPI, once the reference has them.
async fn schemas(
    left: &Server,
    right: &Server,
    group: &str,
    version: &str,
) -> anyhow::Result<Option<String>> {
    let request = Request::new("GET", format!("/openapi/v3/apis/{group}/{version}"));
    let ours = custom(&left.send(&request).await?.body);
    let clock = Clock::real();
    let mut theirs = Value::Null;
    // Documents may be of some megabytes: they are asked for less often than small answers.
    let pause = PAUSE * 5;
    for _ in 0..PATIENCE.as_millis() / pause.as_millis() {
        theirs = custom(&right.send(&request).await?.body);
        if ours == theirs {
            return Ok(None);
        }
        clock.sleep(pause).await;
    }
    Ok(Some(first_difference(&ours, &theirs, "")))
}

fn custom(document: &Value) -> Value {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let own = schemas.into_iter().flatten().filter(|(name, _)| !name.starts_with("io.k8s.ap"));
    own.map(|(name, schema)| (name.clone(), without_words(schema))).collect::<serde_json::Map<_, _>>().into()
}

/// Without what the reference says about the parts that all kinds have: this repository carries no such descriptions.
fn without_words(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let list = schema["required"] == serde_json::json!(["items"]);
    if let Some(fields) = schema.as_object_mut().filter(|_| list) {
        fields.remove("description");
        if let Some(items) = fields["properties"]["items"].as_object_mut() {
            items.remove("description");
        }
    }
    wordless(&mut schema, true);
    schema
}

fn wordless(schema: &mut Value, root: bool) {
    match schema {
        Value::Object(fields) => {
            let resource = root || fields.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
            let properties = fields.get_mut("properties").and_then(Value::as_object_mut).filter(|_| resource);
            for (name, property) in properties.into_iter().flatten() {
                if matches!(name.as_str(), "apiVersion" | "kind" | "metadata")
                    && let Some(property) = property.as_object_mut()
                {
                    property.remove("description");
                }
            }
            fields.values_mut().for_each(|field| wordless(field, false));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| wordless(item, false)),
        _ => {}
    }
}
