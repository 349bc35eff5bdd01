//! Pods: the status of a new one, its QoS class, what its subresources may change, and its grace period.

use super::RuleContext;
use crate::object::{at, child, list_mut, put, text};
use serde_json::{Map, Value, json};

/// The first of a pod's addresses has a field of its own, from before there could be several. That field counts.
pub(super) fn addresses(pod: &mut Value) {
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else { return };
    let own = status.get("podIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let first = status.get("podIPs").and_then(|all| all.get(0)).map(|first| text(first, &["ip"]).to_owned());
    match first {
        Some(first) if own == first => {}
        Some(first) if own.is_empty() => _ = status.insert("podIP".to_owned(), json!(first)),
        None if own.is_empty() => {}
        _ => _ = status.insert("podIPs".to_owned(), json!([{"ip": own}])),
    }
}

/// A new pod waits, in the quality of service that its resources ask for.
pub(super) fn prepare(context: &RuleContext<'_>, pod: &mut Value) {
    let grace = pod.pointer_mut("/spec/terminationGracePeriodSeconds");
    if let Some(grace) = grace.filter(|grace| grace.as_i64().is_some_and(|seconds| seconds < 0)) {
        *grace = json!(1);
    }
    let quality = quality(pod.get("spec").unwrap_or(&Value::Null));
    let gated = at(pod, &["spec", "schedulingGates"])
        .and_then(Value::as_array)
        .is_some_and(|gates| !gates.is_empty());
    let status = child(pod, "status");
    *status =
        Map::from_iter([("phase".to_owned(), json!("Pending")), ("qosClass".to_owned(), json!(quality))]);
    if gated {
        let condition = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": null,
            "lastTransitionTime": context.now(),
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
        status.insert("conditions".to_owned(), condition);
    }
    spread(pod);
}

/// Label keys by which a pod wants to be told apart become part of its selectors.
fn spread(pod: &mut Value) {
    let labels = at(pod, &["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    let merge = |term: &mut Value| {
        for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
            let keys = term.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
            for key in keys.iter().filter_map(Value::as_str) {
                let Some(value) = labels.get(key) else { continue };
                let Some(selector) = term.get_mut("labelSelector").filter(|selector| selector.is_object())
                else {
                    continue;
                };
                let expressions =
                    selector.as_object_mut().and_then(|selector| list_mut(selector, "matchExpressions"));
                if let Some(expressions) = expressions {
                    expressions.push(json!({"key": key, "operator": operator, "values": [value]}));
                }
            }
        }
    };
    let terms = |pod: &mut Value, pointer: &str, inner: Option<&str>| {
        let items = pod.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten();
        let inner = |item| match inner {
            None => Some(item),
            Some(field) => Value::get_mut(item, field),
        };
        items.filter_map(inner).for_each(merge);
    };
    for affinity in ["podAffinity", "podAntiAffinity"] {
        let place = format!("/spec/affinity/{affinity}");
        terms(pod, &format!("{place}/requiredDuringSchedulingIgnoredDuringExecution"), None);
        terms(
            pod,
            &format!("{place}/preferredDuringSchedulingIgnoredDuringExecution"),
            Some("podAffinityTerm"),
        );
    }
    terms(pod, "/spec/topologySpreadConstraints", None);
}

/// A pod's quality of service never changes.
pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    if let Some(quality) = at(old, &["status", "qosClass"]) {
        child(new, "status").entry("qosClass").or_insert_with(|| quality.clone());
    }
}

/// Leaves a pod as it was but for what a path of its own is there for: containers that are added while it runs, or the sizes
/// of those that it has.
pub(crate) fn keep_to(subresource: &str, new: &mut Value, old: &Value) {
    let Some(mut spec) = old.get("spec").and_then(Value::as_object).cloned() else { return };
    let given = new.get("spec").and_then(Value::as_object);
    let asked = |field: &str| given.and_then(|spec| spec.get(field));
    match subresource {
        "ephemeralcontainers" => put(&mut spec, "ephemeralContainers", asked("ephemeralContainers")),
        "resize" => {
            put(&mut spec, "resources", asked("resources"));
            for field in ["containers", "initContainers"] {
                let wanted = asked(field).and_then(Value::as_array);
                let mine = spec.get_mut(field).and_then(Value::as_array_mut);
                resize(mine.map_or(&mut [], Vec::as_mut_slice), wanted.map_or(&[], Vec::as_slice));
            }
        }
        _ => return,
    }
    child(new, "spec").clone_from(&spec);
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        put(child(new, "metadata"), field, at(old, &["metadata", field]));
    }
}

/// Gives containers the sizes that they have among others of the same names.
fn resize(containers: &mut [Value], wanted: &[Value]) {
    for container in containers {
        let like = wanted.iter().find(|other| text(other, &["name"]) == text(container, &["name"]));
        if let (Some(like), Some(container)) = (like, container.as_object_mut()) {
            for field in ["resources", "resizePolicy"] {
                put(container, field, like.get(field));
            }
        }
    }
}

/// How long a pod has to stop: as long as was asked for or it says itself, and no time if nothing runs.
pub(super) fn grace(pod: &Value, asked: Option<i64>) -> i64 {
    let own = || at(pod, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    let ended = matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded");
    match asked.or_else(own).unwrap_or(0) {
        _ if ended || text(pod, &["spec", "nodeName"]).is_empty() => 0,
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

fn quality(spec: &Value) -> &'static str {
    const COUNTED: [&str; 2] = ["cpu", "memory"];
    let containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|field| spec.get(field).and_then(Value::as_array).into_iter().flatten());
    let amount = |container: &Value, side: &str, name: &str| {
        let amount = container.pointer(&format!("/resources/{side}/{name}"))?.as_str()?.to_owned();
        (amount != "0").then_some(amount)
    };
    let (mut any, mut guaranteed) = (false, true);
    for container in containers {
        for name in COUNTED {
            let (limit, request) = (amount(container, "limits", name), amount(container, "requests", name));
            any |= limit.is_some() || request.is_some();
            // Requests that are not told are as the limits.
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_of_service_follows_from_requests_and_limits() {
        let spec = |resources: Value| json!({"containers": [{"resources": resources}]});
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(quality(&spec(json!({}))), "BestEffort");
        assert_eq!(quality(&spec(json!({"requests": {"cpu": "1"}}))), "Burstable");
        assert_eq!(quality(&spec(json!({"limits": both, "requests": both}))), "Guaranteed");
        assert_eq!(quality(&spec(json!({"limits": both, "requests": {"cpu": "1"}}))), "Guaranteed");
        assert_eq!(quality(&spec(json!({"limits": both, "requests": {"cpu": "500m"}}))), "Burstable");
    }
}
