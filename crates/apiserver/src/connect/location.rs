//! The location that a connect request leads to: which container is meant, and where its node's kubelet listens.

use crate::dial::{Address, Scheme, is_somewhere_else};
use crate::object::text;
use crate::status::Status;
use serde_json::Value;
use std::net::IpAddr;

/// Where a kubelet listens that does not say so.
const KUBELET_PORT: u16 = 10250;

/// Which of a node's addresses are tried first: what needs no name server.
const ADDRESSES: [&str; 5] = ["InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"];

/// Where a kubelet listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kubelet {
    pub(super) host: String,
    pub(super) port: u16,
}

/// The container that is meant: the named one if there is such, or the only one.
pub(super) fn container<'a>(pod: &'a Value, named: &'a str) -> Result<&'a str, Status> {
    let name = text(pod, &["metadata", "name"]);
    let of = |list: &str| {
        let containers = pod["spec"].get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        containers.iter().map(|container| text(container, &["name"]))
    };
    // In the order in which the reference goes through them.
    let mut all = of("initContainers").chain(of("containers")).chain(of("ephemeralContainers"));
    if !named.is_empty() {
        return match all.any(|known| known == named) {
            true => Ok(named),
            false => Err(Status::bad_request(format!("container {named} is not valid for pod {name}"))),
        };
    }
    match of("containers").collect::<Vec<_>>().as_slice() {
        [only] => Ok(only),
        [] => Err(Status::bad_request(format!("a container name must be specified for pod {name}"))),
        _ => {
            let names = all.collect::<Vec<_>>().join(" ");
            let why = format!("a container name must be specified for pod {name}, choose one of: [{names}]");
            Err(Status::bad_request(why))
        }
    }
}

/// The node that a pod was given; empty if none.
pub(super) fn node_of(pod: &Value) -> &str {
    text(pod, &["spec", "nodeName"])
}

/// Where the kubelet of a node listens.
pub(super) fn kubelet(node: &Value) -> Result<Kubelet, Status> {
    let addresses = node["status"]["addresses"].as_array().map_or(&[][..], Vec::as_slice);
    let host = ADDRESSES.iter().find_map(|kind| {
        addresses
            .iter()
            .find(|address| text(address, &["type"]) == *kind)
            .map(|found| text(found, &["address"]))
    });
    let Some(host) = host else {
        let known = Value::from(addresses.to_vec());
        return Err(Status::plain(format!("no preferred addresses found; known addresses: {known}")));
    };
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
    let port = port.and_then(|port| u16::try_from(port).ok()).filter(|&port| port > 0);
    Ok(Kubelet { host: host.to_owned(), port: port.unwrap_or(KUBELET_PORT) })
}

