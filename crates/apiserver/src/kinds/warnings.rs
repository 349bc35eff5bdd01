//! What the API lets pass and warns about.

use super::text;
use crate::kinds::resources::quantity;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use windlass_schema::field::Path;

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn has(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

/// Kinds of volumes that no longer work: the field, how the warning calls it, and since when.
const VOLUMES: &[(&str, &str, &str)] = &[
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

fn old_volumes(volume: &Value, path: &Path) -> Vec<String> {
    let old = VOLUMES.iter().filter(|(field, ..)| has(volume, field));
    old.map(|(_, name, since)| format!("{}: {since}", path.child(name))).collect()
}

/// Labels of nodes that have newer names.
const NODE_LABELS: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#),
    ("beta.kubernetes.io/os", r#"deprecated since v1.14; use "kubernetes.io/os" instead"#),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#,
    ),
    (
        "beta.kubernetes.io/instance-type",
        r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#,
    ),
];

fn old_label(label: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(known, _)| *known == label).map(|(_, why)| *why)
}

/// About a pod, if it is new or changed in more than its metadata.
pub(super) fn pod(pod: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    pod_spec(pod.get("spec").unwrap_or(&Value::Null), &Path::root())
}

/// Of what makes pods: about its template, if that changed.
pub(super) fn template(new: &Value, old: Option<&Value>) -> Vec<String> {
    template_at(new, old, "/spec/template", Path::new("spec").child("template"))
}

/// Of the old kind: about the template as it was, whatever it becomes.
pub(super) fn controller(new: &Value, old: Option<&Value>) -> Vec<String> {
    let Some(old) = old else { return template(new, None) };
    let generation = |object: &Value| object.pointer("/metadata/generation").cloned();
    if generation(old) == generation(new) {
        return Vec::new();
    }
    template(old, None)
}

/// A template that stands alone.
pub(super) fn pod_template(new: &Value, old: Option<&Value>) -> Vec<String> {
    template_at(new, old, "/template", Path::new("template"))
}

/// A template in a template.
pub(super) fn cron_job(new: &Value, old: Option<&Value>) -> Vec<String> {
    let path = Path::new("spec").child("jobTemplate").child("spec").child("template");
    template_at(new, old, "/spec/jobTemplate/spec/template", path)
}

fn template_at(new: &Value, old: Option<&Value>, pointer: &str, path: Path) -> Vec<String> {
    let generation = |object: &Value| object.pointer("/metadata/generation").cloned();
    if old.is_some_and(|old| generation(old) == generation(new)) {
        return Vec::new();
    }
    let template = new.pointer(pointer).unwrap_or(&Value::Null);
    pod_spec(template.get("spec").unwrap_or(&Value::Null), &path)
}

