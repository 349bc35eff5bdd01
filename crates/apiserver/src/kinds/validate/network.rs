//! Ingresses, network policies, and networks.

use super::check::{Check, network, port};
use super::{Object, has, invalid, list, number, part, word};
use serde_json::Value;
use std::net::IpAddr;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

pub(super) fn ingress(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if !has(spec, "defaultBackend") && list(spec, "rules").is_empty() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(path, list(spec, "rules").to_vec(), why).showing("null"));
    }
}

pub(super) fn rule(rule: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (host, at) = (word(rule, "host"), path.child("host"));
    if host.is_empty() {
        return;
    }
    if host.parse::<IpAddr>().is_ok() {
        errors.push(FieldError::invalid(&at, host, "must be a DNS name, not an IP address"));
        return;
    }
    invalid(errors, &at, host, host_name(host));
}

fn host_name(host: &str) -> Vec<String> {
    match host.strip_prefix("*.") {
        Some(rest) if host.contains('*') => names::subdomain(rest),
        _ => names::subdomain(host),
    }
}

pub(super) fn certificate(tls: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for (index, host) in list(tls, "hosts").iter().enumerate() {
        let host = host.as_str().unwrap_or_default();
        invalid(errors, &path.child("hosts").index(index), host, host_name(host));
    }
}

pub(super) fn path(rule: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (given, at) = (word(rule, "path"), path.child("path"));
    match word(rule, "pathType") {
        "" => errors.push(FieldError::required(&path.child("pathType"), "pathType must be specified")),
        "Exact" | "Prefix" => {
            if !given.starts_with('/') {
                errors.push(FieldError::invalid(&at, given, "must be an absolute path"));
            }
            for piece in ["//", "/./", "/../", "%2f", "%2F"] {
                if given.contains(piece) {
                    errors.push(FieldError::invalid(&at, given, format!("must not contain '{piece}'")));
                }
            }
            for end in ["/..", "/."] {
                if given.ends_with(end) {
                    errors.push(FieldError::invalid(&at, given, format!("cannot end with '{end}'")));
                }
            }
        }
        "ImplementationSpecific" => {
            if !given.is_empty() && !given.starts_with('/') {
                errors.push(FieldError::invalid(&at, given, "must be an absolute path"));
            }
        }
        other => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(&path.child("pathType"), other, &known));
        }
    }
}

pub(super) fn backend(backend: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    match (part(backend, "service"), has(backend, "resource")) {
        (Some(_), true) => {
            errors.push(FieldError::invalid(path, "", "cannot set both resource and service backends"))
        }
        (None, false) => {
            errors.push(FieldError::invalid(path, "", "resource or service backend is required"))
        }
        (Some(service), false) => self::service(service, path, errors),
        (None, true) => {}
    }
}

fn service(service: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let at = path.child("service");
    let name = word(service, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&at.child("name"), ""));
    } else {
        invalid(errors, &at.child("name"), name, names::label(name));
    }
    let port = part(service, "port");
    let named = port.map_or("", |port| word(port, "name"));
    let numbered = port.and_then(|port| number(port, "number")).unwrap_or(0);
    match (named.is_empty(), numbered) {
        (true, 0) => errors.push(FieldError::required(path, "port name or number is required")),
        (false, 1..) => errors.push(FieldError::invalid(path, "", "cannot set both port name & port number")),
        (true, number) => {
            Check::Range(1, 65535).judge(&number.into(), &at.child("port").child("number"), errors)
        }
        (false, _) => invalid(errors, &at.child("port").child("name"), named, super::check::port_name(named)),
    }
}

pub(super) fn parameters(reference: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let at = path.child("namespace");
    match word(reference, "scope") {
        "Namespace" if !has(reference, "namespace") => {
            errors.push(FieldError::required(&at, "`parameters.scope` is set to 'Namespace'"));
        }
        "Cluster" if has(reference, "namespace") => {
            errors.push(FieldError::forbidden(&at, "`parameters.scope` is set to 'Cluster'"));
        }
        _ => {}
    }
}

pub(super) fn policy(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let types = list(spec, "policyTypes");
    if types.len() > 2 {
        let why = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(&path.child("policyTypes"), types.to_vec(), why));
    }
}

pub(super) fn peer(peer: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let others = has(peer, "podSelector") || has(peer, "namespaceSelector");
    match (has(peer, "ipBlock"), others) {
        (false, false) => errors.push(FieldError::required(path, "must specify a peer")),
        (true, true) => {
            errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"))
        }
        _ => {}
    }
}

pub(super) fn policy_port(rule: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let given = rule.get("port").unwrap_or(&Value::Null);
    if !given.is_null() {
        port(given, &path.child("port"), errors);
    }
    let Some(end) = number(rule, "endPort") else { return };
    let at = path.child("endPort");
    match given {
        Value::Null => {
            errors.push(FieldError::invalid(&at, end, "may not be specified when `port` is not specified"));
        }
        Value::String(_) => {
            errors.push(FieldError::invalid(&at, end, "may not be specified when `port` is non-numeric"));
        }
        first if first.as_i64().is_some_and(|first| end < first) => {
            // The beginning is shown, not the end.
            errors.push(FieldError::invalid(&at, first.clone(), "must be greater than or equal to `port`"));
        }
        _ => Check::Range(1, 65535).judge(&end.into(), &at, errors),
    }
}

pub(super) fn block(block: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (cidr, at) = (word(block, "cidr"), path.child("cidr"));
    if cidr.is_empty() {
        errors.push(FieldError::required(&at, ""));
        return;
    }
    invalid(errors, &at, cidr, network(cidr));
    for (index, except) in list(block, "except").iter().enumerate() {
        let (except, at) = (except.as_str().unwrap_or_default(), path.child("except").index(index));
        let wrong = network(except);
        if wrong.is_empty() && network(cidr).is_empty() && !is_within(except, cidr) {
            errors.push(FieldError::invalid(&at, except, "must be a strict subset of `cidr`"));
        }
        invalid(errors, &at, except, wrong);
    }
}

/// Is the first network a part of the second, and not all of it?
fn is_within(inner: &str, outer: &str) -> bool {
    let read = |text: &str| -> Option<(u128, u32, bool)> {
        let (address, bits) = text.split_once('/')?;
        let bits: u32 = bits.parse().ok()?;
        Some(match address.parse::<IpAddr>().ok()? {
            IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, bits, true),
            IpAddr::V6(address) => (u128::from(address), bits, false),
        })
    };
    let (Some((inner, longer, four)), Some((outer, shorter, also_four))) = (read(inner), read(outer)) else {
        return false;
    };
    let head = |address: u128| address.checked_shr(128 - shorter).unwrap_or(0);
    four == also_four && longer > shorter && head(inner) == head(outer)
}