/// `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`, taken apart.
pub(super) fn scheme_name_port(id: &str) -> Option<(Scheme, &str, &str)> {
    let parts: Vec<&str> = id.split(':').collect();
    let (scheme, name, port) = match *parts.as_slice() {
        [name] => ("http", name, ""),
        [name, port] => ("http", name, port),
        [scheme, name, port] => (scheme, name, port),
        _ => return None,
    };
    let scheme = match scheme {
        "" | "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    (!name.is_empty()).then_some((scheme, name, port))
}

/// Where a pod listens: on the port that is named, or on the first that it says it has.
pub(super) fn pod_address(pod: &Value, scheme: Scheme, port: &str) -> Result<Address, Status> {
    let containers = pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let first = containers.iter().find_map(|container| container["ports"][0]["containerPort"].as_u64());
    let address = text(pod, &["status", "podIP"]);
    if !address.parse().is_ok_and(|address: IpAddr| is_somewhere_else(address)) {
        return Err(Status::bad_request("address not allowed"));
    }
    let port = match (port, first.and_then(|port| u16::try_from(port).ok())) {
        ("", Some(first)) => first,
        ("", None) => {
            if scheme == Scheme::Https {
                443
            } else {
                80
            }
        }
        (port, _) => number(port)?,
    };
    Ok(Address { scheme, host: address.to_owned(), port })
}

/// Another port of a node than its kubelet's.
pub(super) fn beside(kubelet: &Kubelet, scheme: Scheme, port: &str) -> Result<Address, Status> {
    // Other ports of this very machine are nobody's business.
    if !kubelet.host.parse().is_ok_and(|address: IpAddr| is_somewhere_else(address)) {
        return Err(Status::bad_request("address not allowed"));
    }
    Ok(Address { scheme, host: kubelet.host.clone(), port: number(port)? })
}

fn number(port: &str) -> Result<u16, Status> {
    let read = port.parse().ok().filter(|&port: &u16| port > 0);
    read.ok_or_else(|| Status::bad_request(format!("invalid port {port:?}")))
}

/// A path with parameters, escaped.
pub(super) fn with_query(path: &str, parameters: &[(&str, String)]) -> String {
    let mut text = path.to_owned();
    for (index, (name, value)) in parameters.iter().enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        text.push_str(name);
        text.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    text.push(char::from(byte))
                }
                _ => text.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(containers: &[&str]) -> Value {
        let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name})).collect();
        json!({
            "metadata": {"name": "web"},
            "spec": {"containers": containers, "initContainers": [{"name": "first"}],
                "ephemeralContainers": [{"name": "debugger"}]},
        })
    }

    #[test]
    fn a_container_is_named_unless_there_is_one() {
        let named = |pod: &Value, name: &str| {
            container(pod, name).map(str::to_owned).map_err(|status| status.message)
        };
        assert_eq!(named(&pod(&["a"]), "").as_deref(), Ok("a"));
        assert_eq!(named(&pod(&["a", "b"]), "first").as_deref(), Ok("first"));
        assert_eq!(named(&pod(&["a"]), "debugger").as_deref(), Ok("debugger"));
        let why = "a container name must be specified for pod web, choose one of: [first a b debugger]";
        assert_eq!(named(&pod(&["a", "b"]), "").unwrap_err(), why);
        assert_eq!(named(&pod(&["a"]), "c").unwrap_err(), "container c is not valid for pod web");
    }

    #[test]
    fn a_kubelet_is_where_its_node_says() {
        let node = json!({"status": {
            "addresses": [{"type": "Hostname", "address": "one"}, {"type": "InternalIP", "address": "10.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 4000}},
        }});
        assert_eq!(kubelet(&node).unwrap(), Kubelet { host: "10.0.0.1".into(), port: 4000 });
        let node = json!({"status": {"addresses": [{"type": "InternalIP", "address": "fd00::1"}]}});
        let found = kubelet(&node).unwrap();
        let address = Address { scheme: Scheme::Kubelet, host: found.host, port: found.port };
        assert_eq!(address.authority(), "[fd00::1]:10250");
        assert!(kubelet(&json!({})).is_err());
    }

    #[test]
    fn proxies_lead_to_no_port_of_this_machine() {
        assert_eq!(scheme_name_port("https:web:8443"), Some((Scheme::Https, "web", "8443")));
        assert_eq!(scheme_name_port("web"), Some((Scheme::Http, "web", "")));
        assert_eq!(scheme_name_port("ftp:web:1"), None);
        let at = |ip: &str| {
            let pod = json!({"spec": {"containers": [{"ports": [{"containerPort": 8080}]}]}, "status": {"podIP": ip}});
            pod_address(&pod, Scheme::Http, "").map(|found| found.port).map_err(|status| status.code)
        };
        assert_eq!(at("10.1.0.5"), Ok(8080));
        for address in ["127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", ""] {
            assert_eq!(at(address), Err(400), "{address}");
        }
    }

    #[test]
    fn parameters_are_escaped() {
        let path = with_query("/exec/n/p/c", &[("command", "echo \"a&b\"".into()), ("tty", "1".into())]);
        assert_eq!(path, "/exec/n/p/c?command=echo%20%22a%26b%22&tty=1");
    }
}
