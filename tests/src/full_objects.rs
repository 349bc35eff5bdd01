//! For every built-in kind an object with as many fields as kube-apiserver accepts, and the steps of its lifecycle. The objects
//! are data, in `full_objects/*.yaml`.

use crate::compare::exchange::media;
use crate::compare::{Answer, Normaliser, Request};
use crate::minimal_objects as minimal;
use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};

const FILES: &[(&str, &str)] = &[
    ("core.yaml", include_str!("full_objects/core.yaml")),
    ("pods.yaml", include_str!("full_objects/pods.yaml")),
    ("services.yaml", include_str!("full_objects/services.yaml")),
    ("workloads.yaml", include_str!("full_objects/workloads.yaml")),
    ("network.yaml", include_str!("full_objects/network.yaml")),
    ("storage.yaml", include_str!("full_objects/storage.yaml")),
    ("rules.yaml", include_str!("full_objects/rules.yaml")),
    ("devices.yaml", include_str!("full_objects/devices.yaml")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Tells several objects of one kind apart.
    #[serde(default)]
    about: String,
    object: Value,
    /// Merge patches, sent one after the other; some are refused.
    #[serde(default)]
    changes: Vec<Value>,
    /// What its status becomes.
    #[serde(default)]
    status: Value,
}

/// An object and what is done to it.
#[derive(Debug, Clone)]
pub struct Full {
    /// `v1 Pod, security`, as people say it.
    pub title: String,
    /// Where the object is, once it is.
    pub path: String,
    /// The steps, by name.
    pub steps: Vec<(String, Step)>,
    /// The steps of a client that speaks protobuf, as those on client-go do: it reads, changes, and writes back.
    pub protobuf: Vec<(String, Step)>,
}

/// One thing that is done.
#[derive(Debug, Clone)]
pub enum Step {
    /// The request as it is.
    Ask(Box<Request>),
    /// What is at the path is read, merged with the patch, and written back.
    Rewrite(String, Value),
}

/// All of them, in `namespace` where they have one, each with `name` in its name.
///
/// # Errors
/// When a file is not as it should be.
pub fn all(namespace: &str, name: &str) -> anyhow::Result<Vec<Full>> {
    let minimal = minimal::all(namespace);
    let mut all = Vec::new();
    for (file, text) in FILES {
        let text = text.replace("$NAMESPACE", namespace).replace("$NAME", name);
        let text = text.replace("$REQUEST", minimal::REQUEST);
        let options = serde_saphyr::options! { strict_booleans: true };
        let rows: Vec<Row> =
            serde_saphyr::from_str_with_options(&text, options).with_context(|| format!("reading {file}"))?;
        for row in rows {
            let (version, kind) = (word(&row.object, "apiVersion"), word(&row.object, "kind"));
            let title = format!("{version} {kind}");
            let alike = minimal.iter().find(|minimal| minimal.title == title);
            let collection =
                &alike.with_context(|| format!("{title} in {file} is no kind that is stored"))?.path;
            all.push(full(title, collection, row));
        }
    }
    Ok(all)
}

fn word<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

fn full(kind: String, collection: &str, row: Row) -> Full {
    let title = if row.about.is_empty() { kind } else { format!("{kind}, {}", row.about) };
    let path = format!("{collection}/{}", word(&row.object["metadata"], "name"));
    let protobuf = in_protobuf(collection, &path, &row);
    let patch = |path: &str, body: Value| Request::new("PATCH", path).body(media::MERGE_PATCH, body);
    let apply = Request::new("PATCH", path.as_str())
        .with("fieldManager", "another")
        .body(media::APPLY_PATCH, row.object.clone());
    let create = Request::new("POST", collection).body(media::JSON, row.object);
    let mut steps = vec![("created".to_owned(), ask(create)), ("applied".to_owned(), ask(apply.clone()))];
    for (number, change) in row.changes.into_iter().enumerate() {
        steps.push((format!("change {}", number + 1), ask(patch(&path, change))));
    }
    steps.push(("relabelled".to_owned(), Step::Rewrite(path.clone(), labelled("update"))));
    if !row.status.is_null() {
        let status = json!({"metadata": {"labels": {"by": "status"}}, "spec": {}, "status": row.status});
        steps.push(("its status".to_owned(), ask(patch(&format!("{path}/status"), status))));
    }
    steps.push(("applied again".to_owned(), ask(apply.clone())));
    steps.push(("applied by force".to_owned(), ask(apply.with("force", "true"))));
    steps.push(("read".to_owned(), ask(Request::new("GET", path.as_str()))));
    steps.push(("deleted".to_owned(), ask(Request::new("DELETE", path.as_str()))));
    Full { title, path, steps, protobuf }
}

/// The life of the object at the hands of a client that speaks protobuf.
fn in_protobuf(collection: &str, path: &str, row: &Row) -> Vec<(String, Step)> {
    let create = Request::new("POST", collection).body(media::JSON, row.object.clone());
    let mut steps = vec![("created".to_owned(), ask(create))];
    for (number, change) in row.changes.iter().enumerate() {
        steps.push((format!("change {}", number + 1), Step::Rewrite(path.to_owned(), change.clone())));
    }
    steps.push(("relabelled".to_owned(), Step::Rewrite(path.to_owned(), labelled("update"))));
    if !row.status.is_null() {
        let status = json!({"metadata": {"labels": {"by": "status"}}, "status": row.status});
        steps.push(("its status".to_owned(), Step::Rewrite(format!("{path}/status"), status)));
    }
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
    steps.push(("read".to_owned(), ask(Request::new("GET", path))));
    steps.push(("deleted".to_owned(), ask(Request::new("DELETE", path).body(media::JSON, options))));
    steps
}

fn ask(request: Request) -> Step {
    Step::Ask(Box::new(request))
}

fn labelled(by: &str) -> Value {
    json!({"metadata": {"labels": {"by": by}}})
}

/// Learns what is random in an answer before the first text that quotes it is met.
pub fn learn(normaliser: &mut Normaliser, body: &Value) {
    if let Some(uid) = body.pointer("/metadata/uid").and_then(Value::as_str) {
        normaliser.named(uid, "uid");
    }
    let volumes = body.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    let names = volumes.filter_map(|volume| volume["name"].as_str());
    for name in names.filter(|name| name.starts_with("kube-api-access-")) {
        normaliser.named(name, "volume");
    }
}

/// An answer in comparable form, where a kind has something random of its own.
pub fn comparable(normaliser: &mut Normaliser, request: &Request, answer: Answer) -> Answer {
    learn(normaliser, &answer.body);
    let mut answer = normaliser.answer(request, answer);
    forget_controllers(&mut answer.body);
    name_addresses(&mut answer.body);
    if answer.body["kind"] == "CertificateSigningRequest" {
        name_requester(&mut answer.body);
    }
    answer
}

/// Controllers within the reference write the status of these two kinds when they come to it, and then it is theirs.
fn forget_controllers(object: &mut Value) {
    const WRITERS: [&str; 2] = ["api-priority-and-fairness-config-consumer-v1", "kube-apiserver"];
    if object["kind"] == "FlowSchema" || object["kind"] == "APIService" {
        object["status"] = Value::Null;
        let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        if let Some(entries) = entries {
            entries.retain(|entry| !WRITERS.contains(&word(entry, "manager")));
            for entry in entries.iter_mut() {
                entry["fieldsV1"].as_object_mut().map(|fields| fields.remove("f:status"));
            }
            entries.retain(|entry| entry["fieldsV1"] != json!({}));
        }
        object["metadata"]["resourceVersion"] = Value::Null;
    }
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
