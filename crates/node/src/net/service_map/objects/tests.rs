use super::*;
use serde_json::{Value, json};

fn service(spec: Value) -> core::Service {
    serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})).unwrap()
}

fn slice(endpoints: Value, ports: Value) -> EndpointSlice {
    serde_json::from_value(json!({
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
    }))
    .unwrap()
}

fn table(spec: Value, slices: &[EndpointSlice]) -> Service {
    ServiceMap::from_objects([service(spec)], slices).services.remove(0)
}

#[test]
fn connections_go_to_ready_endpoints_at_the_port_of_the_same_name() {
    let slice = slice(
        json!([
            {"addresses": ["10.244.0.6"]},
            {"addresses": ["10.244.0.5"], "conditions": {"ready": true}},
            {"addresses": ["10.244.0.7"], "conditions": {"ready": false}},
        ]),
        json!([{"name": "http", "port": 8080}, {"name": "dns", "port": 5353, "protocol": "UDP"}]),
    );
    let spec = json!({"clusterIP": "10.96.1.1", "ports": [
        {"name": "http", "port": 80},
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "other", "port": 81},
        {"name": "sctp", "port": 82, "protocol": "SCTP"},
    ]});
    let service = table(spec, &[slice]);
    assert_eq!(service.reached, ServiceAddress::ClusterIp(Ipv4Addr::new(10, 96, 1, 1)));
    assert_eq!(service.ports.len(), 3, "SCTP is not carried");
    let addresses =
        |at: usize| service.ports[at].backends.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(addresses(0), ["10.244.0.5:8080", "10.244.0.6:8080"]);
    assert_eq!(addresses(1), ["10.244.0.5:5353", "10.244.0.6:5353"]);
    assert!(addresses(2).is_empty());
}

#[test]
fn who_ends_but_serves_is_taken_only_where_nobody_is_ready() {
    let ending = json!({"addresses": ["10.244.0.7"], "conditions": {"ready": false, "serving": true, "terminating": true}});
    let ports = json!([{"port": 1}]);
    let spec = json!({"clusterIP": "10.96.1.1", "ports": [{"port": 1}]});
    let alone = table(spec.clone(), &[slice(json!([ending]), ports.clone())]);
    assert_eq!(alone.ports[0].backends.len(), 1);
    assert!(alone.endpoints.is_empty(), "it has no name any more");
    let both = table(spec, &[slice(json!([ending, {"addresses": ["10.244.0.8"]}]), ports)]);
    assert_eq!(both.ports[0].backends, [SocketAddrV4::new(Ipv4Addr::new(10, 244, 0, 8), 1)]);
}

#[test]
fn headless_endpoints_have_names() {
    let endpoints =
        json!([{"addresses": ["10.244.0.9"], "hostname": "web-0"}, {"addresses": ["10.244.0.10"]}]);
    let service =
        table(json!({"clusterIP": "None"}), &[slice(endpoints, json!([{"name": "pg", "port": 5432}]))]);
    assert_eq!(service.reached, ServiceAddress::Headless);
    assert_eq!(service.endpoints.iter().map(Endpoint::label).collect::<Vec<_>>(), ["web-0", "10-244-0-10"]);
    assert_eq!(service.endpoints[0].ports, [("pg".into(), Protocol::Tcp, 5432)]);
}

#[test]
fn an_endpoint_in_two_slices_is_one() {
    let endpoints = json!([{"addresses": ["10.244.0.9"], "hostname": "web-0"}]);
    let slices = [
        slice(endpoints.clone(), json!([{"name": "a", "port": 1}])),
        slice(endpoints, json!([{"name": "b", "port": 2}])),
    ];
    let service = table(json!({"clusterIP": "None"}), &slices);
    assert_eq!(service.endpoints.len(), 1);
    assert_eq!(service.endpoints[0].ports.len(), 2);
}

#[test]
fn other_ways_of_being_reached() {
    let named = table(json!({"type": "ExternalName", "externalName": "db.example.com"}), &[]);
    assert_eq!(named.reached, ServiceAddress::ExternalName("db.example.com".into()));
    let both = table(json!({"clusterIP": "fd00::1", "clusterIPs": ["fd00::1", "10.96.0.7"]}), &[]);
    assert_eq!(both.reached, ServiceAddress::ClusterIp(Ipv4Addr::new(10, 96, 0, 7)));
    assert!(
        ServiceMap::from_objects([service(json!({"ports": [{"port": 1}]}))], &[] as &[EndpointSlice])
            .services
            .is_empty()
    );
}

#[test]
fn clients_are_kept_for_as_long_as_the_service_says() {
    let spec = |config: Value| json!({"clusterIP": "10.96.1.1", "sessionAffinity": "ClientIP", "sessionAffinityConfig": config});
    assert_eq!(table(spec(json!({"clientIP": {"timeoutSeconds": 5}})), &[]).affinity, Some(5));
    assert_eq!(table(spec(Value::Null), &[]).affinity, Some(10800));
    assert_eq!(table(json!({"clusterIP": "10.96.1.1", "sessionAffinity": "None"}), &[]).affinity, None);
}

#[test]
fn the_api_is_there_whether_or_not_it_published_itself() {
    let address = Ipv4Addr::new(10, 96, 0, 1);
    let made = ServiceMap::default().with_api(address);
    assert!(made.services[0].is_api());
    let again = made.clone().with_api(Ipv4Addr::new(10, 96, 0, 2));
    assert_eq!(again, made, "what is published is kept");
}
