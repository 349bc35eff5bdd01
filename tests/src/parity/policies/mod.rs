//! Admission policies: what they decide, with which parameters, and which policies are refused themselves.
//!
//! The reference takes in policies late, and all at once: every behaviour waits with a marker, a policy with a binding that are made
//! after its own.

mod actions;
mod decisions;
mod expressions;
mod matching;
mod mutations;
mod objects;
mod params;
mod rounds;

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) fn behaviours() -> Vec<Behaviour> {
    [
        decisions::behaviours(),
        expressions::behaviours(),
        actions::behaviours(),
        matching::behaviours(),
        params::behaviours(),
        mutations::behaviours(),
        rounds::behaviours(),
        objects::behaviours(),
    ]
    .concat()
}

/// A sort of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Validating,
    Mutating,
}

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

impl Kind {
    fn policies(self) -> String {
        match self {
            Self::Validating => format!("{GROUP}/validatingadmissionpolicies"),
            Self::Mutating => format!("{GROUP}/mutatingadmissionpolicies"),
        }
    }

    fn bindings(self) -> String {
        match self {
            Self::Validating => format!("{GROUP}/validatingadmissionpolicybindings"),
            Self::Mutating => format!("{GROUP}/mutatingadmissionpolicybindings"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Validating => "ValidatingAdmissionPolicy",
            Self::Mutating => "MutatingAdmissionPolicy",
        }
    }
}

/// A rule about all writes of a resource.
fn about(group: &str, version: &str, resource: &str) -> Value {
    json!({"operations": ["CREATE", "UPDATE"], "apiGroups": [group], "apiVersions": [version], "resources": [resource]})
}

fn name(script: &Script, name: &str) -> String {
    format!("{}-{name}", script.namespace())
}

/// Lays fields over an object; null takes one away.
fn with(mut object: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().into_iter().flatten() {
        match value.is_null() {
            true => drop(object.as_object_mut().and_then(|object| object.remove(name))),
            false => object[name] = value.clone(),
        }
    }
    object
}

/// A policy about ConfigMaps of the script's namespace, unless `spec` says otherwise.
fn policy(script: &Script, kind: Kind, short: &str, spec: &Value) -> Value {
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": script.namespace()}});
    let mut rule = about("", "v1", "configmaps");
    let mut usual = json!({});
    match kind {
        Kind::Validating => {
            rule["operations"] = json!(["*"]);
            usual["validations"] = json!([{"expression": "false", "message": "refused"}]);
        }
        Kind::Mutating => usual["reinvocationPolicy"] = json!("Never"),
    }
    usual["matchConstraints"] = json!({"resourceRules": [rule], "namespaceSelector": selector});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind.name(),
        "metadata": {"name": name(script, short)}, "spec": with(usual, spec),
    })
}

fn binding(script: &Script, kind: Kind, short: &str, spec: &Value) -> Value {
    let mut usual = json!({"policyName": name(script, short)});
    if kind == Kind::Validating {
        usual["validationActions"] = json!(["Deny"]);
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{}Binding", kind.name()),
        "metadata": {"name": name(script, short)}, "spec": with(usual, spec),
    })
}

/// Stores an object whose answer is not compared, and removes it at the end.
async fn store(script: &mut Script, path: &str, body: Value) -> anyhow::Result<()> {
    let item = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap_or_default());
    let answer = script.quiet(Request::new("POST", path).body(media::JSON, body)).await?;
    anyhow::ensure!(answer.is_success(), "it was refused: {answer}");
    script.leave(item);
    Ok(())
}

/// Stores a policy that is bound once.
async fn bound(script: &mut Script, kind: Kind, short: &str, spec: Value, how: Value) -> anyhow::Result<()> {
    store(script, &kind.policies(), policy(script, kind, short, &spec)).await?;
    store(script, &kind.bindings(), binding(script, kind, short, &how)).await
}

/// Waits until all policies and bindings that were stored count.
async fn settle(script: &mut Script, kind: Kind) -> anyhow::Result<()> {
    static MARKERS: AtomicUsize = AtomicUsize::new(0);
    let short = format!("marker-{}", MARKERS.fetch_add(1, Ordering::Relaxed));
    // It is changed and never created: what is told of it is the same however often it is asked.
    let leases = script.path("/apis/coordination.k8s.io/v1", "leases");
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": short}});
    script.quiet(Request::new("POST", &leases).body(media::JSON, lease)).await?;
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": script.namespace()}});
    let mut rule = about("coordination.k8s.io", "v1", "leases");
    rule["resourceNames"] = json!([short]);
    let mut spec = json!({"matchConstraints": {"resourceRules": [rule], "namespaceSelector": selector},
        "matchConditions": [{"name": "marker", "expression": "object.marker == 1"}]});
    if kind == Kind::Mutating {
        spec["mutations"] =
            json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]);
    }
    bound(script, kind, &short, spec, json!({})).await?;
    let change = json!({"metadata": {"labels": {"marked": "yes"}}});
    let request = Request::new("PATCH", format!("{leases}/{short}")).with("dryRun", "All");
    let request = request.body(media::MERGE_PATCH, change);
    // The namespace in its name is shown as another.
    let wanted = format!("-{short}'");
    script
        .until_asked(request, |answer| {
            answer.body["details"]["causes"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|cause| cause["message"].as_str().is_some_and(|told| told.contains(&wanted)))
        })
        .await
}

/// Has the reference go on following ConfigMaps: it stops for good when no policy has them as parameters any more.
async fn follow_maps(script: &mut Script) -> anyhow::Result<()> {
    let kind = Kind::Validating;
    let mut rule = about("coordination.k8s.io", "v1", "leases");
    rule["resourceNames"] = json!(["of-nobody"]);
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchConstraints": {"resourceRules": [rule]}});
    let mut policy = policy(script, kind, "x", &spec);
    let mut binding = binding(script, kind, "x", &json!({"policyName": "follows-maps"}));
    for (path, body) in [(kind.policies(), &mut policy), (kind.bindings(), &mut binding)] {
        body["metadata"]["name"] = json!("follows-maps");
        // It is there already, or is now.
        script.unseen(&Request::new("POST", path).body(media::JSON, body.clone())).await?;
    }
    settle(script, kind).await
}

/// The only policy of a behaviour, bound once and settled.
async fn only(script: &mut Script, kind: Kind, spec: Value, how: Value) -> anyhow::Result<()> {
    bound(script, kind, "it", spec, how).await?;
    settle(script, kind).await
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

/// Writes of ConfigMaps that most policies have something to say about: two are created, and one is changed and deleted.
async fn writes(script: &mut Script) -> anyhow::Result<()> {
    let maps = script.maps();
    let post = Request::new("POST", &maps).with("fieldManager", "me");
    let first = map("a", json!({"labels": {"app": "web"}, "data": {"x": "1"}}));
    script.send(post.body(media::JSON, first)).await?;
    script.post(&maps, map("bc", json!({"data": {"x": "22"}}))).await?;
    script.merge(&format!("{maps}/before"), json!({"data": {"x": "3"}})).await?;
    script.delete(&format!("{maps}/before"), Value::Null).await?;
    Ok(())
}
