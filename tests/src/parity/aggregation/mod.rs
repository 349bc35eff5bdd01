//! API aggregation: APIServices, the conditions that say whether they are available, and what is led to the extension API servers behind
//! them.
//!
//! The servers are real ones, behind a Service without a selector and an EndpointSlice.

mod conditions;
mod discovery;
mod documents;
mod faults;
mod registration;
mod requests;
mod server;

use super::webhooks::server::{Proof, Server};
use super::webhooks::services::own_address;
use super::{Behaviour, Script};
use crate::compare::exchange::media;
use crate::compare::{Answer, Request};
use serde_json::{Value, json};
use server::{Asked, Extension, Reply};

/// Where APIServices are.
const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// All of discovery at once.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(super) fn behaviours() -> Vec<Behaviour> {
    let all = [
        registration::behaviours(),
        conditions::behaviours(),
        requests::behaviours(),
        discovery::behaviours(),
        documents::behaviours(),
        faults::behaviours(),
    ]
    .concat();
    all.into_iter()
        .map(|behaviour| Behaviour { name: format!("aggregation: {}", behaviour.name), ..behaviour })
        .collect()
}

/// An APIService of version v1 of the script's group that leads to the script's Service; `change` changes it before.
fn api_service(script: &Script, change: impl FnOnce(&mut Value)) -> Value {
    let group = script.group();
    let mut object = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{group}")},
        "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 1500, "versionPriority": 15,
            "caBundle": Server::bundle(), "service": {"namespace": script.namespace(), "name": "extension"}},
    });
    change(&mut object);
    object
}

/// Where the APIService of version v1 of the script's group is.
fn item(script: &Script) -> String {
    format!("{SERVICES}/v1.{}", script.group())
}

/// Where the objects of the script's group are.
fn gadgets(script: &Script) -> String {
    script.path(&format!("/apis/{}/v1", script.group()), "gadgets")
}

/// Makes an APIService, which is removed at the end.
async fn register(script: &mut Script, object: Value) -> anyhow::Result<Answer> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    script.leave(format!("{SERVICES}/{name}"));
    let answer = script.quiet(Request::new("POST", SERVICES).body(media::JSON, object)).await?;
    anyhow::ensure!(answer.is_success(), "the APIService was refused: {answer}");
    Ok(answer)
}

/// Makes the script's Service, with this type and at this port.
async fn service(script: &mut Script, port: u16) -> anyhow::Result<()> {
    let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "extension"},
        "spec": {"ports": [{"port": port, "name": "https"}]}});
    let services = script.path("/api/v1", "services");
    let answer = script.quiet(Request::new("POST", services).body(media::JSON, body)).await?;
    anyhow::ensure!(answer.is_success(), "the Service was refused: {answer}");
    Ok(())
}

/// Leads the script's Service to a port of this machine.
async fn slice(script: &mut Script, to: u16, change: impl FnOnce(&mut Value)) -> anyhow::Result<()> {
    let address = own_address()?.to_string();
    script.name(&format!("{address}:{to}"), "server");
    let mut slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "extension-1", "labels": {"kubernetes.io/service-name": "extension"}},
        "endpoints": [{"addresses": [address]}], "ports": [{"name": "https", "port": to, "protocol": "TCP"}]});
    change(&mut slice);
    let slices = script.path("/apis/discovery.k8s.io/v1", "endpointslices");
    let answer = script.quiet(Request::new("POST", slices).body(media::JSON, slice)).await?;
    anyhow::ensure!(answer.is_success(), "the slice was refused: {answer}");
    Ok(())
}

/// An extension API server behind the script's Service, which answers what is not about itself as `answer` says.
async fn extension(
    script: &mut Script,
    answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> anyhow::Result<Extension> {
    behind(script, Proof::Own, about_itself(script, answer)).await
}

/// A server behind the script's Service, which proves to be that or something else.
async fn behind(
    script: &mut Script,
    proof: Proof,
    answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> anyhow::Result<Extension> {
    let host = format!("extension.{}.svc", script.namespace());
    let extension = Extension::start(proof, &host, answer).await?;
    service(script, 443).await?;
    slice(script, extension.port, |_| {}).await?;
    Ok(extension)
}

/// A server and the APIService that leads to it, which is available.
async fn available(
    script: &mut Script,
    answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> anyhow::Result<Extension> {
    let extension = extension(script, answer).await?;
    let object = api_service(script, |_| {});
    register(script, object).await?;
    until_available(script).await?;
    extension.take_asked();
    Ok(extension)
}

/// Waits until requests are led to the server.
async fn until_available(script: &mut Script) -> anyhow::Result<()> {
    until_condition(script, "Passed").await?;
    // The condition is seen late by who leads requests.
    let path = format!("/apis/{}/v1", script.group());
    script.until_it(&path, |answer| answer.status != 503 && answer.status != 404).await
}

/// Waits until the condition of the APIService has this reason.
async fn until_condition(script: &mut Script, reason: &str) -> anyhow::Result<()> {
    let path = item(script);
    script.until_it(&path, |answer| condition(answer)["reason"] == reason).await
}

fn condition(answer: &Answer) -> &Value {
    &answer.body["status"]["conditions"][0]
}

/// What an extension API server says of itself, and what `answer` says of all else.
fn about_itself(
    script: &Script,
    answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Asked) -> Reply + Send + Sync + 'static {
    let group = script.group();
    move |asked| match asked.path.as_str() {
        "/apis" => Reply::Raw(200, AGGREGATED, all_of_discovery(&group).to_string().into_bytes()),
        path if path == format!("/apis/{group}/v1") => Reply::Json(200, resources(&group)),
        "/openapi/v2" => Reply::Json(200, documents::older(&group)),
        "/openapi/v3" => Reply::Json(200, documents::root(&group)),
        path if path == format!("/openapi/v3/apis/{group}/v1") => Reply::Json(200, documents::newer()),
        _ => answer(asked),
    }
}

fn resources(group: &str) -> Value {
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{group}/v1"), "resources": [
        {"name": "gadgets", "singularName": "gadget", "namespaced": true, "kind": "Gadget",
            "verbs": ["create", "delete", "get", "list", "watch"], "shortNames": ["gd"]},
        {"name": "gadgets/status", "singularName": "", "namespaced": true, "kind": "Gadget", "verbs": ["get", "update"]},
    ]})
}

fn all_of_discovery(group: &str) -> Value {
    let kind = json!({"group": group, "version": "v1", "kind": "Gadget"});
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [
        {"metadata": {"name": group, "creationTimestamp": null}, "versions": [{"version": "v1", "freshness": "Current",
            "resources": [{"resource": "gadgets", "responseKind": kind, "scope": "Namespaced",
                "singularResource": "gadget", "verbs": ["create", "delete", "get", "list", "watch"],
                "shortNames": ["gd"], "categories": ["all"],
                "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get", "update"]}]}]}]},
    ]})
}

/// A Gadget.
fn gadget(script: &Script, name: &str) -> Value {
    json!({"apiVersion": format!("{}/v1", script.group()), "kind": "Gadget",
        "metadata": {"name": name, "namespace": script.namespace()}, "spec": {"size": 1}})
}

/// Nobody asks for this.
fn nothing(_: &Asked) -> Reply {
    Reply::Raw(404, "text/plain", b"nothing here".to_vec())
}
