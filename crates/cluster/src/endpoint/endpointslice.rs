//! EndpointSlices of a Service, at most a hundred endpoints each. An endpoint stays in the slice that it is in, so that
//! little is written when little changes.

use super::pods::{Port, address, families, hostname, is_headless, is_reachable, ports};
use crate::pods;
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most endpoints in one slice.
const MAX_ENDPOINTS_PER_SLICE: usize = 100;
/// The Service of a slice.
pub(super) const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// The controller that manages a slice.
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";
/// Marks the slices of a headless Service.
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";
/// When the change happened that caused the update.
pub(super) const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The changes to write.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
    /// A node that a pod is bound to and that does not exist: the pod is left out for now.
    pub(super) missing_node: Option<String>,
}

/// Endpoints by pod UID and address.
type Wanted = BTreeMap<(String, String), Endpoint>;

/// The changes that make the slices show these pods.
pub(super) fn changes(
    service: &Service,
    owner: &OwnerReference,
    pods: &[Arc<Pod>],
    slices: Vec<Arc<EndpointSlice>>,
    node: impl Fn(&str) -> Option<Arc<Node>>,
) -> Changes {
    let mut changes = Changes::default();
    let families = families(service);
    let is_ours = |slice: &EndpointSlice| {
        slice.metadata.owner_references.iter().flatten().any(|one| one.uid == owner.uid)
    };
    let (mine, others): (Vec<_>, Vec<_>) = slices
        .into_iter()
        .partition(|slice| families.contains(&slice.address_type.as_str()) && is_ours(slice));
    changes.delete = others;
    for family in families {
        let there = mine.iter().filter(|slice| slice.address_type == family).cloned().collect();
        let mut by_ports: BTreeMap<Vec<Port>, Wanted> = BTreeMap::new();
        for pod in pods.iter().filter(|pod| is_reachable(pod)) {
            let Some(address) = address(pod, family) else { continue };
            let name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
            let node = node(name);
            if node.is_none() && !publishes_all(service) {
                changes.missing_node = Some(name.to_owned());
                continue;
            }
            let key = (pod.metadata.uid.clone().unwrap_or_default(), address.clone());
            let endpoint = endpoint(service, pod, address, node.as_deref());
            by_ports.entry(ports(service, pod)).or_default().insert(key, endpoint);
        }
        reconcile_address_type(&mut changes, service, owner, family, there, by_ports);
    }
    changes
}

