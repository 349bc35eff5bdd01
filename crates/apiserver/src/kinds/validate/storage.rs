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
    data_sources(spec, path, errors);
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

/// What a claim's volume begins with is named whole, and in both fields alike.
fn data_sources(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let fields = ["dataSource", "dataSourceRef"];
    for field in fields {
        let Some(source) = part(spec, field) else { continue };
        let path = path.child(field);
        for name in ["name", "kind"] {
            if word(source, name).is_empty() {
                errors.push(FieldError::required(&path.child(name), ""));
            }
        }
        let (group, kind) = (word(source, "apiGroup"), word(source, "kind"));
        if group.is_empty() && kind != "PersistentVolumeClaim" {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(&path, kind, why));
        }
        if !group.is_empty() {
            super::invalid(errors, &path.child("apiGroup"), group, names::subdomain(group));
        }
    }
    if let [Some(source), Some(reference)] = fields.map(|field| part(spec, field)) {
        let same =
            ["apiGroup", "kind", "name"].iter().all(|field| word(source, field) == word(reference, field));
        if !same {
            let error = FieldError::invalid(path, "", "must match dataSourceRef");
            errors.push(error.showing("{}"));
        }
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
    let (grown, was) = (amount(grown.as_ref()).unwrap_or_default(), amount(was.as_ref()).unwrap_or_default());
    if grown < was && grown <= capacity {
        let path = Path::new("spec").child("resources").child("requests").child("storage");
        errors.push(FieldError::forbidden(&path, "field can not be less than status.capacity"));
    }
    let mode = |claim: &Value| claim.pointer("/spec/volumeMode").cloned().unwrap_or_default();
    if mode(new) != mode(old) {
        errors.push(FieldError::invalid(&Path::new("volumeMode"), mode(new), "field is immutable"));
    }
    let current =
        old.pointer("/status/currentVolumeAttributesClassName").is_some_and(|class| !class.is_null());
    let class = |claim: &Value| claim.pointer("/spec/volumeAttributesClassName").cloned().unwrap_or_default();
    if current && class(new) != class(old) {
        let path = Path::new("spec").child("volumeAttributesClassName");
        let why = |to: &str| {
            format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil")
        };
        match class(new).as_str() {
            None => errors.push(FieldError::forbidden(&path, why("nil"))),
            Some("") => errors.push(FieldError::forbidden(&path, why("empty string"))),
            Some(_) => {}
        }
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
        let shown = spec.get("capacity").cloned().unwrap_or_default();
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
    let first = given.next();
    if first.is_none() {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    // One kind is never too many, and another is called by its name in Go.
    for more in given.filter(|source| **source != "flexVolume") {
        let name = if *more == "cephfs" { "cephFS" } else { more };
        errors.push(FieldError::forbidden(&path.child(name), "may not specify more than 1 volume type"));
    }
    let root = part(spec, "hostPath").is_some_and(|host| matches!(word(host, "path"), "/"));
    if root && word(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        let path = path.child("persistentVolumeReclaimPolicy");
        errors.push(FieldError::forbidden(&path, "may not be 'recycle' for a hostPath mount of '/'"));
    }
    if first == Some(&"local") && !has(spec, "nodeAffinity") {
        errors.push(FieldError::required(&path.child("nodeAffinity"), "Local volume requires node affinity"));
    }
    if has(spec, "volumeAttributesClassName") {
        attributes_class(spec, path, errors);
    }
}

/// The nodes that a volume can be reached from are named by terms.
pub(super) fn reachable_from(affinity: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(required) = part(affinity, "required")
        && list(required, "nodeSelectorTerms").is_empty()
    {
        let path = path.child("required").child("nodeSelectorTerms");
        errors.push(FieldError::required(&path, "must have at least one node selector term"));
    }
}

/// Only drivers know classes of attributes.
fn attributes_class(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (class, at) = (word(spec, "volumeAttributesClassName"), path.child("volumeAttributesClassName"));
    match class {
        "" => errors.push(FieldError::required(&at, "an empty string is disallowed")),
        class => super::invalid(errors, &at, class, names::subdomain(class)),
    }
    if !has(spec, "csi") {
        let why = "has to be specified when using volumeAttributesClassName";
        errors.push(FieldError::required(&path.child("csi"), why));
    }
}

pub(crate) fn volume_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let sources = |volume: &Value| -> Vec<Option<Value>> {
        SOURCES.iter().map(|source| volume.get("spec").and_then(|spec| spec.get(*source)).cloned()).collect()
    };
    let expands = "/spec/csi/controllerExpandSecretRef";
    let mut now = new.clone();
    if let Some(driver) = now.pointer_mut("/spec/csi").and_then(Value::as_object_mut)
        && old.pointer("/spec/csi").is_some()
        && old.pointer(expands).is_none()
    {
        // What a driver expands with may come later.
        driver.remove("controllerExpandSecretRef");
    }
    if sources(&now) != sources(old) {
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
    let class = "volumeAttributesClassName";
    if field(new, class).is_null() && !field(old, class).is_null() {
        let why = "update from non-nil value to nil is forbidden";
        errors.push(FieldError::forbidden(&Path::new("spec").child(class), why));
    }
    errors
}

/// Networks of Services are added to, not changed.
pub(crate) fn networks_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let networks =
        |object: &Value| object.pointer("/spec/cidrs").and_then(Value::as_array).cloned().unwrap_or_default();
    let (now, before, path) = (networks(new), networks(old), Path::new("spec").child("cidrs"));
    let grows = before.len() == 1 && now.len() == 2;
    if before.len() != now.len() && !grows {
        let shown = new.pointer("/spec/cidrs").cloned().unwrap_or_default();
        return vec![FieldError::invalid(&path, shown, "field is immutable")];
    }
    let changed = before.iter().zip(&now).enumerate().filter(|(_, (before, now))| before != now);
    let mut errors: Vec<FieldError> = changed
        .map(|(index, (_, now))| FieldError::invalid(&path.index(index), now.clone(), "field is immutable"))
        .collect();
    if grows && let Some(spec) = new.get("spec").and_then(Value::as_object) {
        service_networks(spec, &Path::new("spec"), &mut errors);
    }
    errors
}

/// The networks of Services: one of each family.
pub(super) fn service_networks(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (networks, path) = (list(spec, "cidrs"), path.child("cidrs"));
    let texts: Vec<&str> = networks.iter().filter_map(Value::as_str).collect();
    for (index, text) in texts.iter().enumerate() {
        super::invalid(errors, &path.index(index), *text, super::check::network(text));
    }
    let families: Vec<bool> = texts.iter().map(|network| network.contains(':')).collect();
    if let [one, two] = families.as_slice()
        && one == two
        && texts.iter().all(|text| super::check::network(text).is_empty())
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(&path, networks.to_vec(), why));
    }
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
    let mut seen: Vec<&[Value]> = vec![&[]];
    for (term, path) in parts(class, "allowedTopologies", path) {
        let expressions = list(term, "matchLabelExpressions");
        if seen.contains(&expressions) {
            errors.push(FieldError::duplicate(&path.child("matchLabelExpressions"), ""));
        }
        seen.push(expressions);
    }
}

pub(super) fn driver_spec(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for mode in list(spec, "volumeLifecycleModes").iter().filter_map(Value::as_str) {
        if !matches!(mode, "Persistent" | "Ephemeral") {
            let path = path.child("volumeLifecycleModes");
            errors.push(FieldError::not_supported(&path, mode, &["Persistent", "Ephemeral"]));
        }
    }
    if has(spec, "serviceAccountTokenInSecrets") && list(spec, "tokenRequests").is_empty() {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        let given = spec["serviceAccountTokenInSecrets"].clone();
        errors.push(FieldError::invalid(&path.child("serviceAccountTokenInSecrets"), given, why));
    }
    let mut audiences = Vec::new();
    for (token, path) in parts(spec, "tokenRequests", path) {
        let audience = word(token, "audience");
        if audiences.contains(&audience) {
            errors.push(FieldError::duplicate(&path.child("audience"), audience));
            continue;
        }
        audiences.push(audience);
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
    let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (given("inlineVolumeSpec"), given("persistentVolumeName")) {
        (true, true) => errors.push(FieldError::forbidden(&path.child("source"), why)),
        (false, false) => errors.push(FieldError::required(&path.child("source"), why)),
        _ => {}
    }
}
