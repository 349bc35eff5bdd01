//! What of a pod may change after it was created, and what its status may say.

use super::{text, validate};
use serde_json::Value;
use std::net::IpAddr;
use windlass_schema::field::{FieldError, Path};

fn items<'a>(pod: &'a Value, field: &str) -> &'a [Value] {
    let list = pod.get("spec").and_then(|spec| spec.get(field)).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// What is wrong with a change of a pod through a path.
pub(super) fn update(new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    match subresource {
        "" => spec(new, old),
        "ephemeralcontainers" => added(new, old),
        "status" => status(new, old),
        _ => Vec::new(),
    }
}

/// Containers that were added to a pod stay as they were.
fn added(new: &Value, old: &Value) -> Vec<FieldError> {
    let path = Path::new("spec").child("ephemeralContainers");
    let wanted = items(new, "ephemeralContainers");
    let mut errors = Vec::new();
    for had in items(old, "ephemeralContainers") {
        let name = text(had, &["name"]);
        let why = match wanted.iter().find(|one| text(one, &["name"]) == name) {
            None => format!("existing ephemeral containers {name:?} may not be removed\n"),
            Some(still) if still != had => {
                format!("existing ephemeral containers {name:?} may not be changed\n")
            }
            Some(_) => continue,
        };
        errors.push(FieldError::forbidden(&path, why));
    }
    errors
}

