//! EndpointSlice mirroring: the slices of Endpoints that were written by hand, for a Service without a selector.

use super::endpointslice::{
    MANAGED_BY, SERVICE_LABEL, TRIGGER_TIME, endpoint_ports, endpoints_of_slice, ports_of,
};
use super::pods::{FAMILIES, Port};
use crate::pods;
use k8s_openapi::api::core::v1::{EndpointAddress, Endpoints, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

pub(super) const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// The most addresses of a subset that are mirrored.
const MAX_ENDPOINTS_PER_SUBSET: usize = 1000;
/// Opts out of mirroring; and marks a leader election lock.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether Endpoints are mirrored, given the Service of that name.
pub(super) fn is_wanted(endpoints: &Endpoints, service: Option<&Service>) -> bool {
    let skipped = endpoints.metadata.labels.as_ref().and_then(|labels| labels.get(SKIP));
    let locks = endpoints.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(LEADER));
    let selects = |service: &Service| service.spec.as_ref().is_some_and(|spec| spec.selector.is_some());
    skipped.is_none_or(|skipped| skipped != "true")
        && !locks
        && service.is_some_and(|service| !selects(service))
}

/// The slices to create, to update and to delete.
pub(super) fn changes(
    endpoints: &Endpoints,
    owner: &OwnerReference,
    there: Vec<Arc<EndpointSlice>>,
) -> (Vec<EndpointSlice>, Vec<EndpointSlice>, Vec<Arc<EndpointSlice>>) {
    let mut groups: BTreeMap<(&str, Vec<Port>), Vec<Endpoint>> = BTreeMap::new();
    for subset in endpoints.subsets.iter().flatten() {
        let mut ports: Vec<Port> = subset
            .ports
            .iter()
            .flatten()
            .map(|port| Port {
                name: port.name.clone().unwrap_or_default(),
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
                number: port.port,
                app_protocol: port.app_protocol.clone(),
            })
            .collect();
        ports.sort();
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let not_ready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        for (address, ready) in ready.chain(not_ready).take(MAX_ENDPOINTS_PER_SUBSET) {
            let Ok(ip) = address.ip.parse::<IpAddr>() else { continue };
            let family = FAMILIES[usize::from(ip.is_ipv6())];
            groups.entry((family, ports.clone())).or_default().push(endpoint(address, &ip, ready));
        }
    }
    let (labels, annotations) = labels_and_annotations(endpoints);
    let (mut create, mut update, mut delete) = (Vec::new(), Vec::new(), Vec::new());
    for slice in there {
        let key = FAMILIES.into_iter().find(|family| *family == slice.address_type);
        let wanted = key.and_then(|family| groups.remove(&(family, ports_of(&slice))));
        let Some(mut wanted) = wanted else {
            delete.push(slice);
            continue;
        };
        let order = |endpoints: &mut Vec<Endpoint>| {
            endpoints.sort_by(|one, other| one.addresses.cmp(&other.addresses))
        };
        let mut current = endpoints_of_slice(&slice).to_vec();
        order(&mut wanted);
        order(&mut current);
        let old_annotations = slice.metadata.annotations.clone().unwrap_or_default();
        if wanted != current
            || slice.metadata.labels.as_ref() != Some(&labels)
            || old_annotations != annotations
        {
            let metadata = ObjectMeta {
                labels: Some(labels.clone()),
                annotations: Some(annotations.clone()),
                ..slice.metadata.clone()
            };
            update.push(EndpointSlice { metadata, endpoints: Some(wanted), ..(*slice).clone() });
        }
    }
    for ((family, ports), endpoints_of) in groups {
        let metadata = ObjectMeta {
            generate_name: Some(pods::prefix(endpoints.metadata.name.as_deref().unwrap_or_default())),
            namespace: endpoints.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            annotations: Some(annotations.clone()),
            owner_references: Some(vec![owner.clone()]),
            ..ObjectMeta::default()
        };
        let (address_type, ports) = (family.to_owned(), Some(endpoint_ports(&ports)));
        create.push(EndpointSlice { metadata, address_type, endpoints: Some(endpoints_of), ports });
    }
    (create, update, delete)
}

fn endpoint(address: &EndpointAddress, ip: &IpAddr, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.clone().filter(|hostname| !hostname.is_empty()),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}

type Map = BTreeMap<String, String>;

/// The labels and annotations of the slices.
fn labels_and_annotations(endpoints: &Endpoints) -> (Map, Map) {
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_LABEL.to_owned(), endpoints.metadata.name.clone().unwrap_or_default());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let mut annotations = endpoints.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(TRIGGER_TIME);
    annotations.remove(LAST_APPLIED);
    (labels, annotations)
}
