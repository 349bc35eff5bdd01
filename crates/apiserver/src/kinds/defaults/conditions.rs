//! Defaults that depend on the rest of the struct.

use crate::kinds::prepare::TEMPLATE_GENERATION;
use crate::kinds::resources;
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

fn text<'a>(object: &'a Object, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn object_at<'a>(object: &'a mut Object, field: &str) -> Option<&'a mut Object> {
    object.get_mut(field).and_then(Value::as_object_mut)
}

fn objects_at<'a>(object: &'a mut Object, field: &str) -> impl Iterator<Item = &'a mut Object> {
    let items = object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut)
}

/// Sets what is absent or null.
fn initially(object: &mut Object, field: &str, value: impl Into<Value>) {
    if object.get(field).is_none_or(Value::is_null) {
        object.insert(field.to_owned(), value.into());
    }
}

/// Adds the entries of `from` whose keys `to` lacks.
fn complete(to: &mut Object, from: &Object) {
    for (key, value) in from {
        to.entry(key).or_insert_with(|| value.clone());
    }
}

/// Images change under the tag `latest`, and under no other.
fn pull_policy_of(image: &str) -> Value {
    json!(if tag(image) == Some("latest") { "Always" } else { "IfNotPresent" })
}

/// The tag of an image's name; none if it has only a digest, or is no name.
fn tag(image: &str) -> Option<&str> {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let path_begins = name.rfind('/').map_or(0, |at| at + 1);
    let (last, tag) = match name[path_begins..].split_once(':') {
        Some((last, tag)) => (last, Some(tag)),
        None => (&name[path_begins..], None),
    };
    let is_name = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte))
    };
    if last.is_empty() || !is_name(last) {
        return None;
    }
    match (tag, digest) {
        (Some(tag), _) => Some(tag),
        (None, None) => Some("latest"),
        (None, Some(_)) => None,
    }
}

pub(super) fn pull_policy(container: &Object) -> Option<Value> {
    Some(pull_policy_of(text(container, "image")))
}

pub(super) fn volume_pull_policy(volume: &Object) -> Option<Value> {
    Some(pull_policy_of(text(volume, "reference")))
}

fn is_external(service: &Object) -> bool {
    let kind = text(service, "type");
    let addresses = service.get("externalIPs").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    matches!(kind, "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && addresses)
}

pub(super) fn external_traffic(service: &Object) -> Option<Value> {
    is_external(service).then(|| json!("Cluster"))
}

pub(super) fn internal_traffic(service: &Object) -> Option<Value> {
    matches!(text(service, "type"), "ClusterIP" | "LoadBalancer" | "NodePort").then(|| json!("Cluster"))
}

pub(super) fn balancer_ports(service: &Object) -> Option<Value> {
    (text(service, "type") == "LoadBalancer").then_some(Value::Bool(true))
}

pub(super) fn rolls(strategy: &Object) -> Option<Value> {
    (text(strategy, "type") == "RollingUpdate").then(|| json!({}))
}

/// A StatefulSet rolls with parameters unless it was told its type.
pub(super) fn rolls_untold(strategy: &Object) -> Option<Value> {
    text(strategy, "type").is_empty().then(|| json!({}))
}

pub(super) fn cpu_metric() -> Value {
    json!([{
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }])
}

pub(super) fn policy_types(policy: &Object) -> Option<Value> {
    let egress = policy.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    Some(if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) })
}

pub(super) fn subject_group(subject: &Object) -> Option<Value> {
    matches!(text(subject, "kind"), "User" | "Group").then(|| json!("rbac.authorization.k8s.io"))
}

pub(super) fn exact_count(request: &Object) -> Option<Value> {
    (text(request, "allocationMode") == "ExactCount").then(|| json!(1))
}

/// Limits of containers: what may be used at most is what is used by default, and so is what is asked for.
pub(super) fn limit_range_item(item: &mut Object) {
    if text(item, "type") != "Container" {
        return;
    }
    let map =
        |item: &Object, field: &str| item.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
    let (mut limits, mut requests) = (map(item, "default"), map(item, "defaultRequest"));
    complete(&mut limits, &map(item, "max"));
    complete(&mut requests, &limits);
    complete(&mut requests, &map(item, "min"));
    for (field, map) in [("default", limits), ("defaultRequest", requests)] {
        if !map.is_empty() {
            item.insert(field.to_owned(), Value::Object(map));
        }
    }
}

/// What pods have and templates of pods do not.
pub(super) fn pod(pod: &mut Object) {
    if !pod.contains_key("spec") {
        return;
    }
    let Some(spec) = object_at(pod, "spec") else { return };
    let shares_network = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or(false);
    for field in ["containers", "initContainers"] {
        for container in objects_at(spec, field) {
            if let Some(resources) = object_at(container, "resources")
                && let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned()
                && !limits.is_empty()
            {
                initially(resources, "requests", json!({}));
                if let Some(requests) = object_at(resources, "requests") {
                    complete(requests, &limits);
                }
            }
            if shares_network {
                for port in objects_at(container, "ports") {
                    if let Some(number) = port.get("containerPort").cloned()
                        && port.get("hostPort").and_then(Value::as_i64).unwrap_or(0) == 0
                    {
                        port.insert("hostPort".to_owned(), number);
                    }
                }
            }
        }
    }
    if spec.get("resources").is_some_and(Value::is_object) {
        let whole = Value::Object(spec.clone());
        if let (Some(requests), Some(resources)) =
            (resources::whole_requests(&whole), object_at(spec, "resources"))
        {
            initially(resources, "requests", json!({}));
            let requests =
                requests.into_iter().map(|(name, amount)| (name, json!(amount.to_string()))).collect();
            if let Some(known) = object_at(resources, "requests") {
                complete(known, &requests);
            }
        }
    }
    initially(spec, "enableServiceLinks", true);
}