fn pod_spec(spec: &Value, above: &Path) -> Vec<String> {
    let path = above.child("spec");
    let mut warnings = Vec::new();
    for label in spec.get("nodeSelector").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        if let Some(why) = old_label(label) {
            warnings.push(format!("{}: {why}", path.child("nodeSelector").key(label)));
        }
    }
    for (index, constraint) in items(spec, "topologySpreadConstraints").enumerate() {
        let path = path.child("topologySpreadConstraints").index(index);
        if !has(constraint, "labelSelector") {
            let path = path.child("labelSelector");
            warnings.push(format!("{path}: a null labelSelector results in matching no pod"));
        }
    }
    for (index, volume) in items(spec, "volumes").enumerate() {
        warnings.extend(old_volumes(volume, &path.child("volumes").index(index)));
    }
    for volume in items(spec, "volumes") {
        let sources = volume.get("projected").into_iter().flat_map(|projected| items(projected, "sources"));
        for _ in sources.filter(|source| source.as_object().is_some_and(Map::is_empty)) {
            warnings
                .push(format!("volume {:?} (Projected) has no sources provided", text(volume, &["name"])));
        }
    }
    for (field, name, what) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
        let mut seen = BTreeSet::new();
        for (index, item) in items(spec, field).enumerate() {
            if !seen.insert(text(item, &[name])) {
                let path = path.child(field).index(index).child(name);
                warnings.push(format!("{path}: duplicate {what} {:?}", text(item, &[name])));
            }
        }
        let nameless = items(spec, field).enumerate().filter(|(_, item)| text(item, &["name"]).is_empty());
        for (index, _) in nameless.filter(|_| field == "imagePullSecrets") {
            let path = path.child(field).index(index).child(name);
            warnings.push(format!("{path}: invalid empty name \"\""));
        }
    }
    warnings.extend(fractions(spec.get("overhead"), &path.child("overhead")));
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        for (index, container) in items(spec, field).enumerate() {
            let path = path.child(field).index(index);
            for side in ["limits", "requests"] {
                let amounts = container.get("resources").and_then(|resources| resources.get(side));
                warnings.extend(fractions(amounts, &path.child("resources").child(side)));
            }
            warnings.extend(hidden_variables(container, &path));
        }
    }
    warnings.extend(ports(spec, &path));
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        let path = path.child("terminationGracePeriodSeconds");
        warnings.push(format!("{path}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    warnings.extend(selectors_of_nothing(spec, &path));
    warnings
}

fn selectors_of_nothing(spec: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.get("affinity").and_then(|affinity| affinity.get(kind)) else { continue };
        let path = path.child("affinity").child(kind);
        for (field, inner) in [
            ("requiredDuringSchedulingIgnoredDuringExecution", None),
            ("preferredDuringSchedulingIgnoredDuringExecution", Some("podAffinityTerm")),
        ] {
            for (index, item) in items(affinity, field).enumerate() {
                let path = path.child(field).index(index);
                let (term, path) = match inner {
                    Some(inner) => (item.get(inner).unwrap_or(&Value::Null), path.child(inner)),
                    None => (item, path),
                };
                if !has(term, "labelSelector") {
                    let path = path.child("labelSelector");
                    warnings.push(format!("{path}: a null labelSelector results in matching no pod"));
                }
            }
        }
    }
    warnings
}

/// Bytes come whole.
fn fractions(amounts: Option<&Value>, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for name in ["memory", "ephemeral-storage"] {
        if let Some(given) = amounts.and_then(|amounts| amounts.get(name))
            && quantity(given).is_some_and(|amount| !amount.is_integer())
        {
            let path = path.key(name);
            warnings.push(format!("{path}: fractional byte value {given} is invalid, must be an integer"));
        }
    }
    warnings
}

