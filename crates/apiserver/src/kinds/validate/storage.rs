//! Claims, volumes and classes of storage; limits and quotas.

use super::check::{NEGATIVE, in_go, is_empty};
use super::container::names_resource;
use super::{Object, has, invalid, list, number, part, parts, word};
use crate::kinds::text;
use crate::typed::Amount;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use windlass_schema::field::{ErrorKind, FieldError, Path};
use windlass_schema::names;

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

fn modes(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (given, at) = (list(spec, "accessModes"), path.child("accessModes"));
    for mode in given.iter().filter_map(Value::as_str).filter(|mode| !MODES.contains(mode)) {
        errors.push(FieldError::not_supported(&at, mode, &MODES));
    }
    if given.len() > 1 && given.iter().any(|mode| mode.as_str() == Some("ReadWriteOncePod")) {
        errors.push(FieldError::forbidden(&at, "may not use ReadWriteOncePod with other access modes"));
    }
}

pub(super) fn claim(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&path.child("accessModes"), "at least 1 access mode is required"));
    }
    modes(spec, path, errors);
    let at = path.child("resources").key("storage");
    let requests = part(spec, "resources").and_then(|resources| part(resources, "requests"));
    match requests.and_then(|requests| requests.get("storage")) {
        None => errors.push(FieldError::required(&at, "")),
        Some(storage) => match Amount::of(storage) {
            Some(amount) if amount.is_zero() || amount.is_negative() => {
                errors.push(FieldError::invalid(&at, storage.clone(), "must be greater than zero"));
            }
            _ => {}
        },
    }
}

/// A claim is what it is, but for its size and class of attributes once it has a volume.
pub(crate) fn claim_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = |claim: &Value| claim.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let (mut now, mut before) = (spec(new), spec(old));
    let size = |spec: &Object| {
        spec.get("resources").and_then(|resources| resources.pointer("/requests/storage")).cloned()
    };
    let (grown, was) = (size(&now), size(&before));
    if word(&before, "volumeName").is_empty() {
        before.remove("volumeName");
        now.remove("volumeName");
    }
    if !before.contains_key("storageClassName") {
        now.remove("storageClassName");
    }
    if text(new, &["status", "phase"]) == "Bound" {
        for side in [&mut now, &mut before] {
            side.remove("volumeAttributesClassName");
            let requests = side.get_mut("resources").and_then(|resources| resources.get_mut("requests"));
            requests.and_then(Value::as_object_mut).map(|requests| requests.remove("storage"));
        }
    }
    if now != before {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden(&Path::new("spec"), why));
    }
    let amount = |value: Option<&Value>| value.and_then(Amount::of);
    let capacity = amount(old.pointer("/status/capacity/storage")).unwrap_or(Amount::whole(0));
    if let (Some(grown), Some(was)) = (amount(grown.as_ref()), amount(was.as_ref()))
        && grown < was
        && grown <= capacity
    {
        let path = Path::new("spec").child("resources").child("requests").child("storage");
        errors.push(FieldError::forbidden(&path, "field can not be less than status.capacity"));
    }
    let mode = |claim: &Value| claim.pointer("/spec/volumeMode").cloned().unwrap_or_default();
    if mode(new) != mode(old) {
        errors.push(FieldError::invalid(&Path::new("volumeMode"), mode(new), "field is immutable"));
    }
    errors
}

/// Kinds of volumes that are more than a directory of a host.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

