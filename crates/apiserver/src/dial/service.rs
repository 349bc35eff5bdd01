//! Where a Service leads: to one of its endpoints that are ready, in turns.

use super::{Address, Dialer, Scheme};
use crate::object::{list, text};
use crate::status::{Named, Status};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use windlass_store::{Key, ListQuery, Store};

/// The label of an EndpointSlice that names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Where a port of a Service leads. A number is one of the Service's own; its endpoints know the port by its name.
///
/// # Errors
/// 404 for a Service that is not there, 503 for one that leads nowhere.
pub(crate) fn service_address(
    (store, dialer): (&Store, &Dialer),
    (namespace, name): (&str, &str),
    scheme: Scheme,
    port: &str,
) -> Result<Address, Status> {
    let stored = |plural: &'static str| {
        let entry = store.get(&Key::new(plural, namespace, name));
        let missing = || Status::not_found(Named { group: "", kind: plural }, name);
        entry.map(|entry| entry.value()).ok_or_else(missing)
    };
    let port = match port.parse::<u64>() {
        Ok(number) => port_name(&stored("services")?, number)?,
        Err(_) => port.to_owned(),
    };
    let turn = dialer.next_endpoint.fetch_add(1, Ordering::Relaxed);
    endpoint(&stored("endpoints")?, scheme, &port, turn)
}

/// Where the port of a Service leads at which a webhook listens: slices of endpoints count here, and a Service may be a name outside.
///
/// # Errors
/// As [`service_address`].
pub(crate) fn webhook_address(
    (store, dialer): (&Store, &Dialer),
    (namespace, name): (&str, &str),
    port: u16,
) -> Result<Address, Status> {
    let entry = store.get(&Key::new("services", namespace, name));
    let missing = || Status::not_found(Named { group: "", kind: "service" }, name);
    let service = entry.map(|entry| entry.value()).ok_or_else(missing)?;
    if text(&service, &["spec", "type"]) == "ExternalName" {
        let host = text(&service, &["spec", "externalName"]).to_owned();
        return Ok(Address { scheme: Scheme::Https, host, port });
    }
    let port = port_name(&service, port.into())?;
    let turn = dialer.next_endpoint.fetch_add(1, Ordering::Relaxed);
    let query = ListQuery { namespace: Some(namespace), ..ListQuery::all("discovery.k8s.io/endpointslices") };
    let slices = store.list(&query).map(|page| page.items).unwrap_or_default();
    let slices: Vec<Value> = slices.iter().map(|entry| entry.value()).collect();
    let mut places = Vec::new();
    for slice in slices.iter().filter(|slice| text(slice, &["metadata", "labels", SERVICE_NAME]) == name) {
        let known = list(slice, &["ports"]).iter().find(|known| text(known, &["name"]) == port);
        let Some(number) = known.and_then(|known| u16::try_from(known.get("port")?.as_u64()?).ok()) else {
            continue;
        };
        for endpoint in list(slice, &["endpoints"]) {
            let ready = endpoint.pointer("/conditions/ready").and_then(Value::as_bool);
            let addresses = list(endpoint, &["addresses"]).iter().filter(|_| ready != Some(false));
            places.extend(addresses.filter_map(Value::as_str).map(|address| (address, number)));
        }
    }
    if places.is_empty() {
        let endpoints = store.get(&Key::new("endpoints", namespace, name));
        let endpoints = endpoints.ok_or_else(|| nowhere(name))?.value();
        return endpoint(&endpoints, Scheme::Https, &port, turn);
    }
    reachable(&places, Scheme::Https, turn)
}

/// The name of a Service's port.
fn port_name(service: &Value, number: u64) -> Result<String, Status> {
    let port = list(service, &["spec", "ports"]).iter().find(|port| port["port"].as_u64() == Some(number));
    port.map(|port| text(port, &["name"]).to_owned()).ok_or_else(|| {
        let name = text(service, &["metadata", "name"]);
        Status::unavailable(format!("no service port {number} found for service {name:?}"))
    })
}

/// One of these endpoints that are ready.
fn endpoint(endpoints: &Value, scheme: Scheme, port: &str, turn: usize) -> Result<Address, Status> {
    let mut places = Vec::new();
    for subset in list(endpoints, &["subsets"]) {
        let known = list(subset, &["ports"]).iter().find(|known| text(known, &["name"]) == port);
        let Some(number) = known.and_then(|known| u16::try_from(known["port"].as_u64()?).ok()) else {
            continue;
        };
        let addresses = list(subset, &["addresses"]).iter();
        places.extend(addresses.map(|address| (text(address, &["ip"]), number)));
    }
    if places.is_empty() {
        return Err(nowhere(text(endpoints, &["metadata", "name"])));
    }
    reachable(&places, scheme, turn)
}

fn reachable(places: &[(&str, u16)], scheme: Scheme, turn: usize) -> Result<Address, Status> {
    let (host, port) = places[turn % places.len()];
    if !host.parse().is_ok_and(|address: IpAddr| is_somewhere_else(address)) {
        return Err(Status::bad_request("address not allowed"));
    }
    Ok(Address { scheme, host: host.to_owned(), port })
}

fn nowhere(service: &str) -> Status {
    Status::unavailable(format!("no endpoints available for service {service:?}"))
}

/// Does an address belong to one machine, and to another than this?
pub(crate) fn is_somewhere_else(address: IpAddr) -> bool {
    // The IPv4 addresses among the IPv6 ones are those very IPv4 addresses to the kernel.
    let address = address.to_canonical();
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(address.is_loopback() || address.is_unspecified() || address.is_multicast() || link_local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn this_machine_is_not_somewhere_else_however_it_is_written() {
        for here in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "::ffff:0.0.0.0",
            "::",
            "0.0.0.0",
        ] {
            assert!(!is_somewhere_else(here.parse().unwrap()), "{here}");
        }
        for elsewhere in ["::ffff:169.254.169.254", "169.254.169.254", "fe80::1", "ff02::1", "224.0.0.1"] {
            assert!(!is_somewhere_else(elsewhere.parse().unwrap()), "{elsewhere}");
        }
        for there in ["10.1.0.5", "::ffff:10.1.0.5", "fd00::1"] {
            assert!(is_somewhere_else(there.parse().unwrap()), "{there}");
        }
    }

    #[test]
    fn a_service_leads_to_its_ready_endpoints_in_turn() {
        let endpoints = json!({"metadata": {"name": "web"}, "subsets": [{
            "addresses": [{"ip": "10.1.0.5"}, {"ip": "10.1.0.6"}],
            "notReadyAddresses": [{"ip": "10.1.0.7"}],
            "ports": [{"name": "http", "port": 8080}, {"name": "admin", "port": 9090}],
        }]});
        let at = |port: &str, turn| {
            let found = endpoint(&endpoints, Scheme::Http, port, turn);
            found.map(|found| (found.host, found.port)).map_err(|status| (status.code, status.message))
        };
        assert_eq!(at("http", 0), Ok(("10.1.0.5".into(), 8080)));
        assert_eq!(at("http", 1), Ok(("10.1.0.6".into(), 8080)));
        assert_eq!(at("admin", 2), Ok(("10.1.0.5".into(), 9090)));
        assert_eq!(at("", 0), Err((503, "no endpoints available for service \"web\"".into())));
        let service = json!({"metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80}]}});
        assert_eq!(port_name(&service, 80).as_deref().ok(), Some("http"));
        let why = port_name(&service, 81).unwrap_err();
        assert_eq!(why.message, "no service port 81 found for service \"web\"");
    }
}
