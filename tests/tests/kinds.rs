//! For every built-in kind: the minimal object that kube-apiserver accepts and a full one, written to the embedded API and to the
//! reference, as JSON and as protobuf, and what comes back compared field by field.
//!
//! `WINDLASS_KIND` runs those whose title contains it, and shows both objects whole. `WINDLASS_UPDATES` says how many percent of the
//! updates of one field are compared.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Endpoints;
use kube::Api;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;
use tokio::sync::Mutex;
use windlass_clock::Clock;
use windlass_harness::{Environment, Suite, Target};
use windlass_schema::patch;
use windlass_tests::as_protobuf;
use windlass_tests::bootstrap_objects;
use windlass_tests::compare::exchange::media;
use windlass_tests::compare::{Answer, Normaliser, Request, Server, first_difference};
use windlass_tests::full_objects::{self as full, Step};
use windlass_tests::minimal_objects::{self as minimal, Minimal};
use windlass_tests::targets::Embedded;
use windlass_tests::updates;
use windlass_tests::waiting::until;

/// Kinds that do not come back equal yet; each is explained in docs/parity.md.
const UNEQUAL: &[&str] = &[];

/// Kinds whose status the reference writes by itself, some time after an object was created: it is seen or not, and so is
/// who owns it.
const TOUCHED: &[&str] = &["APIService", DEFINITION, "FlowSchema"];

const DEFINITION: &str = "CustomResourceDefinition";

/// Steps in the lives of full objects that are not equal yet; each is explained in docs/parity.md.
const UNEQUAL_STEPS: &str = include_str!("../src/full_objects/unequal.txt");

/// What limits and quotas of one test would do to another is kept apart.
const NAMESPACE: &str = "minimal-objects";
const FULL: &str = "full-objects";
const UPDATED: &str = "updated-objects";

/// How many updates of one field are compared, in a hundred.
const UPDATES: u64 = 15;

/// What one test makes the default of the cluster would be seen in another.
static ALONE: Mutex<()> = Mutex::const_new(());

fn main() -> ExitCode {
    Suite::on([Environment::reference()])
        .limit(Duration::from_secs(900))
        .test("a new cluster has the same objects", from_the_start)
        .test("minimal objects of all kinds come back equal", minimal_objects)
        .test("full objects of all kinds have the same lifecycle", full_objects)
        .test("updates of every field of all kinds get equal responses", updates_of_all_fields)
        .run()
}

