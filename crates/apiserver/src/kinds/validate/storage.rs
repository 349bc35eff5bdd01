//! Claims, volumes and classes of storage, and the networks of Services.

use super::check::in_go;
use super::{Object, has, list, number, part, parts, word};
use crate::kinds::resources::quantity;
use crate::object::text;
use serde_json::Value;
use windlass_schema::field::{FieldError, Path};
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
        Some(storage) => match quantity(storage) {
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
    let amount = |value: Option<&Value>| value.and_then(quantity);
    let capacity = amount(old.pointer("/status/capacity/storage")).unwrap_or_default();
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
        match quantity(amount) {
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
