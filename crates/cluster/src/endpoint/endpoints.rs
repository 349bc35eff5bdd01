//! The Endpoints of a Service: all its endpoints in one object, for clients that do not read EndpointSlices.

use super::endpointslice::{HEADLESS, TRIGGER_TIME, reference};
use super::pods::{Port, address, families, hostname, is_headless, is_reachable, ports};
use crate::pods;
use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The controller that manages the object.
pub(super) const MANAGED_BY: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");
/// Marks an object that does not hold all endpoints.
const OVER_CAPACITY: (&str, &str) = ("endpoints.kubernetes.io/over-capacity", "truncated");
/// The most addresses in the object.
const MAX_CAPACITY: usize = 1000;

/// The object to write, if it differs.
pub(super) fn wanted(service: &Service, pods: &[Arc<Pod>], there: Option<&Endpoints>) -> Option<Endpoints> {
    let (subsets, truncated) = subsets(service, pods);
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    if let Some(there) = there {
        let says_truncated =
            there.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(OVER_CAPACITY.0));
        let same = there.subsets.as_deref().unwrap_or_default() == subsets
            && there.metadata.labels.as_ref() == Some(&labels)
            && says_truncated == truncated;
        if same {
            return None;
        }
    }
    let mut metadata = there.map_or_else(
        || ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        |there| there.metadata.clone(),
    );
    metadata.labels = Some(labels);
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.remove(OVER_CAPACITY.0);
    annotations.remove(TRIGGER_TIME);
    annotations.extend(truncated.then(|| (OVER_CAPACITY.0.to_owned(), OVER_CAPACITY.1.to_owned())));
    let changed = super::pods::last_change(service, pods.iter().map(|pod| &**pod));
    annotations.extend(changed.map(|at| (TRIGGER_TIME.to_owned(), at)));
    Some(Endpoints { metadata, subsets: (!subsets.is_empty()).then_some(subsets) })
}

/// The addresses by the ports they have, and whether some had to be left out.
fn subsets(service: &Service, pods: &[Arc<Pod>]) -> (Vec<EndpointSubset>, bool) {
    let spec = service.spec.as_ref();
    let all = spec.and_then(|spec| spec.publish_not_ready_addresses) == Some(true);
    let has_ports = spec.is_some_and(|spec| spec.ports.as_ref().is_some_and(|ports| !ports.is_empty()));
    let Some(family) = families(service).first().copied() else { return (Vec::new(), false) };
    type Group = (Vec<EndpointAddress>, Vec<EndpointAddress>);
    let mut groups: BTreeMap<Vec<Port>, Group> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| is_reachable(pod) && (all || !pods::is_terminating(pod))) {
        let Some(ip) = address(pod, family) else { continue };
        let ports = ports(service, pod);
        if ports.is_empty() && (has_ports || !is_headless(service)) {
            continue;
        }
        let address = EndpointAddress {
            ip,
            hostname: hostname(pod, service),
            node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            target_ref: Some(reference(pod)),
        };
        let (ready, not_ready) = groups.entry(ports).or_default();
        if all || pods::is_ready(pod) { ready.push(address) } else { not_ready.push(address) }
    }
    let total: usize = groups.values().map(|(ready, not_ready)| ready.len() + not_ready.len()).sum();
    let mut room = MAX_CAPACITY;
    // Those that are ready first, if there is not room for all.
    let mut keep = |mut addresses: Vec<EndpointAddress>| {
        addresses.sort_by(|one, other| one.ip.cmp(&other.ip));
        addresses.truncate(room);
        room -= addresses.len();
        (!addresses.is_empty()).then_some(addresses)
    };
    let ready: Vec<_> = groups.iter_mut().map(|(_, (ready, _))| keep(std::mem::take(ready))).collect();
    let subsets = groups.into_iter().zip(ready).map(|((ports, (_, not_ready)), addresses)| EndpointSubset {
        addresses,
        not_ready_addresses: keep(not_ready),
        ports: (!ports.is_empty()).then(|| ports.iter().map(port).collect()),
    });
    (subsets.collect(), total > MAX_CAPACITY)
}

fn port(port: &Port) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone()).filter(|name| !name.is_empty()),
        port: port.number,
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
    }
}