fn spec(new: &Value, old: &Value) -> Vec<FieldError> {
    const WHY: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                       `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                       existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                       previously negative)";
    let path = Path::new("spec");
    let mut errors = Vec::new();
    for field in ["containers", "initContainers"] {
        let (now, at) = (items(new, field), path.child(field));
        if now.len() != items(old, field).len() {
            errors.push(FieldError::forbidden(&at, "pod updates may not add or remove containers"));
            return errors;
        }
        images(now, &at, &mut errors);
    }
    let deadline = |pod: &Value| pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    let at = path.child("activeDeadlineSeconds");
    match (deadline(new), deadline(old)) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            let why = format!("must be between 0 and {}, inclusive", i32::MAX);
            errors.push(FieldError::invalid(&at, new, why));
            return errors;
        }
        (Some(new), Some(old)) if new > old => {
            errors.push(FieldError::invalid(&at, new, "must be less than or equal to previous value"));
            return errors;
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(&at, Value::Null, why));
        }
        _ => {}
    }
    errors.extend(tolerations(new, old));
    let gates = items(old, "schedulingGates");
    for (index, gate) in
        items(new, "schedulingGates").iter().enumerate().filter(|(_, gate)| !gates.contains(gate))
    {
        let why =
            format!("only deletion is allowed, but found new scheduling gate '{}'", text(gate, &["name"]));
        errors.push(FieldError::forbidden(&path.child("schedulingGates").index(index).child("name"), why));
    }
    let gated = !gates.is_empty();
    if gated {
        errors.extend(selected_nodes(new, old));
        errors.extend(node_affinity(new, old));
    }
    if fixed_part(new, old, gated) != fixed_part(old, old, gated) {
        errors.push(FieldError::forbidden(&path, WHY));
    }
    errors
}

fn images(containers: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    for (index, container) in containers.iter().enumerate() {
        let (image, path) = (text(container, &["image"]), path.index(index).child("image"));
        if image.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if image.trim() != image {
            errors.push(FieldError::invalid(&path, image, "must not have leading or trailing whitespace"));
        }
    }
}

/// Tolerations are added, and of those that were there only the seconds change.
fn tolerations(new: &Value, old: &Value) -> Vec<FieldError> {
    let but_seconds = |toleration: &Value| {
        let mut toleration = toleration.as_object().cloned().unwrap_or_default();
        toleration.remove("tolerationSeconds");
        toleration
    };
    let now: Vec<_> = items(new, "tolerations").iter().map(but_seconds).collect();
    if items(old, "tolerations").iter().any(|toleration| !now.contains(&but_seconds(toleration))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        return vec![FieldError::forbidden(&Path::new("spec").child("tolerations"), why)];
    }
    // They are looked at a second time.
    let errors = validate::object("io.k8s.api.core.v1.Pod", new).into_iter();
    errors.filter(|error| error.path.starts_with("spec.tolerations[")).collect()
}

/// A pod that waits at a gate may still be told more about its node, and not less.
fn selected_nodes(new: &Value, old: &Value) -> Vec<FieldError> {
    let selector = |pod: &Value| {
        pod.pointer("/spec/nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (now, before) = (selector(new), selector(old));
    let lost = before.iter().any(|(key, value)| now.get(key) != Some(value));
    let path = Path::new("spec").child("nodeSelector");
    let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
    let shown = if now.is_empty() { Value::Null } else { Value::Object(now) };
    lost.then(|| FieldError::invalid(&path, shown, why)).into_iter().collect()
}

const NODE_AFFINITY: &str = "/spec/affinity/nodeAffinity";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The same of its affinity: to each term requirements are added, and no term is.
fn node_affinity(new: &Value, old: &Value) -> Vec<FieldError> {
    let terms = |pod: &Value| -> Vec<Value> {
        let required = pod.pointer(NODE_AFFINITY).and_then(|affinity| affinity.get(REQUIRED));
        let terms = required.and_then(|required| required.get("nodeSelectorTerms"));
        terms.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (now, before) = (terms(new), terms(old));
    let path = Path::new("spec").child("affinity").child("nodeAffinity").child(REQUIRED);
    let path = path.child("nodeSelectorTerms");
    if before.is_empty() {
        return Vec::new();
    }
    if now.len() != before.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown = if now.is_empty() { Value::Null } else { Value::Array(now) };
        return vec![FieldError::invalid(&path, shown, why)];
    }
    let lost =
        now.into_iter().zip(&before).enumerate().filter(|(_, (now, before))| !is_added_to(now, before));
    let why = "only additions are allowed (no mutations or deletions)";
    lost.map(|(index, (now, _))| FieldError::invalid(&path.index(index), now, why)).collect()
}

fn is_added_to(now: &Value, before: &Value) -> bool {
    let part =
        |term: &Value, field: &str| term.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let parts = ["matchExpressions", "matchFields"].map(|field| (part(now, field), part(before, field)));
    let is_empty = parts.iter().all(|(_, before)| before.is_empty());
    match is_empty {
        true => parts.iter().all(|(now, _)| now.is_empty()),
        false => parts.iter().all(|(now, before)| now.starts_with(before)),
    }
}

/// A pod's spec without what has rules of its own.
fn fixed_part(pod: &Value, old: &Value, gated: bool) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    let Some(fields) = spec.as_object_mut() else { return spec };
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        fields.remove(field);
    }
    for field in ["containers", "initContainers"] {
        let containers = fields.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        containers.filter_map(Value::as_object_mut).for_each(|container| {
            container.remove("image");
        });
    }
    let seconds = "terminationGracePeriodSeconds";
    let was_negative = old["spec"][seconds].as_i64().is_some_and(|seconds| seconds < 0);
    if was_negative && fields.get(seconds).and_then(Value::as_i64) == Some(1) {
        fields.insert(seconds.to_owned(), old["spec"][seconds].clone());
    }
    if gated {
        fields.remove("nodeSelector");
        let affinity = fields.get_mut("affinity").and_then(Value::as_object_mut);
        if let Some(affinity) = affinity {
            affinity.remove("nodeAffinity");
            if affinity.is_empty() {
                fields.remove("affinity");
            }
        }
    }
    spec
}

/// What the status of a pod may not say.
fn status(new: &Value, old: &Value) -> Vec<FieldError> {
    let path = Path::new("status");
    let mut errors = Vec::new();
    let (quality, before) = (text(new, &["status", "qosClass"]), text(old, &["status", "qosClass"]));
    if quality != before {
        errors.push(FieldError::invalid(&path.child("qosClass"), quality, "field is immutable"));
    }
    let nominated = |pod: &Value| text(pod, &["status", "nominatedNodeName"]).to_owned();
    let now = nominated(new);
    if !now.is_empty() && now != nominated(old) {
        let at = path.child("nominatedNodeName");
        let wrong = windlass_schema::names::subdomain(&now).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(&at, now.as_str(), why)));
        if !text(old, &["spec", "nodeName"]).is_empty() {
            let why = "may not be set on pods that are already bound to a node";
            errors.push(FieldError::forbidden(&at, why));
        }
    }
    errors.extend(claims(new, &path));
    errors.extend(addresses(new, &path));
    errors
}

/// The claims that a status tells of are those of the pod, each once.
fn claims(pod: &Value, path: &Path) -> Vec<FieldError> {
    let known = |name: &str| items(pod, "resourceClaims").iter().any(|claim| text(claim, &["name"]) == name);
    let told = pod.pointer("/status/resourceClaimStatuses").and_then(Value::as_array);
    let (mut errors, mut seen) = (Vec::new(), Vec::new());
    for (index, status) in told.into_iter().flatten().enumerate() {
        let name = text(status, &["name"]);
        let at = path.child("resourceClaimStatuses").index(index).child("name");
        if !known(name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&at, name, why));
        }
        match seen.contains(&name) {
            true => errors.push(FieldError::duplicate(&at, name)),
            false => seen.push(name),
        }
    }
    errors
}

/// Of each family one address, and the first of the node is the one that has a field of its own.
fn addresses(pod: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["podIPs", "hostIPs"] {
        let at = path.child(field);
        let list = pod.get("status").and_then(|status| status.get(field)).cloned().unwrap_or_default();
        let addresses: Vec<&str> =
            list.as_array().into_iter().flatten().map(|one| text(one, &["ip"])).collect();
        if let Some(first) = addresses.first()
            && field == "hostIPs"
            && *first != text(pod, &["status", "hostIP"])
        {
            errors.push(FieldError::invalid(&at.index(0).child("ip"), *first, "must be equal to `hostIP`"));
        }
        let parsed: Vec<Option<IpAddr>> = addresses.iter().map(|address| address.parse().ok()).collect();
        for (index, _) in parsed.iter().enumerate().filter(|(_, parsed)| parsed.is_none()) {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(FieldError::invalid(&at.index(index), addresses[index], why));
        }
        let of_v4 = parsed.iter().flatten().filter(|address| address.is_ipv4()).count();
        if parsed.len() > 1 && (parsed.len() > 2 || of_v4 != 1) {
            let shown: Vec<String> = addresses.iter().map(|ip| format!("{{\"IP\":{ip:?}}}")).collect();
            let why = "may specify no more than one IP for each IP family";
            errors.push(FieldError::invalid(&at, list, why).showing(format!("[{}]", shown.join(","))));
        }
    }
    errors
}
