//! Tests of the decisions about EndpointSlices and Endpoints, without a cluster.

use super::endpointslice::{Changes, changes, endpoints_of_slice};
use super::{endpoints, endpointslice_mirroring};
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};
use std::sync::Arc;

fn service(spec: Value) -> Service {
    let mut all = json!({ "clusterIP": "10.0.0.1", "selector": { "app": "web" },
                          "ports": [{ "name": "http", "port": 80, "targetPort": "web" }] });
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    let metadata =
        json!({ "name": "web", "namespace": "default", "uid": "s", "labels": { "tier": "front" } });
    serde_json::from_value(json!({ "metadata": metadata, "spec": all })).unwrap()
}

fn pod(number: usize, ready: bool) -> Arc<Pod> {
    let ready = if ready { "True" } else { "False" };
    let pod = json!({
        "metadata": { "name": format!("p{number}"), "namespace": "default", "uid": format!("u{number:04}") },
        "spec": { "nodeName": "n1", "containers": [
            { "name": "c", "ports": [{ "name": "web", "containerPort": 8080, "protocol": "TCP" }] }
        ] },
        "status": {
            "phase": "Running",
            "podIPs": [{ "ip": format!("10.1.{}.{}", number / 200, number % 200) }],
            "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z" }],
        },
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn owner() -> OwnerReference {
    OwnerReference { uid: "s".into(), ..OwnerReference::default() }
}

fn node() -> Arc<Node> {
    let labels = json!({ "topology.kubernetes.io/zone": "z1" });
    Arc::new(serde_json::from_value(json!({ "metadata": { "name": "n1", "labels": labels } })).unwrap())
}

/// The slices after the changes, as the server would have them.
fn apply(there: Vec<Arc<EndpointSlice>>, changes: Changes, made: &mut usize) -> Vec<Arc<EndpointSlice>> {
    let name = |slice: &EndpointSlice| slice.metadata.name.clone();
    let gone = |slice: &Arc<EndpointSlice>| changes.delete.iter().any(|one| name(one) == name(slice));
    let changed = |slice: &Arc<EndpointSlice>| changes.update.iter().find(|one| name(one) == name(slice));
    let mut slices: Vec<_> = there
        .iter()
        .filter(|slice| !gone(slice))
        .map(|slice| changed(slice).map_or_else(|| slice.clone(), |one| Arc::new(one.clone())))
        .collect();
    for mut slice in changes.create {
        *made += 1;
        slice.metadata.name = Some(format!("web-{made}"));
        slices.push(Arc::new(slice));
    }
    slices
}

fn settled(
    service: &Service,
    pods: &[Arc<Pod>],
    there: Vec<Arc<EndpointSlice>>,
    made: &mut usize,
) -> Vec<Arc<EndpointSlice>> {
    let found = |name: &str| (name == "n1").then(node);
    let slices = apply(there.clone(), changes(service, &owner(), pods, there, found), made);
    let again = changes(service, &owner(), pods, slices.clone(), found);
    assert_eq!(again, Changes::default(), "and then there is nothing to do");
    slices
}

#[test]
fn an_endpoint_tells_all_about_its_pod() {
    let slices = settled(&service(json!({})), &[pod(1, true)], Vec::new(), &mut 0);
    let [slice] = &slices[..] else { panic!("{slices:?}") };
    let json = serde_json::to_value(&**slice).unwrap();
    assert_eq!(
        json["endpoints"][0],
        json!({
            "addresses": ["10.1.0.1"], "nodeName": "n1", "zone": "z1",
            "conditions": { "ready": true, "serving": true, "terminating": false },
            "targetRef": { "kind": "Pod", "namespace": "default", "name": "p1", "uid": "u0001" },
        })
    );
    assert_eq!(json["ports"], json!([{ "name": "http", "port": 8080, "protocol": "TCP" }]));
    assert_eq!(
        json["metadata"]["labels"],
        json!({ "tier": "front", "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" })
    );
    assert_eq!(json["metadata"]["generateName"], "web-");
}

#[test]
fn many_are_packed_and_little_is_written_when_little_changes() {
    let service = service(json!({}));
    let mut made = 0;
    let pods: Vec<_> = (0..250).map(|number| pod(number, true)).collect();
    let slices = settled(&service, &pods, Vec::new(), &mut made);
    let sizes = |slices: &[Arc<EndpointSlice>]| {
        slices.iter().map(|slice| endpoints_of_slice(slice).len()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&slices), [100, 100, 50]);
    // One is deleted and one is created: it takes its slot.
    let mut next: Vec<_> = pods[1..].to_vec();
    next.push(pod(300, true));
    let change = changes(&service, &owner(), &next, slices.clone(), |_| Some(node()));
    assert_eq!((change.create.len(), change.update.len(), change.delete.len()), (0, 1, 0));
    let slices = apply(slices, change, &mut made);
    // One more fits where there is room.
    next.push(pod(301, true));
    let change = changes(&service, &owner(), &next, slices.clone(), |_| Some(node()));
    assert_eq!((change.create.len(), change.update.len()), (0, 1));
    assert_eq!(endpoints_of_slice(&change.update[0]).len(), 51);
    let slices = settled(&service, &[], slices, &mut made);
    assert_eq!(sizes(&slices), [0], "one that says that nothing is there");
    assert!(slices[0].ports.as_ref().is_none_or(Vec::is_empty));
}

#[test]
fn readiness_and_the_end_show() {
    let mut terminating = (*pod(2, true)).clone();
    terminating.metadata.deletion_timestamp =
        Some("2026-01-01T00:00:00Z".parse::<jiff::Timestamp>().unwrap().into());
    let pods = [pod(1, false), Arc::new(terminating)];
    let conditions = |service: &Service| {
        let slices = settled(service, &pods, Vec::new(), &mut 0);
        let conditions = slices
            .iter()
            .flat_map(|slice| endpoints_of_slice(slice).to_vec())
            .filter_map(|one| one.conditions);
        conditions.map(|all| (all.ready, all.serving, all.terminating)).collect::<Vec<_>>()
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(conditions(&service(json!({}))), [(no, no, no), (no, yes, yes)]);
    assert_eq!(
        conditions(&service(json!({ "publishNotReadyAddresses": true }))),
        [(yes, no, no), (yes, yes, yes)]
    );
}

#[test]
fn the_object_has_addresses_by_their_ports() {
    let mut other = (*pod(3, true)).clone();
    other.spec.as_mut().unwrap().containers[0].ports.as_mut().unwrap()[0].container_port = 9090;
    let pods = [pod(1, true), pod(2, false), Arc::new(other)];
    let service = service(json!({}));
    let wanted = endpoints::wanted(&service, &pods, None).unwrap();
    let json = serde_json::to_value(&wanted).unwrap();
    let ips = |pointer: &str| json.pointer(pointer).map(|found| found["ip"].clone());
    assert_eq!(json["subsets"].as_array().unwrap().len(), 2);
    assert_eq!(ips("/subsets/0/addresses/0"), Some(json!("10.1.0.1")));
    assert_eq!(ips("/subsets/0/notReadyAddresses/0"), Some(json!("10.1.0.2")));
    assert_eq!(ips("/subsets/1/addresses/0"), Some(json!("10.1.0.3")));
    assert_eq!(json["subsets"][1]["ports"], json!([{ "name": "http", "port": 9090, "protocol": "TCP" }]));
    assert_eq!(endpoints::wanted(&service, &pods, Some(&wanted)), None, "at rest, silent");
    let many: Vec<_> = (0..1100).map(|number| pod(number, true)).collect();
    let full = endpoints::wanted(&service, &many, None).unwrap();
    assert_eq!(full.subsets.as_ref().unwrap()[0].addresses.as_ref().unwrap().len(), 1000);
    assert_eq!(
        full.metadata.annotations.as_ref().unwrap()["endpoints.kubernetes.io/over-capacity"],
        "truncated"
    );
}

#[test]
fn what_was_written_by_hand_is_mirrored_for_a_service_without_selector() {
    let endpoints: Endpoints = serde_json::from_value(json!({
        "metadata": { "name": "db", "namespace": "default", "uid": "e" },
        "subsets": [{ "addresses": [{ "ip": "10.9.0.1" }, { "ip": "fd00::1" }],
                      "notReadyAddresses": [{ "ip": "10.9.0.2" }], "ports": [{ "port": 5432, "protocol": "TCP" }] }],
    }))
    .unwrap();
    let without: Service =
        serde_json::from_value(json!({ "metadata": { "name": "db" }, "spec": {} })).unwrap();
    assert!(endpointslice_mirroring::is_wanted(&endpoints, Some(&without)));
    assert!(
        !endpointslice_mirroring::is_wanted(&endpoints, None)
            && !endpointslice_mirroring::is_wanted(&endpoints, Some(&service(json!({}))))
    );
    let (create, update, delete) = endpointslice_mirroring::changes(&endpoints, &owner(), Vec::new());
    let families: Vec<_> =
        create.iter().map(|slice| (&*slice.address_type, endpoints_of_slice(slice).len())).collect();
    assert_eq!(families, [("IPv4", 2), ("IPv6", 1)]);
    assert!(update.is_empty() && delete.is_empty());
    let there = create.into_iter().map(Arc::new).collect();
    assert_eq!(
        endpointslice_mirroring::changes(&endpoints, &owner(), there),
        (Vec::new(), Vec::new(), Vec::new())
    );
}
