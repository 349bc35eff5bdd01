//! The objects that a fresh server makes by itself: namespaces, then all else by kind and name. A line has where the object is
//! stored, its namespace, its name and its labels, and its JSON in the order in which the embedded store writes it, with the
//! same text in place of every uid and time.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// Who writes what a server makes by itself. On a server that was used, all else is someone's.
const WRITERS: [&str; 4] = [
    "kube-apiserver",
    "api-priority-and-fairness-config-producer-v1",
    "api-priority-and-fairness-config-consumer-v1",
    "kubernetes-service-cidr-controller",
];

/// What says where this very server is and who it is.
const OWN: [&str; 2] = ["Lease", "extension-apiserver-authentication"];

const UID: &str = "00000000-0000-0000-0000-000000000000";
const TIME: &str = "0000-00-00T00:00:00Z";
const DAY: &str = "0000-00-00";

/// Where an API is if nobody says otherwise.
const PORT: u16 = 6443;

/// All of them, asked for with `get`; `facts` say which kinds there are.
pub(super) fn collect(facts: &Value, get: &dyn Fn(&str) -> Result<Value>) -> Result<String> {
    let mut found = Vec::new();
    for row in facts["resources"].as_array().into_iter().flatten() {
        let word = |field: &str| row[field].as_str().unwrap_or_default();
        let (group, version, plural) = (word("group"), word("version"), word("plural"));
        let has = |verb: &str| row["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!(verb)));
        if !(has("list") && has("create")) {
            continue;
        }
        let (root, key) = match group {
            "" => (format!("/api/{version}"), plural.to_owned()),
            group => (format!("/apis/{group}/{version}"), format!("{group}/{plural}")),
        };
        let list = get(&format!("{root}/{plural}"))?;
        for item in list["items"].as_array().into_iter().flatten() {
            let mut object = item.clone();
            object["apiVersion"] = json!(root.trim_start_matches("/apis/").trim_start_matches("/api/"));
            object["kind"] = row["kind"].clone();
            if is_own_making(&object) {
                found.push((key != "namespaces", line(&key, object).with_context(|| key.clone())?));
            }
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, line)| line + "\n").collect())
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn is_own_making(object: &Value) -> bool {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let own = OWN.contains(&text(object, "/kind")) || OWN.contains(&text(object, "/metadata/name"));
    // The two shapes of an event are one; what expires is not from the start.
    let event = text(object, "/kind") == "Event";
    !own && !event
        && entries.is_some_and(|entries| {
            entries.iter().all(|entry| WRITERS.contains(&entry["manager"].as_str().unwrap_or_default()))
        })
}

fn line(key: &str, mut object: Value) -> Result<String> {
    let port = match text(&object, "/kind") {
        "Service" => object.pointer("/spec/ports/0/targetPort").cloned(),
        "Endpoints" => object.pointer("/subsets/0/ports/0/port").cloned(),
        "EndpointSlice" => object.pointer("/ports/0/port").cloned(),
        _ => None,
    };
    settle(&mut object, "", port.as_ref());
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
    let labels: Vec<String> = labels
        .iter()
        .map(|(name, value)| Some(format!("{name}={}", value.as_str()?)))
        .collect::<Option<_>>()
        .context("a label is no text")?;
    let (namespace, name) = (text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
    let json = in_order(&object)?;
    Ok(format!("{key}\t{namespace}\t{name}\t{}\t{json}", labels.join(",")))
}

/// Takes out what is of this server alone.
fn settle(value: &mut Value, name: &str, port: Option<&Value>) {
    match value {
        Value::Object(fields) => {
            fields.remove("resourceVersion");
            fields.iter_mut().for_each(|(name, field)| settle(field, name, port));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| settle(item, name, port)),
        _ => match name {
            "uid" => *value = json!(UID),
            "creationTimestamp" | "time" | "lastTransitionTime" => *value = json!(TIME),
            "since" => *value = json!(DAY),
            "port" | "targetPort" if Some(&*value) == port => *value = json!(PORT),
            _ => {}
        },
    }
}

/// What an object is comes first.
fn in_order(object: &Value) -> Result<String> {
    let none = Map::new();
    let object = object.as_object().unwrap_or(&none);
    let first = ["apiVersion", "kind"].into_iter().filter_map(|name| Some((name, object.get(name)?)));
    let rest = object.iter().map(|(name, value)| (name.as_str(), value));
    let rest = rest.filter(|(name, _)| !matches!(*name, "apiVersion" | "kind"));
    let members = first
        .chain(rest)
        .map(|(name, value)| Ok(format!("{}:{}", json!(name), serde_json::to_string(value)?)));
    Ok(format!("{{{}}}", members.collect::<Result<Vec<_>>>()?.join(",")))
}
