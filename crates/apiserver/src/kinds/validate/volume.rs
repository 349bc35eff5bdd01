//! Volumes of pods, and where they are mounted.

use super::check::{Check, no_way_back, relative};
use super::container::is_privileged;
use super::{Object, has, invalid, list, number, part, parts, word};
use crate::kinds::resources::quantity;
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

/// The kinds of volumes, in the order in which the reference looks for them.
const KINDS: [&str; 31] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
    "local",
];

pub(super) fn volume(volume: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let name = word(volume, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else {
        invalid(errors, &path.child("name"), name, names::label(name));
    }
    let mut kinds = KINDS.iter().filter(|kind| has(volume, kind));
    if kinds.next().is_none() {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    for kind in kinds {
        errors.push(FieldError::forbidden(&path.child(kind), "may not specify more than 1 volume type"));
    }
    let image = part(volume, "image").filter(|image| word(image, "reference").is_empty());
    if image.is_some() && KINDS.iter().filter(|kind| has(volume, kind)).count() == 1 {
        errors.push(FieldError::required(&path.child("image").child("reference"), ""));
    }
    if let Some(fields) = part(volume, "downwardAPI") {
        downward(fields, &path.child("downwardAPI"), errors);
    }
    if let Some(projected) = part(volume, "projected") {
        self::projected(projected, &path.child("projected"), errors);
    }
}

/// Errors about an item do not say which.
fn downward(fields: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 5] =
        ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
    for item in list(fields, "items").iter().filter_map(Value::as_object) {
        let file = word(item, "path");
        if file.is_empty() {
            errors.push(FieldError::required(&path.child("path"), ""));
        }
        relative(file, &path.child("path"), errors);
        match (part(item, "fieldRef"), has(item, "resourceFieldRef")) {
            (None, false) => {
                errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
            }
            (Some(_), true) => {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", why));
            }
            (Some(field), false) => {
                let given = word(field, "fieldPath");
                let plain = given.split('[').next().unwrap_or_default();
                if !given.is_empty() && !KNOWN.contains(&plain) {
                    let path = path.child("fieldRef").child("fieldPath");
                    errors.push(FieldError::not_supported(&path, given, &KNOWN));
                }
            }
            _ => {}
        }
    }
}

fn projected(projected: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let mut taken = BTreeSet::new();
    for source in list(projected, "sources").iter().filter_map(Value::as_object) {
        let mut take = |file: &str, shown: &str| {
            if !file.is_empty() && !taken.insert(file.to_owned()) {
                errors.push(FieldError::invalid(path, shown, "conflicting duplicate paths"));
            }
        };
        for kind in ["secret", "configMap"] {
            if let Some(source) = part(source, kind) {
                let name = word(source, "name");
                list(source, "items")
                    .iter()
                    .filter_map(Value::as_object)
                    .for_each(|item| take(word(item, "path"), name));
            }
        }
        if let Some(fields) = part(source, "downwardAPI") {
            let items = list(fields, "items").iter().filter_map(Value::as_object);
            items.for_each(|item| take(word(item, "path"), word(item, "path")));
        }
        if let Some(token) = part(source, "serviceAccountToken")
            && word(token, "path").is_empty()
        {
            errors.push(FieldError::required(&path.child("path"), ""));
        }
    }
}

pub(super) fn projection(source: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    const KINDS: [&str; 6] =
        ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
    for _ in KINDS.iter().filter(|kind| has(source, kind)).skip(1) {
        errors.push(FieldError::forbidden(path, "may not specify more than 1 volume type per source"));
    }
    if let Some(token) = part(source, "serviceAccountToken")
        && let Some(seconds) = number(token, "expirationSeconds")
    {
        let path = path.child("serviceAccountToken").child("expirationSeconds");
        if seconds < 600 {
            errors.push(FieldError::invalid(
                &path,
                seconds,
                "may not specify a duration less than 10 minutes",
            ));
        }
        if seconds > 1 << 32 {
            errors.push(FieldError::invalid(
                &path,
                seconds,
                "may not specify a duration larger than 2^32 seconds",
            ));
        }
    }
}

pub(super) fn host_path(source: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    no_way_back(word(source, "path"), &path.child("path"), errors);
}

pub(super) fn key_to_path(item: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    relative(word(item, "path"), &path.child("path"), errors);
}

pub(super) fn nfs(source: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let given = word(source, "path");
    if !given.starts_with('/') {
        errors.push(FieldError::invalid(&path.child("path"), given, "must be an absolute path"));
    }
}

pub(super) fn empty_dir(source: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if source.get("sizeLimit").and_then(quantity).is_some_and(|limit| limit.is_negative()) {
        let why = "SizeLimit field must be a valid resource quantity";
        errors.push(FieldError::forbidden(&path.child("sizeLimit"), why));
    }
}

/// Some errors about a mount do not say which.
pub(super) fn mounts(
    container: &Object,
    volumes: &BTreeSet<&str>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let all = path.child("volumeMounts");
    let mut taken = BTreeSet::new();
    for (mount, path) in parts(container, "volumeMounts", path) {
        let (name, place) = (word(mount, "name"), word(mount, "mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        if place.is_empty() {
            errors.push(FieldError::required(&path.child("mountPath"), ""));
        }
        if !volumes.contains(name) {
            errors.push(FieldError::not_found(&path.child("name"), name));
        }
        if !place.is_empty() && !taken.insert(place) {
            errors.push(FieldError::invalid(&path.child("mountPath"), place, "must be unique"));
        }
        for field in ["subPath", "subPathExpr"] {
            relative(word(mount, field), &all.child(field), errors);
        }
        if !word(mount, "subPath").is_empty() && !word(mount, "subPathExpr").is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(&path.child("subPathExpr"), word(mount, "subPathExpr"), why));
        }
        Check::OneOf(&["Disabled", "Enabled", "IfPossible"]).judge(
            mount.get("recursiveReadOnly").unwrap_or(&Value::Null),
            &all.child("recursiveReadOnly"),
            errors,
        );
        let spreads = word(mount, "mountPropagation");
        let at = all.child("mountPropagation");
        if !matches!(spreads, "" | "Bidirectional" | "HostToContainer" | "None") {
            errors.push(FieldError::not_supported(
                &at,
                spreads,
                &["Bidirectional", "HostToContainer", "None"],
            ));
        }
        if spreads == "Bidirectional" && !is_privileged(container) {
            let why = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(FieldError::forbidden(&at, why));
        }
    }
}

pub(super) fn devices(
    container: &Object,
    volumes: &BTreeSet<&str>,
    blocks: &BTreeSet<&str>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    for (device, path) in parts(container, "volumeDevices", path) {
        let name = word(device, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        if word(device, "devicePath").is_empty() {
            errors.push(FieldError::required(&path.child("devicePath"), ""));
        }
        if volumes.contains(name) && !blocks.contains(name) {
            let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
            errors.push(FieldError::invalid(&path.child("name"), name, why));
        }
        if !volumes.contains(name) {
            errors.push(FieldError::not_found(&path.child("name"), name));
        }
    }
}
