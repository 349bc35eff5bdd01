//! Services and what is behind them.

use super::check::{Check, address, network, outer_address};
use super::{Object, has, invalid, list, number, parts, word};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

const BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";

pub(super) fn spec(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let kind = word(spec, "type");
    let headless = word(spec, "clusterIP") == "None";
    ports(spec, kind, headless, path, errors);
    addresses(spec, kind, headless, path, errors);
    traffic(spec, kind, path, errors);
    if kind == "ExternalName" {
        let (name, at) = (word(spec, "externalName"), path.child("externalName"));
        let trimmed = name.strip_suffix('.').unwrap_or(name);
        match trimmed {
            "" => errors.push(FieldError::required(&at, "")),
            trimmed => invalid(errors, &at, trimmed, names::subdomain(trimmed)),
        }
    }
    let seconds =
        spec.get("sessionAffinityConfig").and_then(|config| config.pointer("/clientIP/timeoutSeconds"));
    if let Some(seconds) = seconds.and_then(Value::as_i64).filter(|seconds| !(1..=86400).contains(seconds)) {
        let path = path.child("sessionAffinityConfig").child("clientIP").child("timeoutSeconds");
        errors.push(FieldError::invalid(&path, seconds, "must be greater than 0 and less than 86400"));
    }
    let ranges = path.child("LoadBalancerSourceRanges");
    if !list(spec, "loadBalancerSourceRanges").is_empty() {
        if kind != "LoadBalancer" {
            errors.push(FieldError::forbidden(&ranges, BALANCERS));
        }
        for (index, range) in list(spec, "loadBalancerSourceRanges").iter().enumerate() {
            let text = range.as_str().unwrap_or_default();
            invalid(errors, &ranges.index(index), text, network(text.trim()));
        }
    }
    if kind != "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if has(spec, field) {
                errors.push(FieldError::forbidden(&path.child(field), BALANCERS));
            }
        }
    }
}

fn ports(spec: &Object, kind: &str, headless: bool, path: &Path, errors: &mut Vec<FieldError>) {
    let count = list(spec, "ports").len();
    if count == 0 && !headless && kind != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    let (mut taken, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for (port, path) in parts(spec, "ports", path) {
        let name = word(port, "name");
        if name.is_empty() && count > 1 {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if !name.is_empty() && !taken.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        if number(port, "nodePort").is_some_and(|port| port != 0) && kind == "ClusterIP" {
            let why = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(&path.child("nodePort"), why));
        }
        let (number, protocol) = (number(port, "port").unwrap_or(0), word(port, "protocol"));
        if !seen.insert((number, protocol)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.push(FieldError::duplicate(&path, "").showing(shown));
        }
    }
}

fn addresses(spec: &Object, kind: &str, headless: bool, path: &Path, errors: &mut Vec<FieldError>) {
    let at = path.child("clusterIPs");
    let own = word(spec, "clusterIP");
    if headless && matches!(kind, "LoadBalancer" | "NodePort") {
        let why = format!("may not be set to 'None' for {kind} services");
        errors.push(FieldError::invalid(&at.index(0), "None", why));
    }
    if kind == "ExternalName" {
        if !own.is_empty() || !list(spec, "clusterIPs").is_empty() {
            errors.push(FieldError::forbidden(&at, "may not be set when `type` is 'ExternalName'"));
        }
        return;
    }
    if !headless && !own.is_empty() {
        invalid(errors, &at.index(0), own, address(own));
    }
}

fn traffic(spec: &Object, kind: &str, path: &Path, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 2] = ["Cluster", "Local"];
    let outside = !list(spec, "externalIPs").is_empty();
    let reached = matches!(kind, "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && outside);
    let policy = word(spec, "externalTrafficPolicy");
    let at = path.child("externalTrafficPolicy");
    if !reached && !policy.is_empty() {
        errors.push(FieldError::invalid(&at, policy, "may only be set for externally-accessible services"));
    } else if !policy.is_empty() && !KNOWN.contains(&policy) {
        errors.push(FieldError::not_supported(&at, policy, &KNOWN));
    }
    let inner = path.child("internalTrafficPolicy");
    Check::OneOf(&KNOWN).judge(spec.get("internalTrafficPolicy").unwrap_or(&Value::Null), &inner, errors);
    let checks = kind == "LoadBalancer" && policy == "Local";
    if let Some(port) = number(spec, "healthCheckNodePort").filter(|port| *port != 0 && !checks) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(&path.child("healthCheckNodePort"), port, why));
    }
}

pub(super) fn subset(subset: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
        errors.push(FieldError::required(path, "must specify `addresses` or `notReadyAddresses`"));
    }
}

pub(super) fn endpoint(endpoint: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (ip, at) = (word(endpoint, "ip"), path.child("ip"));
    invalid(errors, &at, ip, outer_address(ip));
    if !address(ip).is_empty() {
        // Told a second time in fewer words.
        errors.push(FieldError::invalid(&at, ip, "must be a valid IP address"));
    }
    let name = word(endpoint, "hostname");
    if !name.is_empty() {
        invalid(errors, &path.child("hostname"), name, names::label(name));
    }
}

pub(super) fn slice(slice: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
    let kind = word(slice, "addressType");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("addressType"), kind, &TYPES));
    }
    for (endpoint, path) in parts(slice, "endpoints", path) {
        for (index, text) in list(endpoint, "addresses").iter().enumerate() {
            let (text, at) = (text.as_str().unwrap_or_default(), path.child("addresses").index(index));
            match kind {
                "IPv4" | "IPv6" => invalid(errors, &at, text, outer_address(text)),
                "FQDN" => invalid(errors, &at, text, names::subdomain(text)),
                _ => {}
            }
        }
    }
    let mut taken = BTreeSet::new();
    for (port, path) in parts(slice, "ports", path) {
        let name = word(port, "name");
        if !taken.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), json!(name)));
        }
    }
}
