//! Cells of Services and of what leads to them.

use super::cells::{has, items, labels, number, selector, some_of, text, texts};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

/// How many addresses a cell shows.
const SHOWN: usize = 3;

pub(super) fn balancer(object: &Value, _: Timestamp) -> Value {
    addresses(object).into()
}

/// What a load balancer gave: addresses, or names where there are none.
fn addresses(object: &Value) -> String {
    let address = |ingress| match text(ingress, "/ip") {
        "" => text(ingress, "/hostname"),
        ip => ip,
    };
    let all: BTreeSet<&str> =
        items(object, "/status/loadBalancer/ingress").iter().map(address).filter(|a| !a.is_empty()).collect();
    all.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn external(object: &Value, _: Timestamp) -> Value {
    let own = texts(object, "/spec/externalIPs");
    let given = addresses(object);
    match (text(object, "/spec/type"), own.as_slice()) {
        ("ClusterIP" | "NodePort", []) => "<none>".into(),
        ("ClusterIP" | "NodePort", own) => own.join(",").into(),
        ("LoadBalancer", []) if given.is_empty() => "<pending>".into(),
        ("LoadBalancer", own) => {
            let all: Vec<&str> =
                given.split(',').filter(|ip| !ip.is_empty()).chain(own.iter().copied()).collect();
            all.join(",").into()
        }
        ("ExternalName", _) => text(object, "/spec/externalName").into(),
        _ => "<unknown>".into(),
    }
}

pub(super) fn service_ports(object: &Value, _: Timestamp) -> Value {
    let port = |port| {
        let (number, node, protocol) =
            (number(port, "/port"), number(port, "/nodePort"), text(port, "/protocol"));
        if node > 0 { format!("{number}:{node}/{protocol}") } else { format!("{number}/{protocol}") }
    };
    let ports: Vec<String> = items(object, "/spec/ports").iter().map(port).collect();
    if ports.is_empty() { "<none>".into() } else { ports.join(",").into() }
}

pub(super) fn service_selector(object: &Value, _: Timestamp) -> Value {
    labels(object, "/spec/selector").into()
}

pub(super) fn endpoints(object: &Value, _: Timestamp) -> Value {
    let mut all = Vec::new();
    let subsets = items(object, "/subsets");
    for subset in subsets {
        let ips = || items(subset, "/addresses").iter().map(|address| text(address, "/ip"));
        let ports = items(subset, "/ports");
        if ports.is_empty() {
            all.extend(ips().map(str::to_owned));
        }
        for port in ports {
            let port = number(port, "/port");
            all.extend(ips().map(|ip| match ip.contains(':') {
                true => format!("[{ip}]:{port}"),
                false => format!("{ip}:{port}"),
            }));
        }
    }
    some_of(&all, SHOWN, if subsets.is_empty() { "<none>" } else { "" }).into()
}

pub(super) fn slice_ports(object: &Value, _: Timestamp) -> Value {
    let port = |port: &Value| match port.get("port").and_then(Value::as_i64) {
        Some(number) => number.to_string(),
        None => port.get("name").and_then(Value::as_str).unwrap_or("*").to_owned(),
    };
    let ports: Vec<String> = items(object, "/ports").iter().map(port).collect();
    some_of(&ports, SHOWN, "<unset>").into()
}

pub(super) fn slice_endpoints(object: &Value, _: Timestamp) -> Value {
    let endpoints = items(object, "/endpoints").iter();
    let all: Vec<String> =
        endpoints.flat_map(|endpoint| texts(endpoint, "/addresses")).map(str::to_owned).collect();
    some_of(&all, SHOWN, "<unset>").into()
}

pub(super) fn hosts(object: &Value, _: Timestamp) -> Value {
    let rules = items(object, "/spec/rules");
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == SHOWN;
        let host = text(rule, "/host");
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".into(),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN).into(),
        (false, false) => shown.join(",").into(),
    }
}

pub(super) fn ingress_ports(object: &Value, _: Timestamp) -> Value {
    if items(object, "/spec/tls").is_empty() { "80".into() } else { "80, 443".into() }
}

pub(super) fn ingress_class_name(object: &Value, _: Timestamp) -> Value {
    let default =
        text(object, "/metadata/annotations/ingressclass.kubernetes.io~1is-default-class") == "true";
    format!("{}{}", text(object, "/metadata/name"), if default { " (default)" } else { "" }).into()
}

pub(super) fn ingress_class_parameters(object: &Value, _: Timestamp) -> Value {
    if !has(object, "/spec/parameters") {
        return "<none>".into();
    }
    let part = |path: &str| text(object, path).to_owned();
    let group = match object.pointer("/spec/parameters/apiGroup").and_then(Value::as_str) {
        Some(group) => format!(".{group}"),
        None => String::new(),
    };
    format!("{}{group}/{}", part("/spec/parameters/kind"), part("/spec/parameters/name")).into()
}

pub(super) fn policy_selector(object: &Value, _: Timestamp) -> Value {
    selector(object, "/spec/podSelector", "<none>").into()
}

pub(super) fn ranges(object: &Value, _: Timestamp) -> Value {
    texts(object, "/spec/cidrs").join(",").into()
}
