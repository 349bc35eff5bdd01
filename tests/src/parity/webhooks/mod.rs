//! Admission webhooks: what they are asked, and what their answers do.
//!
//! The servers are real ones. The reference takes in a configuration late, so every behaviour waits with a marker: a request that its
//! configuration alone refuses.

mod answers;
mod conditions;
mod configurations;
mod faults;
mod matching;
mod patches;
mod reviews;
mod rounds;
pub(super) mod server;
pub(super) mod services;

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use serde_json::{Value, json};
use server::{Reply, Server};

pub(super) fn behaviours() -> Vec<Behaviour> {
    [
        answers::behaviours(),
        patches::behaviours(),
        rounds::behaviours(),
        reviews::behaviours(),
        matching::behaviours(),
        conditions::behaviours(),
        faults::behaviours(),
        services::behaviours(),
        configurations::behaviours(),
    ]
    .concat()
}

/// A sort of configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Mutating,
    Validating,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Mutating => "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            Self::Validating => "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        }
    }
}

/// The path at which markers are refused, and what with.
const MARKER: &str = "marker";
const MARKED: u16 = 418;

/// A server that refuses markers, and answers everything else as `answer` says.
pub(super) async fn serve(
    answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
) -> anyhow::Result<Server> {
    Server::start(marking(answer)).await
}

fn marking(
    answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
) -> impl Fn(&str, &Value) -> Reply + Send + Sync + 'static {
    move |path, request| match path {
        MARKER => Reply::Response(json!({"allowed": false, "status": {"code": MARKED, "message": "marker"}})),
        // So that the marker of a webhook that is asked about everything is refused by itself alone.
        _ if request["resource"]["resource"] == "leases" => server::allowed(),
        _ => answer(path, request),
    }
}

/// Rules about writes of ConfigMaps.
fn maps() -> Value {
    json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}])
}

/// A webhook at a path of a server: about ConfigMaps of the script's namespace, unless `fields` say otherwise.
pub(super) fn hook(script: &Script, server: &Server, path: &str, fields: Value) -> Value {
    let namespace = script.namespace();
    let mut hook = json!({
        "name": format!("{path}.{namespace}.example.com"),
        "clientConfig": {"url": server.url(path), "caBundle": Server::bundle()},
        "rules": maps(), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        match value.is_null() {
            true => drop(hook.as_object_mut().and_then(|hook| hook.remove(name))),
            false => hook[name] = value.clone(),
        }
    }
    hook
}

/// The usual rules, of another resource.
fn about(group: &str, version: &str, resource: &str) -> Value {
    json!([{"operations": ["*"], "apiGroups": [group], "apiVersions": [version], "resources": [resource]}])
}

fn configuration(script: &Script, kind: Kind, name: &str, hooks: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind.name(),
        "metadata": {"name": format!("{}-{name}", script.namespace())}, "webhooks": hooks,
    })
}

/// Stores a configuration of these webhooks, and waits until it counts. The server forgets what it was asked meanwhile.
pub(super) async fn configure(
    script: &mut Script,
    server: &Server,
    kind: Kind,
    name: &str,
    mut hooks: Vec<Value>,
) -> anyhow::Result<()> {
    script.name(&server.address().to_string(), "server");
    let leases = about("coordination.k8s.io", "v1", "leases");
    let mut marker = hook(script, server, MARKER, json!({"rules": leases}));
    marker["name"] = json!(format!("{MARKER}.{name}.example.com"));
    marker["clientConfig"]["url"] = json!(format!("https://{}/{MARKER}", server.address()));
    hooks.push(marker);
    let body = configuration(script, kind, name, &hooks);
    let answer = script.quiet(Request::new("POST", kind.path()).body(media::JSON, body)).await?;
    anyhow::ensure!(answer.is_success(), "the configuration was refused: {answer}");
    script.leave(format!("{}/{}-{name}", kind.path(), script.namespace()));
    let text = format!("{MARKER}.{name}.example.com");
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "marker"}});
    let leases = script.path("/apis/coordination.k8s.io/v1", "leases");
    let request = Request::new("POST", leases).with("dryRun", "All").body(media::JSON, lease);
    script
        .until_asked(request, |answer| {
            answer.status == MARKED
                && answer.body["message"].as_str().is_some_and(|told| told.contains(&text))
        })
        .await?;
    server.take_asked();
    Ok(())
}

/// Notes down what the server was asked; `sorted` where webhooks are asked at once.
pub(super) fn tell(script: &mut Script, server: &Server, sorted: bool) {
    let mut asked = server.take_asked();
    if sorted {
        asked.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
    let told = asked.into_iter().map(|(path, mut review)| {
        hide_user(&mut review);
        json!({"path": path, "review": review})
    });
    let told = told.collect();
    script.note_reviews(told);
}

/// The administrator of one cluster is not that of another.
fn hide_user(review: &mut Value) {
    let user = &mut review["request"]["userInfo"];
    let named =
        user["username"].as_str().is_some_and(|name| name.contains("example") || name.contains("apiserver"));
    if user.is_object() && !named {
        *user = json!("<administrator>");
    }
}

/// A ConfigMap.
fn map(name: &str, fields: Value) -> Value {
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    for (field, value) in fields.as_object().into_iter().flatten() {
        match field.as_str() {
            "labels" | "annotations" => map["metadata"][field] = value.clone(),
            _ => map[field] = value.clone(),
        }
    }
    map
}
