//! Whether a pod is an endpoint of a Service, and with which addresses and ports.

use crate::pods;
use k8s_openapi::api::core::v1::{ContainerPort, Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::net::IpAddr;

/// The address types of EndpointSlices.
pub(super) const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

/// The address types of a Service.
pub(super) fn families(service: &Service) -> Vec<&'static str> {
    let spec = service.spec.as_ref();
    let named = spec.and_then(|spec| spec.ip_families.as_ref()).into_iter().flatten();
    let known: Vec<_> = named.filter_map(|name| FAMILIES.into_iter().find(|family| family == name)).collect();
    if known.is_empty() { vec![FAMILIES[0]] } else { known }
}

/// Whether a Service has no address of its own.
pub(super) fn is_headless(service: &Service) -> bool {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref());
    matches!(address, None | Some("" | "None"))
}

/// Whether a pod can be an endpoint at all: it has an address and is not terminal.
pub(super) fn is_reachable(pod: &Pod) -> bool {
    !pods::has_ended(pod) && addresses(pod).next().is_some()
}

fn addresses(pod: &Pod) -> impl Iterator<Item = IpAddr> {
    let status = pod.status.as_ref();
    let all =
        status.into_iter().flat_map(|status| status.pod_ips.iter().flatten()).map(|one| one.ip.as_str());
    let first = status.and_then(|status| status.pod_ip.as_deref());
    let mut found: Vec<IpAddr> = all.chain(first).filter_map(|text| text.parse().ok()).collect();
    found.dedup();
    found.into_iter()
}

/// The pod's address of one family.
pub(super) fn address(pod: &Pod, family: &str) -> Option<String> {
    let fits = |address: &IpAddr| address.is_ipv6() == (family == FAMILIES[1]);
    addresses(pod).find(fits).map(|address| address.to_string())
}

/// The hostname of the endpoint, if the pod has one in the Service.
pub(super) fn hostname(pod: &Pod, service: &Service) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let hostname = spec.hostname.clone().filter(|hostname| !hostname.is_empty())?;
    (spec.subdomain == service.metadata.name).then_some(hostname)
}

/// A port of the Service, resolved on a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) number: i32,
    pub(super) app_protocol: Option<String>,
}

/// The ports of the Service on a pod, sorted; named ports that no container has are left out.
pub(super) fn ports(service: &Service, pod: &Pod) -> Vec<Port> {
    let all = service.spec.as_ref().and_then(|spec| spec.ports.as_ref()).into_iter().flatten();
    let mut ports: Vec<Port> = all
        .filter_map(|port| {
            Some(Port {
                name: port.name.clone().unwrap_or_default(),
                protocol: protocol(port).to_owned(),
                number: number(port, pod)?,
                app_protocol: port.app_protocol.clone(),
            })
        })
        .collect();
    ports.sort();
    ports
}

fn protocol(port: &ServicePort) -> &str {
    port.protocol.as_deref().unwrap_or("TCP")
}

fn number(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match &port.target_port {
        None => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let spec = pod.spec.as_ref()?;
            let sidecars = spec.init_containers.iter().flatten();
            let sidecars = sidecars.filter(|init| init.restart_policy.as_deref() == Some("Always"));
            let fits = |candidate: &&ContainerPort| {
                candidate.name.as_ref() == Some(name)
                    && candidate.protocol.as_deref().unwrap_or("TCP") == protocol(port)
            };
            let mut ports =
                spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
            ports.find(fits).map(|found| found.container_port)
        }
    }
}

/// The last change trigger time, as far as it is known: when the Service was created, or when a pod became ready or unready or
/// was deleted.
pub(super) fn last_change<'a>(service: &Service, pods: impl Iterator<Item = &'a Pod>) -> Option<String> {
    let changed = pods.filter_map(|pod| {
        let ready = pods::condition(pod, "Ready").and_then(|ready| ready.last_transition_time.as_ref());
        pod.metadata.deletion_timestamp.as_ref().or(ready)
    });
    let all = changed.chain(service.metadata.creation_timestamp.as_ref());
    all.map(|time| time.0).max().map(|time| time.to_string())
}
