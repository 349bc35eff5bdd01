//! The objects that an API server creates at its start, in comparable form.

use crate::compare::{Normaliser, Request, Server};
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The field managers of these objects.
const WRITERS: [&str; 4] = [
    "kube-apiserver",
    "api-priority-and-fairness-config-producer-v1",
    "api-priority-and-fairness-config-consumer-v1",
    "kubernetes-service-cidr-controller",
];

/// Only the reference has these: its identity Lease, and `extension-apiserver-authentication`.
const OWN: [&str; 2] = ["Lease", "extension-apiserver-authentication"];

/// All of them, by path and name.
///
/// # Errors
/// When the server did not answer.
pub async fn all(server: &Server) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for path in collections(server).await? {
        let list = server.send(&Request::new("GET", path.as_str())).await?.body;
        let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
        for item in list["items"].as_array().cloned().unwrap_or_default() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let namespace = item["metadata"]["namespace"].as_str().unwrap_or_default();
            // A definition that someone made is served as an API service, and an address that a Service took is noted down.
            let someones = name.ends_with("windlass.test") || (kind == "IPAddress" && name != "10.96.0.1");
            let own = OWN.contains(&kind.as_str()) || OWN.contains(&name.as_str());
            if is_own_making(&item) && !someones && !own {
                found.insert(format!("{path} {namespace}/{name}"), comparable(item.clone(), &kind));
            }
        }
    }
    Ok(found)
}

/// The paths of all that can be listed and created.
async fn collections(server: &Server) -> anyhow::Result<Vec<String>> {
    let groups = server.send(&Request::new("GET", "/apis")).await?.body;
    let groups = groups["groups"].as_array().context("a list of groups")?.clone();
    let preferred =
        |group: &Value| Some(format!("/apis/{}", group["preferredVersion"]["groupVersion"].as_str()?));
    let roots = std::iter::once("/api/v1".to_owned()).chain(groups.iter().filter_map(preferred));
    let mut paths = Vec::new();
    for root in roots.filter(|root| !root.contains("windlass.test") && !root.contains("events.k8s.io")) {
        let resources = server.send(&Request::new("GET", root.as_str())).await?.body;
        for resource in resources["resources"].as_array().into_iter().flatten() {
            let has =
                |verb: &str| resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!(verb)));
            if has("list") && has("create") {
                paths.push(format!("{root}/{}", resource["name"].as_str().unwrap_or_default()));
            }
        }
    }
    Ok(paths)
}

fn is_own_making(object: &Value) -> bool {
    let entries = object["metadata"]["managedFields"].as_array();
    let is_writer = |entry: &Value| WRITERS.contains(&entry["manager"].as_str().unwrap_or_default());
    entries.is_some_and(|entries| !entries.is_empty() && entries.iter().all(is_writer))
}

fn comparable(mut object: Value, kind: &str) -> Value {
    object["metadata"]["resourceVersion"] = Value::Null;
    // Where the API listens.
    for pointer in ["/spec/ports/0/targetPort", "/subsets/0/ports/0/port", "/ports/0/port"] {
        if matches!(kind, "Service" | "Endpoints" | "EndpointSlice")
            && let Some(port) = object.pointer_mut(pointer)
        {
            *port = json!("<port>");
        }
    }
    if let Some(day) = object.pointer_mut("/data/since") {
        *day = json!("<day>");
    }
    Normaliser::default().value(&mut object, "");
    object
}
