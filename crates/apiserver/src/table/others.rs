//! Cells of events, nodes, bindings, autoscalers, quotas and what is seldom looked at.

use super::cells::{condition, first, has, items, labels, text};
use super::human;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

/// The first of these fields that is there: both kinds of events are shown alike.
fn either<'a>(object: &'a Value, paths: &[&str]) -> Option<&'a Value> {
    paths.iter().find_map(|path| object.pointer(path).filter(|value| !value.is_null()))
}

fn either_text<'a>(object: &'a Value, paths: &[&str]) -> &'a str {
    either(object, paths).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn event_first_seen(object: &Value, now: Timestamp) -> Value {
    human::since(either(object, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]), now).into()
}

pub(super) fn event_last_seen(object: &Value, now: Timestamp) -> Value {
    let paths = ["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp"];
    match either(object, &paths) {
        Some(time) => human::since(Some(time), now).into(),
        None => event_first_seen(object, now),
    }
}

pub(super) fn event_count(object: &Value, _: Timestamp) -> Value {
    let count = either(object, &["/series/count", "/count", "/deprecatedCount"]).and_then(Value::as_i64);
    count.filter(|count| *count != 0 || has(object, "/series")).unwrap_or(1).into()
}

pub(super) fn event_object(object: &Value, _: Timestamp) -> Value {
    let kind = either_text(object, &["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    match either_text(object, &["/involvedObject/name", "/regarding/name"]) {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

pub(super) fn event_part(object: &Value, _: Timestamp) -> Value {
    either_text(object, &["/involvedObject/fieldPath", "/regarding/fieldPath"]).into()
}

pub(super) fn event_source(object: &Value, _: Timestamp) -> Value {
    let component = first(&[
        either_text(object, &["/source/component", "/deprecatedSource/component"]),
        either_text(object, &["/reportingComponent", "/reportingController"]),
    ]);
    let host = either_text(object, &["/source/host", "/deprecatedSource/host"]);
    match first(&[host, text(object, "/reportingInstance")]) {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}

pub(super) fn event_message(object: &Value, _: Timestamp) -> Value {
    either_text(object, &["/message", "/note"]).trim().into()
}

pub(super) fn role(object: &Value, _: Timestamp) -> Value {
    format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name")).into()
}

/// A binding's subjects of one kind.
pub(super) fn subjects(object: &Value, kind: &str) -> Value {
    let subjects = items(object, "/subjects").iter().filter(|subject| text(subject, "/kind") == kind);
    let name = |subject| match kind {
        "ServiceAccount" => format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")),
        _ => text(subject, "/name").to_owned(),
    };
    subjects.map(name).collect::<Vec<_>>().join(", ").into()
}

pub(super) fn node_status(object: &Value, _: Timestamp) -> Value {
    let ready = match condition(object, "Ready") {
        "" => "Unknown",
        "True" => "Ready",
        _ => "NotReady",
    };
    let closed = object.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
    if closed { format!("{ready},SchedulingDisabled").into() } else { ready.into() }
}

pub(super) fn node_roles(object: &Value, _: Timestamp) -> Value {
    let mut roles = BTreeSet::new();
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    for (name, value) in labels {
        match name.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => roles.insert(role),
            None if name == "kubernetes.io/role" => roles.insert(value.as_str().unwrap_or_default()),
            None => false,
        };
    }
    roles.remove("");
    match roles.is_empty() {
        true => "<none>".into(),
        false => roles.into_iter().collect::<Vec<_>>().join(",").into(),
    }
}

/// A node's address of one kind.
pub(super) fn address(object: &Value, kind: &str) -> Value {
    let found = items(object, "/status/addresses").iter().find(|address| text(address, "/type") == kind);
    found.map_or("<none>", |address| text(address, "/address")).into()
}

pub(super) fn kernel(object: &Value, _: Timestamp) -> Value {
    let version = first(&[text(object, "/status/nodeInfo/kernelVersion"), "<unknown>"]);
    match text(object, "/status/nodeInfo/architecture") {
        "" => version.into(),
        architecture => format!("{version} ({architecture})").into(),
    }
}

pub(super) fn scale_target(object: &Value, _: Timestamp) -> Value {
    format!("{}/{}", text(object, "/spec/scaleTargetRef/kind"), text(object, "/spec/scaleTargetRef/name"))
        .into()
}

/// What an autoscaler aims at and where it is, two of its metrics at most.
pub(super) fn metrics(object: &Value, _: Timestamp) -> Value {
    const SHOWN: usize = 2;
    // The oldest version knows one metric, in fields of its own.
    if let Some(target) = object.pointer("/spec/targetCPUUtilizationPercentage").and_then(Value::as_i64) {
        let current = object.pointer("/status/currentCPUUtilizationPercentage").and_then(Value::as_i64);
        let current = current.map_or("<unknown>".to_owned(), |current| format!("{current}%"));
        return format!("cpu: {current}/{target}%").into();
    }
    let (specs, statuses) = (items(object, "/spec/metrics"), items(object, "/status/currentMetrics"));
    let metric = |(number, spec): (usize, &Value)| {
        let (field, named) = match text(spec, "/type") {
            "External" => ("external", false),
            "Pods" => ("pods", false),
            "Object" => ("object", false),
            "Resource" => ("resource", true),
            "ContainerResource" => ("containerResource", true),
            _ => return "<unknown type>".to_owned(),
        };
        let wanted = |name: &str| spec.pointer(&format!("/{field}/target/{name}"));
        let current = |name: &str| {
            let status =
                statuses.get(number).and_then(|status| status.pointer(&format!("/{field}/current/{name}")));
            match status {
                Some(Value::Number(number)) => format!("{number}%"),
                Some(Value::String(text)) => text.clone(),
                _ => "<unknown>".to_owned(),
            }
        };
        let prefix = match named {
            true => format!("{}: ", text(spec, &format!("/{field}/name"))),
            false => String::new(),
        };
        match wanted("averageValue").and_then(Value::as_str) {
            Some(value) => {
                let mean = if matches!(field, "external" | "object") { " (avg)" } else { "" };
                format!("{prefix}{}/{value}{mean}", current("averageValue"))
            }
            None if named => {
                let target = wanted("averageUtilization").and_then(Value::as_i64);
                let target = target.map_or("<auto>".to_owned(), |target| format!("{target}%"));
                format!("{prefix}{}/{target}", current("averageUtilization"))
            }
            None => {
                let target = wanted("value").and_then(Value::as_str).unwrap_or("0");
                format!("{}/{target}", current("value"))
            }
        }
    };
    let all: Vec<String> = specs.iter().enumerate().map(metric).collect();
    match all.len() {
        0 => "<none>".into(),
        many if many > SHOWN => format!("{} + {} more...", all[..SHOWN].join(", "), many - SHOWN).into(),
        _ => all.join(", ").into(),
    }
}

/// What a quota's resources use, those of limits apart from the others.
pub(super) fn quota(object: &Value, limits: bool) -> Value {
    let hard = object.pointer("/status/hard").and_then(Value::as_object).into_iter().flatten();
    let shown: Vec<String> = hard
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = object.pointer("/status/used").and_then(|used| used.get(name)).and_then(Value::as_str);
            format!("{name}: {}/{}", used.unwrap_or("0"), hard.as_str().unwrap_or_default())
        })
        .collect();
    shown.join(", ").into()
}

pub(super) fn requested_duration(object: &Value, _: Timestamp) -> Value {
    match object.pointer("/spec/expirationSeconds").and_then(Value::as_i64) {
        Some(seconds) => human::seconds(seconds).into(),
        None => "<none>".into(),
    }
}

pub(super) fn request_state(object: &Value, _: Timestamp) -> Value {
    let is = |kind: &str| !condition(object, kind).is_empty();
    let mut state = match () {
        () if is("Denied") => "Denied",
        () if is("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if is("Failed") {
        state.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        state.push_str(",Issued");
    }
    state.into()
}

pub(super) fn parameter_kind(object: &Value, _: Timestamp) -> Value {
    match object.pointer("/spec/paramKind") {
        Some(kind) if !kind.is_null() => {
            format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")).into()
        }
        _ => "<unset>".into(),
    }
}

pub(super) fn parameter(object: &Value, _: Timestamp) -> Value {
    let Some(reference) = object.pointer("/spec/paramRef").filter(|reference| !reference.is_null()) else {
        return "<unset>".into();
    };
    match (text(reference, "/namespace"), text(reference, "/name")) {
        (_, "") => match has(reference, "/selector") {
            true => labels(reference, "/selector/matchLabels").into(),
            false => "<unset>".into(),
        },
        ("", name) => format!("*/{name}").into(),
        (namespace, name) => format!("{namespace}/{name}").into(),
    }
}

pub(super) fn service(object: &Value, _: Timestamp) -> Value {
    match object.pointer("/spec/service") {
        Some(service) if !service.is_null() => {
            format!("{}/{}", text(service, "/namespace"), text(service, "/name")).into()
        }
        _ => "Local".into(),
    }
}

pub(super) fn available(object: &Value, _: Timestamp) -> Value {
    let conditions = items(object, "/status/conditions");
    let Some(found) = conditions.iter().find(|known| text(known, "/type") == "Available") else {
        return "Unknown".into();
    };
    match (text(found, "/status"), text(found, "/reason")) {
        (status @ "True", _) | (status, "") => status.into(),
        (status, reason) => format!("{status} ({reason})").into(),
    }
}

pub(super) fn dangling(object: &Value, _: Timestamp) -> Value {
    first(&[condition(object, "Dangling"), "?"]).into()
}

/// A figure of a priority level that limits; the others have none.
pub(super) fn limited(object: &Value, path: &str) -> Value {
    let found = object.pointer(&format!("/spec/limited/{path}"));
    found.cloned().unwrap_or_else(|| "<none>".into())
}

pub(super) fn claim_state(object: &Value, _: Timestamp) -> Value {
    let deleted = has(object, "/metadata/deletionTimestamp");
    let allocated = has(object, "/status/allocation");
    let reserved = allocated && !items(object, "/status/reservedFor").is_empty();
    let states = [
        (deleted, "deleted"),
        (!allocated && !deleted, "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    let states: Vec<&str> = states.iter().filter(|(is, _)| *is).map(|(_, state)| *state).collect();
    states.join(",").into()
}
