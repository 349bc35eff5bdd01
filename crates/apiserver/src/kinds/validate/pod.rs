//! Pods as wholes: what their parts say of each other.

use super::check::{address, in_go};
use super::{Object, container, flag, has, invalid, list, number, part, parts, word};
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_schema::field::{ErrorKind, FieldError, Path};
use windlass_schema::names;

pub(super) fn spec(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    dns(spec, path, errors);
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        let path = path.child("securityContext").child("shareProcessNamespace");
        errors.push(FieldError::invalid(&path, true, why));
    }
    if let Some(system) = part(spec, "os") {
        let (path, name) = (path.child("os"), word(system, "name"));
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), "cannot be empty"));
        } else if !matches!(name, "linux" | "windows") {
            errors.push(FieldError::not_supported(&path, name, &["linux", "windows"]));
        }
    }
    let mut gates = BTreeSet::new();
    for (gate, path) in parts(spec, "schedulingGates", path) {
        let name = word(gate, "name");
        invalid(errors, &path, name, names::qualified(name));
        if !gates.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
    claims(spec, path, errors);
    container::overhead(spec, path, errors);
    for (container, path) in parts(spec, "ephemeralContainers", path) {
        if word(container, "image").is_empty() {
            errors.push(FieldError::required(&path.child("image"), ""));
        }
    }
}

fn dns(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let path = path.child("dnsConfig");
    let none = word(spec, "dnsPolicy") == "None";
    let Some(config) = part(spec, "dnsConfig") else {
        if none {
            errors.push(FieldError::required(&path, "must provide `dnsConfig` when `dnsPolicy` is None"));
        }
        return;
    };
    let servers = list(config, "nameservers");
    let at = path.child("nameservers");
    if none && servers.is_empty() {
        let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        errors.push(FieldError::required(&at, why));
    }
    if servers.len() > 3 {
        errors.push(FieldError::invalid(&at, servers.to_vec(), "must not have more than 3 nameservers"));
    }
    for (index, server) in servers.iter().enumerate() {
        let text = server.as_str().unwrap_or_default();
        invalid(errors, &at.index(index), text, address(text));
    }
    for (index, search) in list(config, "searches").iter().enumerate() {
        let text = search.as_str().unwrap_or_default();
        let trimmed = text.strip_suffix('.').unwrap_or(text);
        let path = path.child("searches").index(index);
        // Underscores are let in here.
        if !trimmed.is_empty() && !names::subdomain(&trimmed.replace('_', "a")).is_empty() {
            let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and \
                       must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                       '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
            errors.push(FieldError::invalid(&path, trimmed, why));
        }
    }
    for (option, path) in parts(config, "options", &path) {
        if word(option, "name").is_empty() {
            errors.push(FieldError::required(&path, "must not be empty"));
        }
    }
}

const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// Names are unique among containers of all kinds; so are ports of the host.
pub(super) fn containers(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let mut taken = BTreeSet::new();
    for field in ["containers", "initContainers"] {
        for (container, path) in parts(spec, field, path) {
            let name = word(container, "name");
            if !name.is_empty() && !taken.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            if word(container, "image").is_empty() {
                errors.push(FieldError::required(&path.child("image"), ""));
            }
        }
    }
    let grace = number(spec, "terminationGracePeriodSeconds").unwrap_or(30);
    for field in CONTAINERS {
        let mut host_ports = BTreeSet::new();
        for (own, path) in parts(spec, field, path) {
            if field == "initContainers" {
                container::prepares(own, &path, errors);
            }
            container::sleeps(own, grace, &path, errors);
            if flag(spec, "hostNetwork") {
                container::shares_network(own, &path, errors);
            }
            for (port, path) in parts(own, "ports", &path) {
                let host = number(port, "hostPort").unwrap_or(0);
                let key = format!("{}/{}/{host}", word(port, "protocol"), word(port, "hostIP"));
                if host != 0 && !host_ports.insert(key.clone()) {
                    errors.push(FieldError::duplicate(&path.child("hostPort"), key));
                }
            }
        }
    }
}

/// What containers mount are volumes of the pod.
pub(super) fn mounts(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let mut volumes = BTreeSet::new();
    for (volume, path) in parts(spec, "volumes", path) {
        let name = word(volume, "name");
        if !name.is_empty() && !volumes.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    let blocks: BTreeSet<&str> = list(spec, "volumes")
        .iter()
        .filter_map(Value::as_object)
        .filter(|volume| has(volume, "persistentVolumeClaim") || has(volume, "ephemeral"))
        .map(|volume| word(volume, "name"))
        .collect();
    for field in CONTAINERS {
        for (own, path) in parts(spec, field, path) {
            super::volume::mounts(own, &volumes, &path, errors);
            super::volume::devices(own, &volumes, &blocks, &path, errors);
        }
    }
}

/// What containers use of devices are claims of the pod.
fn claims(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let mut known = BTreeSet::new();
    for (claim, path) in parts(spec, "resourceClaims", path) {
        let name = word(claim, "name");
        if !name.is_empty() && !known.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    for field in CONTAINERS {
        for (own, path) in parts(spec, field, path) {
            let Some(resources) = part(own, "resources") else { continue };
            for (claim, path) in parts(resources, "claims", &path.child("resources")) {
                let name = word(claim, "name");
                if name.is_empty() {
                    errors.push(FieldError::required(&path, ""));
                } else if known.is_empty() {
                    let why = "must be one of the names in pod.spec.resourceClaims which is empty";
                    errors.push(FieldError::new(ErrorKind::NotFound, &path, Some(name.into()), why));
                } else if !known.contains(name) {
                    let names: Vec<&str> = known.iter().copied().collect();
                    let why =
                        format!("must be one of the names in pod.spec.resourceClaims: {}", names.join(", "));
                    errors.push(FieldError::new(ErrorKind::NotFound, &path, Some(name.into()), why));
                }
            }
        }
    }
}

pub(super) fn claim(claim: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let why = match (has(claim, "resourceClaimName"), has(claim, "resourceClaimTemplateName")) {
        (false, false) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        (true, true) => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        _ => return,
    };
    const SHOWN: [(&str, &str); 3] = [
        ("Name", "name"),
        ("ResourceClaimName", "resourceClaimName"),
        ("ResourceClaimTemplateName", "resourceClaimTemplateName"),
    ];
    errors.push(FieldError::invalid(path, "", why).showing(in_go(claim, &SHOWN)));
}
