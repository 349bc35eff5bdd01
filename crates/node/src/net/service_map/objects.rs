//! The table from what the API holds: pure.

use super::{Endpoint, Port, Protocol, Service, ServiceAddress, ServiceMap};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::discovery::v1::{self as discovery, EndpointSlice};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The label by which a slice says whose it is.
const SERVICE_OF_SLICE: &str = "kubernetes.io/service-name";
/// How long a client keeps its endpoint where the Service does not say.
const AFFINITY_SECONDS: i32 = 10800;

impl ServiceMap {
    /// The table of these Services and slices. What cannot be reached by IPv4 is left out, and so is what makes no sense: the API
    /// has validated it, and one bad object must not hide the others.
    pub fn from_objects<S: Borrow<core::Service>, E: Borrow<EndpointSlice>>(
        services: impl IntoIterator<Item = S>,
        slices: impl IntoIterator<Item = E>,
    ) -> Self {
        let slices: Vec<E> = slices.into_iter().collect();
        let mut of_service: HashMap<(&str, &str), Vec<&EndpointSlice>> = HashMap::new();
        for slice in slices.iter().map(Borrow::borrow).filter(|slice| slice.address_type == "IPv4") {
            let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
            if let Some(name) = slice.metadata.labels.as_ref().and_then(|labels| labels.get(SERVICE_OF_SLICE))
            {
                of_service.entry((namespace, name)).or_default().push(slice);
            }
        }
        let mut table: Vec<Service> = services
            .into_iter()
            .filter_map(|service| {
                let service = service.borrow();
                let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
                let name = service.metadata.name.as_deref()?;
                let slices = of_service.get(&(namespace, name)).map(Vec::as_slice).unwrap_or_default();
                one(namespace, name, service.spec.as_ref()?, slices)
            })
            .collect();
        // The order of lists is nobody's wish: the same objects are the same table.
        table.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        Self { services: table }
    }
}

fn one(namespace: &str, name: &str, spec: &core::ServiceSpec, slices: &[&EndpointSlice]) -> Option<Service> {
    let reached = reached(spec)?;
    let sticky = spec.session_affinity.as_deref() == Some("ClientIP");
    let seconds =
        spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    Some(Service {
        namespace: namespace.into(),
        name: name.into(),
        ports: spec.ports.iter().flatten().filter_map(|port| self::port(port, slices)).collect(),
        endpoints: if matches!(reached, ServiceAddress::ExternalName(_)) {
            Vec::new()
        } else {
            endpoints(slices)
        },
        affinity: sticky.then(|| seconds.unwrap_or(AFFINITY_SECONDS).max(1).cast_unsigned()),
        reached,
    })
}

fn reached(spec: &core::ServiceSpec) -> Option<ServiceAddress> {
    if spec.type_.as_deref() == Some("ExternalName") {
        return spec.external_name.clone().map(ServiceAddress::ExternalName);
    }
    let mut addresses = spec.cluster_ip.iter().chain(spec.cluster_ips.iter().flatten());
    if spec.cluster_ip.as_deref() == Some("None") {
        return Some(ServiceAddress::Headless);
    }
    addresses.find_map(|address| address.parse().ok()).map(ServiceAddress::ClusterIp)
}

fn port(port: &core::ServicePort, slices: &[&EndpointSlice]) -> Option<Port> {
    let name = port.name.clone().unwrap_or_default();
    let protocol = protocol(port.protocol.as_deref())?;
    let number = u16::try_from(port.port).ok().filter(|number| *number > 0)?;
    let all = |wanted: fn(&discovery::Endpoint) -> bool| -> Vec<SocketAddrV4> {
        let mut found: Vec<_> = slices
            .iter()
            .flat_map(|slice| {
                let here = ports(slice).into_iter().find(|(n, p, _)| (n, p) == (&name, &protocol));
                let endpoints = slice.endpoints.iter().flatten().filter(move |endpoint| wanted(endpoint));
                here.into_iter().flat_map(move |(_, _, number)| {
                    endpoints
                        .clone()
                        .filter_map(move |endpoint| Some(SocketAddrV4::new(address(endpoint)?, number)))
                })
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    let mut backends = all(ready);
    if backends.is_empty() {
        backends = all(ends_but_serves);
    }
    Some(Port { name, protocol, number, backends })
}

fn endpoints(slices: &[&EndpointSlice]) -> Vec<Endpoint> {
    let mut found: Vec<Endpoint> = slices
        .iter()
        .flat_map(|slice| {
            let ports = ports(slice);
            slice.endpoints.iter().flatten().filter(|endpoint| ready(endpoint)).filter_map(move |endpoint| {
                Some(Endpoint {
                    address: address(endpoint)?,
                    hostname: endpoint.hostname.clone(),
                    ports: ports.clone(),
                })
            })
        })
        .collect();
    found.sort_by(|a, b| (a.address, &a.hostname).cmp(&(b.address, &b.hostname)));
    // Endpoints whose named ports differ in number lie in slices of their own, and one whose ports do may lie in two.
    found.dedup_by(|again, first| {
        let same = (again.address, &again.hostname) == (first.address, &first.hostname);
        if same {
            let more: Vec<_> = again.ports.drain(..).filter(|port| !first.ports.contains(port)).collect();
            first.ports.extend(more);
        }
        same
    });
    found
}

fn ports(slice: &EndpointSlice) -> Vec<(String, Protocol, u16)> {
    let all = slice.ports.iter().flatten();
    all.filter_map(|port| {
        let number = u16::try_from(port.port?).ok().filter(|number| *number > 0)?;
        Some((port.name.clone().unwrap_or_default(), protocol(port.protocol.as_deref())?, number))
    })
    .collect()
}

fn address(endpoint: &discovery::Endpoint) -> Option<Ipv4Addr> {
    endpoint.addresses.first()?.parse().ok()
}

/// Unsaid is ready.
fn ready(endpoint: &discovery::Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
}

fn ends_but_serves(endpoint: &discovery::Endpoint) -> bool {
    endpoint.conditions.as_ref().is_some_and(|conditions| {
        conditions.serving.unwrap_or(false) && conditions.terminating.unwrap_or(false)
    })
}

fn protocol(text: Option<&str>) -> Option<Protocol> {
    match text.unwrap_or("TCP") {
        "TCP" => Some(Protocol::Tcp),
        "UDP" => Some(Protocol::Udp),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