fn hidden_variables(container: &Value, path: &Path) -> Vec<String> {
    let (mut seen, mut warnings) = (BTreeSet::new(), Vec::new());
    for (index, variable) in items(container, "env").enumerate() {
        let (name, value) = (text(variable, &["name"]), text(variable, &["value"]));
        let reference = format!("$({name})");
        if !seen.insert(name)
            && (has(variable, "valueFrom") || value == reference || !value.contains(&reference))
        {
            let path = path.child("env").index(index);
            warnings.push(format!(
                "{path}: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
    warnings
}

/// Ports that are there twice, or of which nobody knows which one is meant.
fn ports(spec: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut seen: BTreeMap<(i64, String), Vec<(Path, &Value)>> = BTreeMap::new();
    let mut names: BTreeMap<&str, Path> = BTreeMap::new();
    let mut again = Vec::new();
    for field in ["initContainers", "containers"] {
        for (number, container) in items(spec, field).enumerate() {
            for (index, port) in items(container, "ports").enumerate() {
                let path = path.child(field).index(number).child("ports").index(index);
                let host = |port: &Value| port.get("hostPort").and_then(Value::as_i64).unwrap_or(0);
                if host(port) == 0 && !text(port, &["hostIP"]).is_empty() {
                    let (name, ip, protocol) =
                        (text(port, &["name"]), text(port, &["hostIP"]), text(port, &["protocol"]));
                    let number = port.get("containerPort").and_then(Value::as_i64).unwrap_or(0);
                    warnings.push(format!(
                        "{path}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} \
                         Protocol:{protocol} HostIP:{ip}}}"
                    ));
                }
                let key = (
                    port.get("containerPort").and_then(Value::as_i64).unwrap_or(0),
                    text(port, &["protocol"]).to_owned(),
                );
                let others = seen.entry(key).or_default();
                for (other, known) in others.iter() {
                    let (ip, known_ip) = (text(port, &["hostIP"]), text(known, &["hostIP"]));
                    let what = if ip == known_ip && host(port) == host(known) {
                        "duplicate"
                    } else if host(port) == 0 || host(known) == 0 {
                        "overlapping"
                    } else if host(port) == host(known) && (ip.is_empty() != known_ip.is_empty()) {
                        "dangerously ambiguous"
                    } else {
                        continue;
                    };
                    warnings.push(format!("{path}: {what} port definition with {other}"));
                }
                others.push((path.clone(), port));
                let name = text(port, &["name"]);
                if let Some(other) = names.get(name).filter(|_| !name.is_empty()) {
                    again.push(format!(
                        "{path}: duplicate port name {name:?} with {other}, services and probes that select ports by \
                         name will use {other}"
                    ));
                } else {
                    names.insert(name, path);
                }
            }
        }
    }
    warnings.extend(again);
    warnings
}

pub(super) fn service(service: &Value) -> Vec<String> {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let kind = text(spec, &["type"]);
    let (headless, external) = (text(spec, &["clusterIP"]) == "None", kind == "ExternalName");
    let addresses = items(spec, "externalIPs").next().is_some();
    let mut warnings = Vec::new();
    let mut say = |when: bool, what: &str| {
        if when {
            warnings.push(what.to_owned());
        }
    };
    let hints = "service.kubernetes.io/topology-aware-hints";
    say(
        service.pointer("/metadata/annotations").is_some_and(|map| has(map, hints)),
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
         service.kubernetes.io/topology-mode instead",
    );
    say(headless && has(spec, "loadBalancerIP"), "spec.loadBalancerIP is ignored for headless services");
    say(headless && addresses, "spec.externalIPs is ignored for headless services");
    say(
        headless && text(spec, &["sessionAffinity"]) != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    say(
        addresses && !headless && !external,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    say(external && addresses, r#"spec.externalIPs is ignored when spec.type is "ExternalName""#);
    say(
        !external && !text(spec, &["externalName"]).is_empty(),
        r#"spec.externalName is ignored when spec.type is not "ExternalName""#,
    );
    say(
        text(spec, &["trafficDistribution"]) == "PreferClose",
        r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#,
    );
    warnings
}

pub(super) fn volume(volume: &Value) -> Vec<String> {
    let spec = volume.get("spec").unwrap_or(&Value::Null);
    let path = Path::new("spec");
    let mut warnings = Vec::new();
    if text(spec, &["persistentVolumeReclaimPolicy"]) == "Recycle" {
        warnings.push(format!(
            "{}: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
             provisioning.",
            path.child("persistentVolumeReclaimPolicy")
        ));
    }
    warnings.extend(old_volumes(spec, &path));
    warnings
}

pub(super) fn claim(claim: &Value) -> Vec<String> {
    let path = Path::new("spec").child("resources").child("requests").key("storage");
    let storage = claim.pointer("/spec/resources/requests/storage");
    let fraction = storage.filter(|given| quantity(given).is_some_and(|amount| !amount.is_integer()));
    fraction
        .map(|given| format!("{path}: fractional byte value {given} is invalid, must be an integer"))
        .into_iter()
        .collect()
}

/// Who may ask for more than may be used is told so, once.
pub(super) fn quota(quota: &Value, old: Option<&Value>) -> Vec<String> {
    let hard = |name: &str| quota.pointer("/spec/hard").and_then(|hard| hard.get(name));
    let mut warnings = Vec::new();
    for name in ["cpu", "memory", "storage", "ephemeral-storage"].into_iter().filter(|_| old.is_none()) {
        let full = format!("requests.{name}");
        let bare = (!name.ends_with("storage")).then(|| hard(name)).flatten().map(|request| (name, request));
        let request = hard(&full).map(|request| (full.as_str(), request)).or(bare);
        let limit_name = format!("limits.{name}");
        if let (Some((name, request)), Some(limit)) = (request, hard(&limit_name))
            && let (Some(more), Some(less)) = (quantity(request), quantity(limit))
            && more > less
        {
            warnings.push(format!("ResourceQuota {name} ({more}) should be less than {limit_name} ({less})"));
        }
    }
    warnings
}

pub(super) fn endpoint_slice(slice: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_none() && text(slice, &["addressType"]) == "FQDN" {
        let why = "spec.addressType: FQDN endpoints are deprecated";
        return vec![why.to_owned()];
    }
    Vec::new()
}