fn publishes_all(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

fn endpoint(service: &Service, pod: &Pod, address: String, node: Option<&Node>) -> Endpoint {
    let (serving, terminating) = (pods::is_ready(pod), pods::is_terminating(pod));
    let zone = node.and_then(|node| node.metadata.labels.as_ref()?.get("topology.kubernetes.io/zone"));
    Endpoint {
        addresses: vec![address],
        conditions: Some(EndpointConditions {
            ready: Some(publishes_all(service) || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: hostname(pod, service),
        node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).filter(|name| !name.is_empty()),
        target_ref: Some(reference(pod)),
        zone: zone.filter(|zone| !zone.is_empty()).cloned(),
        ..Endpoint::default()
    }
}

/// The endpoints of a slice.
pub(super) fn endpoints_of_slice(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

/// The reference to a pod.
pub(super) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The labels of a Service's slices.
fn labels(service: &Service) -> BTreeMap<String, String> {
    let reserved = [SERVICE_LABEL, MANAGED_BY, HEADLESS];
    let own = service.metadata.labels.iter().flatten().filter(|(key, _)| !reserved.contains(&key.as_str()));
    let mut labels: BTreeMap<_, _> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_LABEL.to_owned(), service.metadata.name.clone().unwrap_or_default());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

/// The slice's ports in the order in which they are compared.
pub(super) fn ports_of(slice: &EndpointSlice) -> Vec<Port> {
    let all = slice.ports.iter().flatten().map(|port| Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_default(),
        number: port.port.unwrap_or_default(),
        app_protocol: port.app_protocol.clone(),
    });
    let mut ports: Vec<Port> = all.collect();
    ports.sort();
    ports
}

pub(super) fn endpoint_ports(ports: &[Port]) -> Vec<EndpointPort> {
    let all = ports.iter().map(|port| EndpointPort {
        name: Some(port.name.clone()),
        protocol: Some(port.protocol.clone()),
        port: Some(port.number),
        app_protocol: port.app_protocol.clone(),
    });
    all.collect()
}

fn reconcile_address_type(
    changes: &mut Changes,
    service: &Service,
    owner: &OwnerReference,
    family: &str,
    there: Vec<Arc<EndpointSlice>>,
    by_ports: BTreeMap<Vec<Port>, Wanted>,
) {
    let labels = labels(service);
    let make = |ports: &[Port], endpoints: Vec<Endpoint>| EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(pods::prefix(service.metadata.name.as_deref().unwrap_or_default())),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            owner_references: Some(vec![owner.clone()]),
            ..ObjectMeta::default()
        },
        address_type: family.to_owned(),
        endpoints: Some(endpoints),
        ports: Some(endpoint_ports(ports)),
    };
    let mut spare: Vec<Arc<EndpointSlice>> = Vec::new();
    let mut made: Vec<EndpointSlice> = Vec::new();
    let mut kept = 0;
    let mut existing: BTreeMap<Vec<Port>, Vec<Arc<EndpointSlice>>> = BTreeMap::new();
    for slice in there {
        existing.entry(ports_of(&slice)).or_default().push(slice);
    }
    for (ports, wanted) in by_ports {
        let packed = pack(existing.remove(&ports).unwrap_or_default(), wanted, &labels);
        kept += packed.kept + packed.update.len();
        changes.update.extend(packed.update);
        spare.extend(packed.empty);
        made.extend(packed.more.into_iter().map(|endpoints| make(&ports, endpoints)));
    }
    spare.extend(existing.into_values().flatten());
    if kept == 0 && made.is_empty() {
        // There is always at least one slice, as a placeholder.
        let as_it_is = |slice: &Arc<EndpointSlice>| {
            endpoints_of_slice(slice).is_empty()
                && slice.ports.as_ref().is_none_or(Vec::is_empty)
                && slice.metadata.labels.as_ref() == Some(&labels)
        };
        match spare.iter().position(as_it_is) {
            Some(place) => drop(spare.remove(place)),
            None => made.push(make(&[], Vec::new())),
        }
    }
    // Updates a slice rather than deleting one and creating another.
    let reused = spare.len().min(made.len());
    for (old, new) in spare.drain(..reused).zip(made.drain(..reused)) {
        changes.update.push(EndpointSlice { metadata: relabelled(&old, &labels), ..new });
    }
    changes.delete.extend(spare);
    changes.create.extend(made);
}

fn relabelled(slice: &EndpointSlice, labels: &BTreeMap<String, String>) -> ObjectMeta {
    ObjectMeta { labels: Some(labels.clone()), ..slice.metadata.clone() }
}

#[derive(Debug, Default)]
struct Packed {
    /// The number of slices that stay unchanged.
    kept: usize,
    update: Vec<EndpointSlice>,
    /// Slices without endpoints left.
    empty: Vec<Arc<EndpointSlice>>,
    /// Endpoints for new slices.
    more: Vec<Vec<Endpoint>>,
}

/// Distributes the wanted endpoints over the slices: first those that are in one already, then into slices that change anyway,
/// the fullest first; the rest into one slice that has just enough room, or into new ones.
fn pack(there: Vec<Arc<EndpointSlice>>, mut wanted: Wanted, labels: &BTreeMap<String, String>) -> Packed {
    let mut packed = Packed::default();
    let mut unchanged: Vec<Arc<EndpointSlice>> = Vec::new();
    for slice in there {
        let mut endpoints = Vec::with_capacity(endpoints_of_slice(&slice).len());
        for old in endpoints_of_slice(&slice) {
            let uid = old.target_ref.as_ref().and_then(|target| target.uid.clone()).unwrap_or_default();
            let address = old.addresses.first().cloned().unwrap_or_default();
            endpoints.extend(wanted.remove(&(uid, address)));
        }
        if endpoints.is_empty() {
            packed.empty.push(slice);
        } else if endpoints != endpoints_of_slice(&slice) || slice.metadata.labels.as_ref() != Some(labels) {
            let metadata = relabelled(&slice, labels);
            packed.update.push(EndpointSlice { metadata, endpoints: Some(endpoints), ..(*slice).clone() });
        } else {
            unchanged.push(slice);
        }
    }
    let mut left: Vec<Endpoint> = wanted.into_values().collect();
    packed.update.sort_by_key(|slice| std::cmp::Reverse(endpoints_of_slice(slice).len()));
    for slice in &mut packed.update {
        let room = MAX_ENDPOINTS_PER_SLICE.saturating_sub(endpoints_of_slice(slice).len()).min(left.len());
        slice.endpoints.get_or_insert_default().extend(left.drain(..room));
    }
    if !left.is_empty() && left.len() < MAX_ENDPOINTS_PER_SLICE {
        let fits = |slice: &Arc<EndpointSlice>| {
            endpoints_of_slice(slice).len() + left.len() <= MAX_ENDPOINTS_PER_SLICE
        };
        let fullest = (0..unchanged.len())
            .filter(|place| fits(&unchanged[*place]))
            .max_by_key(|place| endpoints_of_slice(&unchanged[*place]).len());
        if let Some(place) = fullest {
            let mut slice = (*unchanged.remove(place)).clone();
            slice.endpoints.get_or_insert_default().append(&mut left);
            packed.update.push(slice);
        }
    }
    packed.kept = unchanged.len();
    packed.more = left.chunks(MAX_ENDPOINTS_PER_SLICE).map(<[Endpoint]>::to_vec).collect();
    packed
}