pub(super) fn volume(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&path.child("accessModes"), ""));
    }
    modes(spec, path, errors);
    let at = path.child("capacity");
    let capacity = part(spec, "capacity").cloned().unwrap_or_default();
    if capacity.is_empty() {
        errors.push(FieldError::required(&at, ""));
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        let shown = if capacity.is_empty() { Value::Null } else { Value::Object(capacity.clone()) };
        errors.push(FieldError::not_supported(&at, shown, &["storage"]));
    }
    for (name, amount) in &capacity {
        match Amount::of(amount) {
            Some(given) if given.is_zero() || given.is_negative() => {
                errors.push(FieldError::invalid(&at.key(name), amount.clone(), "must be greater than zero"));
            }
            _ => {}
        }
    }
    let mut given = SOURCES.iter().filter(|source| has(spec, source));
    if given.next().is_none() {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    for more in given {
        errors.push(FieldError::forbidden(&path.child(more), "may not specify more than 1 volume type"));
    }
    let root = part(spec, "hostPath").is_some_and(|host| matches!(word(host, "path"), "/"));
    if root && word(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        let path = path.child("persistentVolumeReclaimPolicy");
        errors.push(FieldError::forbidden(&path, "may not be 'recycle' for a hostPath mount of '/'"));
    }
    if has(spec, "local") && !has(spec, "nodeAffinity") {
        errors.push(FieldError::required(&path.child("nodeAffinity"), "Local volume requires node affinity"));
    }
}

pub(crate) fn volume_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let sources = |volume: &Value| -> Vec<Option<Value>> {
        SOURCES.iter().map(|source| volume.get("spec").and_then(|spec| spec.get(*source)).cloned()).collect()
    };
    if sources(new) != sources(old) {
        let path = Path::new("spec").child("persistentvolumesource");
        errors.push(FieldError::forbidden(&path, "spec.persistentvolumesource is immutable after creation"));
    }
    let field = |volume: &Value, field: &str| {
        volume.get("spec").and_then(|spec| spec.get(field)).cloned().unwrap_or_default()
    };
    for name in ["volumeMode", "nodeAffinity"] {
        let (now, before) = (field(new, name), field(old, name));
        if now != before && !(name == "nodeAffinity" && before.is_null()) {
            let more =
                if name == "nodeAffinity" { ", except for updating from beta label to GA" } else { "" };
            errors.push(FieldError::invalid(&Path::new(name), now, format!("field is immutable{more}")));
        }
    }
    errors
}

/// Networks of Services are added to, not changed.
pub(crate) fn networks_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let networks =
        |object: &Value| object.pointer("/spec/cidrs").and_then(Value::as_array).cloned().unwrap_or_default();
    let (now, path) = (networks(new), Path::new("spec").child("cidrs"));
    let changed =
        networks(old).into_iter().enumerate().filter(|(index, network)| now.get(*index) != Some(network));
    changed
        .map(|(index, _)| {
            let value = now.get(index).cloned().unwrap_or_default();
            FieldError::invalid(&path.index(index), value, "field is immutable")
        })
        .collect()
}

/// How volumes of a driver are attached and live does not change.
pub(crate) fn driver_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let field = |driver: &Value, field: &str| {
        driver.get("spec").and_then(|spec| spec.get(field)).cloned().unwrap_or_default()
    };
    let fixed = [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")];
    let changed = fixed.into_iter().filter(|(name, _)| field(new, name) != field(old, name));
    changed
        .map(|(name, shown)| {
            FieldError::invalid(&Path::new("spec").child(shown), field(new, name), "field is immutable")
        })
        .collect()
}

/// Drivers of a node come and go, and do not change.
pub(crate) fn csi_node_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let drivers =
        |node: &Value| node.pointer("/spec/drivers").and_then(Value::as_array).cloned().unwrap_or_default();
    let known = |driver: &Value| ["nodeID", "topologyKeys"].map(|field| driver.get(field).cloned());
    let before = drivers(old);
    let mut errors = Vec::new();
    for driver in drivers(new) {
        let was = before.iter().find(|other| other.get("name") == driver.get("name"));
        if was.is_some_and(|was| known(was) != known(&driver))
            && let Some(driver) = driver.as_object()
        {
            const FIELDS: [(&str, &str); 3] =
                [("Name", "name"), ("NodeID", "nodeID"), ("TopologyKeys", "topologyKeys")];
            let shown = in_go(driver, &FIELDS).replace('}', ",\"Allocatable\":null}");
            let path = Path::new("spec").child("drivers");
            errors.push(FieldError::invalid(&path, "", "field is immutable").showing(shown));
        }
    }
    errors
}

pub(super) fn provisioner(name: &str) -> Vec<String> {
    names::qualified(&name.to_lowercase())
}

