//! Cells of the kinds that run pods.

use super::cells::{condition, has, items, labels, number, selector as selects, text};
use super::human;
use jiff::Timestamp;
use serde_json::Value;

/// Where the template of a kind's pods is.
fn template(object: &Value) -> &Value {
    ["/spec/template", "/spec/jobTemplate/spec/template", "/template"]
        .iter()
        .find_map(|path| object.pointer(path))
        .unwrap_or(&Value::Null)
}

fn joined(object: &Value, field: &str) -> Value {
    let containers = items(template(object), "/spec/containers");
    containers.iter().map(|container| text(container, field)).collect::<Vec<_>>().join(",").into()
}

pub(super) fn containers(object: &Value, _: Timestamp) -> Value {
    joined(object, "/name")
}

pub(super) fn images(object: &Value, _: Timestamp) -> Value {
    joined(object, "/image")
}

pub(super) fn pod_labels(object: &Value, _: Timestamp) -> Value {
    labels(template(object), "/metadata/labels").into()
}

pub(super) fn node_selector(object: &Value, _: Timestamp) -> Value {
    labels(template(object), "/spec/nodeSelector").into()
}

/// The selector of a kind's pods: plain labels for the oldest kind, a label selector for the others.
pub(super) fn selector(object: &Value, _: Timestamp) -> Value {
    let own = has(object, "/spec/selector/matchLabels") || has(object, "/spec/selector/matchExpressions");
    let plain = text(object, "/kind") == "ReplicationController";
    match (plain, own) {
        (true, _) => labels(object, "/spec/selector"),
        (false, true) => selects(object, "/spec/selector", "<none>"),
        (false, false) => selects(object, "/spec/jobTemplate/spec/selector", "<none>"),
    }
    .into()
}

pub(super) fn deployment_selector(object: &Value, _: Timestamp) -> Value {
    selects(object, "/spec/selector", "").into()
}

pub(super) fn ready(object: &Value, _: Timestamp) -> Value {
    format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas")).into()
}

pub(super) fn controller(object: &Value, _: Timestamp) -> Value {
    let owners = items(object, "/metadata/ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true))) else {
        return "<none>".into();
    };
    let group = text(owner, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let kind = text(owner, "/kind");
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    format!("{}/{}", qualified.to_lowercase(), text(owner, "/name")).into()
}

pub(super) fn job_status(object: &Value, _: Timestamp) -> Value {
    let is = |kind: &str| condition(object, kind) == "True";
    let status = match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if has(object, "/metadata/deletionTimestamp") => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    status.into()
}

pub(super) fn completions(object: &Value, _: Timestamp) -> Value {
    let succeeded = number(object, "/status/succeeded");
    match object.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None => match number(object, "/spec/parallelism") {
            many @ 2.. => format!("{succeeded}/1 of {many}"),
            _ => format!("{succeeded}/1"),
        },
    }
    .into()
}

pub(super) fn duration(object: &Value, now: Timestamp) -> Value {
    let time = |path: &str| text(object, path).parse::<Timestamp>().ok();
    match time("/status/startTime") {
        None => "".into(),
        Some(start) => {
            let end = time("/status/completionTime").unwrap_or(now);
            human::seconds(end.as_second().saturating_sub(start.as_second())).into()
        }
    }
}

pub(super) fn suspended(object: &Value, _: Timestamp) -> Value {
    match object.pointer("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    }
    .into()
}

pub(super) fn last_schedule(object: &Value, now: Timestamp) -> Value {
    match object.pointer("/status/lastScheduleTime").filter(|time| !time.is_null()) {
        Some(time) => human::since(Some(time), now).into(),
        None => "<none>".into(),
    }
}
