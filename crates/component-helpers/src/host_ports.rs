//! The host ports that a pod asks for. Pure.

use k8s_openapi::api::core::v1::{Container, PodSpec};

/// A port of the node: protocol, IP address and number.
pub type HostPort = (String, String, i32);

/// The host ports of a pod's main containers and sidecars.
pub fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let sidecar = |container: &&Container| crate::restart_policy::is_sidecar(container);
    let all = spec.containers.iter().chain(spec.init_containers.iter().flatten().filter(sidecar));
    all.flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            let address =
                port.host_ip.clone().filter(|ip| !ip.is_empty()).unwrap_or_else(|| "0.0.0.0".to_owned());
            Some((protocol, address, number))
        })
        .collect()
}

/// Whether two host ports conflict: same number and protocol, on the same address or on all addresses.
pub fn conflict(one: &HostPort, two: &HostPort) -> bool {
    let all = |address: &str| matches!(address, "0.0.0.0" | "::");
    one.0 == two.0 && one.2 == two.2 && (all(&one.1) || all(&two.1) || one.1 == two.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_conflict_on_the_same_address_or_on_all() {
        let port = |ip: &str, number| ("TCP".to_owned(), ip.to_owned(), number);
        assert!(conflict(&port("0.0.0.0", 80), &port("10.0.0.1", 80)));
        assert!(!conflict(&port("10.0.0.2", 80), &port("10.0.0.1", 80)));
        assert!(!conflict(&port("0.0.0.0", 80), &port("0.0.0.0", 81)));
    }
}