pub(super) fn class(class: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if part(class, "parameters").is_some_and(|parameters| parameters.contains_key("")) {
        errors.push(FieldError::invalid(&path.child("parameters"), "", "field can not be empty."));
    }
}

pub(super) fn driver_spec(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for mode in list(spec, "volumeLifecycleModes").iter().filter_map(Value::as_str) {
        if !matches!(mode, "Persistent" | "Ephemeral") {
            let path = path.child("volumeLifecycleModes");
            errors.push(FieldError::not_supported(&path, mode, &["Persistent", "Ephemeral"]));
        }
    }
    for (token, path) in parts(spec, "tokenRequests", path) {
        if let Some(seconds) = number(token, "expirationSeconds").filter(|seconds| *seconds < 600) {
            let path = path.child("expirationSeconds");
            errors.push(FieldError::invalid(
                &path,
                seconds,
                "may not specify a duration less than 10 minutes",
            ));
        }
    }
    if let Some(seconds) = number(spec, "nodeAllocatableUpdatePeriodSeconds").filter(|seconds| *seconds < 10)
    {
        let path = path.child("nodeAllocatableUpdatePeriodSeconds");
        errors.push(FieldError::invalid(&path, seconds, "must be greater than or equal to 10 seconds"));
    }
}

pub(super) fn attachment(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let source = part(spec, "source");
    let given = |field: &str| source.is_some_and(|source| has(source, field));
    if given("inlineVolumeSpec") == given("persistentVolumeName") {
        let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        errors.push(FieldError::required(&path.child("source"), why));
    }
}

pub(super) fn limits(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let mut taken = BTreeSet::new();
    for (item, path) in parts(spec, "limits", path) {
        let (kind, at) = (word(item, "type"), path.child("type"));
        let wrong = names::qualified(kind);
        if wrong.is_empty()
            && !kind.contains('/')
            && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim")
        {
            errors.push(FieldError::invalid(&at, kind, "must be a standard limit type or fully qualified"));
        }
        invalid(errors, &at, kind, wrong);
        if !taken.insert(kind) {
            errors.push(FieldError::duplicate(&at, kind));
        }
        let storage = |field: &str| part(item, field).is_some_and(|amounts| amounts.contains_key("storage"));
        if kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
            let why = "either minimum or maximum storage value is required, but neither was provided";
            errors.push(FieldError::required(&path.child("limits"), why));
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !is_empty(item.get(field).unwrap_or(&Value::Null)) {
                    errors.push(FieldError::forbidden(
                        &path.child(field),
                        "may not be specified when `type` is 'Pod'",
                    ));
                }
            }
        }
        compared(item, kind, &path, errors);
    }
}

/// What is compared: the two sides in order, and which of them is told of where.
fn compared(item: &Object, kind: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let side = |field: &str| -> BTreeMap<&String, Amount> {
        let skipped = kind == "Pod" && field.starts_with("default");
        let amounts = part(item, field).filter(|_| !skipped).into_iter().flatten();
        amounts.filter_map(|(name, amount)| Some((name, Amount::of(amount)?))).collect()
    };
    let (min, max) = (side("min"), side("max"));
    let (limit, request, ratio) = (side("default"), side("defaultRequest"), side("maxLimitRequestRatio"));
    let mut say = |small: &BTreeMap<&String, Amount>,
                   large: &BTreeMap<&String, Amount>,
                   field: &str,
                   shows_small: bool,
                   words: [&str; 2]| {
        for (name, amount) in small {
            if let Some(bound) = large.get(name).filter(|bound| amount > bound) {
                let why = format!("{} {amount} is greater than {} {bound}", words[0], words[1]);
                let shown = if shows_small { amount } else { bound };
                errors.push(FieldError::invalid(&path.child(field).key(name), shown.to_string(), why));
            }
        }
    };
    say(&min, &max, "min", true, ["min value", "max value"]);
    say(&min, &request, "defaultRequest", false, ["min value", "default request value"]);
    say(&request, &max, "defaultRequest", true, ["default request value", "max value"]);
    say(&request, &limit, "defaultRequest", true, ["default request value", "default limit value"]);
    say(&min, &limit, "default", true, ["min value", "default value"]);
    say(&limit, &max, "default", false, ["default value", "max value"]);
    for (name, amount) in ratio {
        let path = path.child("maxLimitRequestRatio").key(name);
        if amount < Amount::whole(1) {
            errors.push(FieldError::invalid(
                &path,
                amount.to_string(),
                format!("ratio {amount} is less than 1"),
            ));
        }
        if let (Some(min), Some(max)) = (min.get(name), max.get(name)) {
            let most = max.ratio(*min);
            if amount.ratio(Amount::whole(1)) > most {
                let why = format!("ratio {amount} is greater than max/min = {most:.6}");
                errors.push(FieldError::invalid(&path, amount.to_string(), why));
            }
        }
    }
}