/// The account has an old name too.
pub(super) fn pod_spec(spec: &mut Object) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if !name.is_empty() {
        let name = name.to_owned();
        spec.insert("serviceAccountName".to_owned(), json!(name));
        spec.insert("serviceAccount".to_owned(), json!(name));
    }
}

pub(super) fn replication_controller(controller: &mut Object) {
    let labels = controller.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels"));
    let Some(labels) = labels.filter(|labels| labels.is_object()).cloned() else { return };
    if let Some(spec) = object_at(controller, "spec")
        && spec.get("selector").and_then(Value::as_object).is_none_or(Object::is_empty)
    {
        spec.insert("selector".to_owned(), labels.clone());
    }
    label(controller, labels);
}

/// Labels an object that has no labels.
fn label(object: &mut Object, labels: Value) {
    let Some(metadata) = object_at(object, "metadata") else { return };
    if metadata.get("labels").and_then(Value::as_object).is_none_or(Object::is_empty) {
        metadata.insert("labels".to_owned(), labels);
    }
}

/// The number of its template, which only an annotation still tells.
pub(super) fn daemon_set(set: &mut Object) {
    let metadata = set.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        initially(metadata, "annotations", json!({}));
        if let Some(annotations) = object_at(metadata, "annotations") {
            initially(annotations, TEMPLATE_GENERATION, "0");
        }
    }
}

/// Templates of claims say what they are.
pub(super) fn stateful_set_spec(spec: &mut Object) {
    for claim in objects_at(spec, "volumeClaimTemplates") {
        initially(claim, "apiVersion", "v1");
        initially(claim, "kind", "PersistentVolumeClaim");
    }
}

pub(super) fn job(job: &mut Object) {
    let labels = job.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    if let Some(labels) = labels.filter(Value::is_object) {
        label(job, labels);
    }
    let Some(spec) = object_at(job, "spec") else { return };
    if spec.get("parallelism").is_none_or(Value::is_null) {
        initially(spec, "completions", 1);
        // Completions alone do not say how many run at once.
        spec.insert("parallelism".to_owned(), json!(1));
    }
    let tries = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    initially(spec, "backoffLimit", tries);
    let replaces = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    initially(spec, "podReplacementPolicy", replaces);
    initially(spec, "completionMode", "NonIndexed");
    initially(spec, "suspend", false);
    initially(spec, "manualSelector", false);
}

pub(super) fn service(service: &mut Object) {
    let Some(spec) = object_at(service, "spec") else { return };
    match text(spec, "sessionAffinity") {
        "" | "None" => _ = spec.remove("sessionAffinityConfig"),
        "ClientIP" => {
            let set = spec
                .get("sessionAffinityConfig")
                .and_then(|config| config.pointer("/clientIP/timeoutSeconds"));
            if set.is_none() {
                spec.insert(
                    "sessionAffinityConfig".to_owned(),
                    json!({"clientIP": {"timeoutSeconds": 10800}}),
                );
            }
        }
        _ => {}
    }
    if text(spec, "type") != "LoadBalancer" {
        return;
    }
    let balancer = object_at(service, "status").and_then(|status| object_at(status, "loadBalancer"));
    for ingress in balancer.into_iter().flat_map(|balancer| objects_at(balancer, "ingress")) {
        if !text(ingress, "ip").is_empty() {
            initially(ingress, "ipMode", "VIP");
        }
    }
}

/// A volume of no kind is an empty directory.
pub(super) fn volume(volume: &mut Object) {
    if volume.keys().all(|field| field == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

/// Whoever says something about scaling gets the rest of it said.
pub(super) fn scaling_behavior(spec: &mut Object) {
    let Some(behavior) = object_at(spec, "behavior") else { return };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let up = json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, percent]);
    for (field, policies) in [("scaleUp", up), ("scaleDown", json!([percent]))] {
        initially(behavior, field, json!({}));
        if let Some(rules) = object_at(behavior, field) {
            initially(rules, "selectPolicy", "Max");
            initially(rules, "policies", policies);
            if field == "scaleUp" {
                initially(rules, "stabilizationWindowSeconds", 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tag;

    #[test]
    fn an_image_without_tag_and_digest_is_the_latest() {
        for (image, expected) in [
            ("nginx", Some("latest")),
            ("nginx:1.25", Some("1.25")),
            ("registry.example.com:5000/team/nginx", Some("latest")),
            ("nginx@sha256:abc", None),
            ("nginx:latest@sha256:abc", Some("latest")),
            ("", None),
            ("Nginx", None),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }
}