async fn from_the_start(target: Target) -> anyhow::Result<()> {
    let embedded = Embedded::in_process();
    let ours = bootstrap_objects::all(&Server::new("embedded", embedded.client())).await?;
    // The reference makes this one last, a while after it is ready.
    let endpoints: Api<Endpoints> = Api::default_namespaced(target.client());
    until("the API has its endpoints", || async { Ok(endpoints.get_opt("kubernetes").await?.is_some()) })
        .await?;
    let theirs = bootstrap_objects::all(&Server::new("reference", target.client())).await?;
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
    let _alone = ALONE.lock().await;
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

/// How the steps of lives compare.
#[derive(Default)]
struct Lives {
    steps: usize,
    equal: usize,
    surprises: Vec<String>,
}

async fn full_objects(target: Target) -> anyhow::Result<()> {
    let _alone = ALONE.lock().await;
    let embedded = Embedded::in_process();
    let servers = [Server::new("embedded", embedded.client()), Server::new("reference", target.client())];
    for server in &servers {
        prepare(server, FULL).await?;
    }
    let only = std::env::var("WINDLASS_KIND").unwrap_or_default();
    let (mut json, mut protobuf) = (Lives::default(), Lives::default());
    // One after the other: what one makes the default of the cluster would be seen in the other's life.
    for (full, again) in full::all(FULL, "full")?.into_iter().zip(full::all(FULL, "binary")?) {
        if full.title.contains(&only) {
            json.compare(&servers, &full.title, &full.steps, media::JSON).await?;
            let title = format!("{}, as protobuf", again.title);
            protobuf.compare(&servers, &title, &again.protobuf, media::PROTOBUF).await?;
        }
    }
    println!("{} steps with full objects, {} equal", json.steps, json.equal);
    println!("{} steps with full objects as protobuf, {} equal", protobuf.steps, protobuf.equal);
    let surprises = [json.surprises, protobuf.surprises].concat();
    ensure!(surprises.is_empty(), "not as listed: {}", surprises.join("\n  "));
    Ok(())
}

async fn updates_of_all_fields(target: Target) -> anyhow::Result<()> {
    let _alone = ALONE.lock().await;
    let embedded = Embedded::in_process();
    let servers = [Server::new("embedded", embedded.client()), Server::new("reference", target.client())];
    for server in &servers {
        prepare(server, UPDATED).await?;
    }
    let percent = std::env::var("WINDLASS_UPDATES").ok().and_then(|text| text.parse().ok());
    let percent = percent.unwrap_or(UPDATES);
    let only = std::env::var("WINDLASS_KIND").unwrap_or_default();
    let (mut objects, mut all) = (0, updates::Comparison::default());
    let subjects = updates::subjects(UPDATED)?;
    for subject in subjects.iter().filter(|subject| subject.title.contains(&only)) {
        let compared = updates::compare(&servers, subject, &subjects, percent).await?;
        for (title, how) in &compared.unequal {
            println!("{title}: {how}");
        }
        objects += 1;
        all.add(compared);
    }
    println!(
        "{} updates of {objects} objects, {} accepted, {} not answered by the reference, {} equal but for shown values, {} unequal",
        all.updates,
        all.accepted,
        all.unanswered,
        all.equal_but_shown,
        all.unequal.len()
    );
    let titles: Vec<&String> = all.unequal.iter().map(|(title, _)| title).collect();
    let is_known = |title: &str| updates::known().any(|line| updates::is_about(line, title));
    let mut surprises: Vec<String> =
        titles.iter().filter(|title| !is_known(title)).map(|title| title.to_string()).collect();
    if percent >= 100 && only.is_empty() {
        let is_met = |line: &str| titles.iter().any(|title| updates::is_about(line, title));
        let equal = updates::known().filter(|line| !is_met(line));
        surprises.extend(equal.map(|line| format!("became equal: {line}")));
    }
    ensure!(surprises.is_empty(), "not as listed: {}", surprises.join("\n  "));
    Ok(())
}

impl Lives {
    async fn compare(
        &mut self,
        servers: &[Server; 2],
        life: &str,
        steps: &[(String, Step)],
        form: &'static str,
    ) -> anyhow::Result<()> {
        let mut sides = [Normaliser::default(), Normaliser::default()];
        for (name, step) in steps {
            let title = format!("{life}: {name}");
            let ours = take(&servers[0], &mut sides[0], step, form).await.with_context(|| title.clone())?;
            let theirs = take(&servers[1], &mut sides[1], step, form).await.with_context(|| title.clone())?;
            for server in servers.iter().filter(|_| name == "created" && theirs.body["kind"] == DEFINITION) {
                established(server, &ours).await?;
            }
            if name == "created" && !theirs.is_success() {
                self.surprises.push(format!("the reference refuses {title}: {}", theirs.body["message"]));
            }
            self.steps += 1;
            let same = ours == theirs;
            self.equal += usize::from(same);
            if std::env::var_os("WINDLASS_KIND").is_some() {
                println!("{title} {step:?}\n  {ours}\n  {theirs}");
            }
            if !same {
                let difference = first_difference(&ours.body, &theirs.body, "");
                println!("{title}: {} against {}: {difference}", ours.status, theirs.status);
            }
            if same == UNEQUAL_STEPS.lines().any(|known| known == title) {
                self.surprises.push(title);
            }
        }
        Ok(())
    }
}

/// Waits until a definition is served: its conditions say so some time after it was created.
async fn established(server: &Server, definition: &Answer) -> anyhow::Result<()> {
    let name = definition.body["metadata"]["name"].as_str().context("a name")?;
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    for _ in 0..200 {
        let body = server.send(&Request::new("GET", &path)).await?.body;
        let conditions = body["status"]["conditions"].as_array().into_iter().flatten();
        if conditions.into_iter().any(|it| it["type"] == "Established" && it["status"] == "True") {
            return Ok(());
        }
        Clock::real().sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("{name} is not established on {}", server.name)
}

async fn take(
    server: &Server,
    normaliser: &mut Normaliser,
    step: &Step,
    form: &'static str,
) -> anyhow::Result<Answer> {
    let mut request = asked(server, step).await?;
    let mut answer = sent(server, &request, form).await?;
    for _ in 0..20 {
        // A controller of the reference was faster.
        if answer.status != 409 || !matches!(step, Step::Rewrite(..)) {
            break;
        }
        request = asked(server, step).await?;
        answer = sent(server, &request, form).await?;
    }
    Ok(full::comparable(normaliser, &request, answer))
}

async fn asked(server: &Server, step: &Step) -> anyhow::Result<Request> {
    Ok(match step {
        Step::Ask(request) => (**request).clone(),
        Step::Rewrite(path, patch) => {
            let mut object = server.send(&Request::new("GET", path)).await?.body;
            patch::merge(&mut object, patch);
            Request::new("PUT", path).body(media::JSON, object)
        }
    })
}

async fn sent(server: &Server, request: &Request, form: &str) -> anyhow::Result<Answer> {
    match form {
        media::PROTOBUF => as_protobuf::exchanged(server, request).await,
        _ => server.send(request).await,
    }
}