fn is_compute(name: &str) -> bool {
    let bare = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    matches!(bare, "cpu" | "memory" | "ephemeral-storage") || bare.starts_with("hugepages-")
}

/// What can be counted without anyone defining it.
fn is_counted(name: &str) -> bool {
    const PLAIN: [&str; 10] = [
        "pods",
        "services",
        "services.nodeports",
        "services.loadbalancers",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "requests.storage",
    ];
    PLAIN.contains(&name) || is_compute(name)
}

pub(super) fn quota(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let hard = part(spec, "hard").cloned().unwrap_or_default();
    for (name, amount) in &hard {
        let path = path.child("hard").key(name);
        invalid(errors, &path, name.as_str(), names_resource(name, is_counted(name), "quota"));
        let Some(given) = Amount::of(amount) else { continue };
        if given.is_negative() {
            errors.push(FieldError::invalid(&path, amount.clone(), NEGATIVE));
        }
        let whole = is_counted(name) && !is_compute(name) && name != "requests.storage";
        if whole && !given.is_whole() {
            errors.push(FieldError::invalid(&path, amount.clone(), "must be an integer"));
        }
    }
    scopes(spec, &hard, path, errors);
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

fn scopes(spec: &Object, hard: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let given = list(spec, "scopes");
    let at = path.child("scopes");
    let mut refuse = |why: &str| errors.push(FieldError::invalid(&at, given.to_vec(), why));
    let known: BTreeSet<&str> = given.iter().filter_map(Value::as_str).collect();
    for scope in given.iter().filter_map(Value::as_str) {
        if !SCOPES.contains(&scope) {
            refuse("unsupported scope");
        }
        for name in hard.keys().filter(|name| is_counted(name)) {
            let applies = match scope {
                "BestEffort" => name == "pods",
                "Terminating"
                | "NotTerminating"
                | "NotBestEffort"
                | "PriorityClass"
                | "CrossNamespacePodAffinity" => name == "pods" || is_compute(name),
                _ => true,
            };
            if !applies {
                refuse("unsupported scope applied to resource");
            }
        }
    }
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| known.contains(scope)) {
            refuse("conflicting scopes");
        }
    }
}

/// What a quota is about does not change.
pub(crate) fn quota_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let scopes = |quota: &Value| -> BTreeSet<String> {
        let list = quota.pointer("/spec/scopes").and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|scope| scope.as_str().map(str::to_owned)).collect()
    };
    if scopes(new) == scopes(old) {
        return Vec::new();
    }
    let shown = new.pointer("/spec/scopes").cloned().unwrap_or_default();
    vec![FieldError::new(
        ErrorKind::Invalid,
        &Path::new("spec").child("scopes"),
        Some(shown),
        "field is immutable",
    )]
}

/// What a node was given stays its own.
pub(crate) fn node_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let networks = |node: &Value| node.pointer("/spec/podCIDRs").cloned().unwrap_or_default();
    if !is_empty(&networks(old)) && networks(new) != networks(old) {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&Path::new("spec").child("podCIDRs"), why));
    }
    let provider = |node: &Value| text(node, &["spec", "providerID"]).to_owned();
    if !provider(old).is_empty() && provider(new) != provider(old) {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&Path::new("spec").child("providerID"), why));
    }
    errors
}
