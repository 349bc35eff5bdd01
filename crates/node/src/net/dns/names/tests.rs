use super::super::packet;
use super::*;
use crate::net::Port;
use std::net::SocketAddrV4;

fn endpoint(last: u8, hostname: Option<&str>) -> Endpoint {
    Endpoint {
        address: Ipv4Addr::new(10, 244, 0, last),
        hostname: hostname.map(Into::into),
        ports: vec![("pg".into(), Protocol::Tcp, 5432)],
    }
}

fn service(name: &str, reached: ServiceAddress, endpoints: Vec<Endpoint>) -> Service {
    let backends = endpoints.iter().map(|endpoint| SocketAddrV4::new(endpoint.address, 5432)).collect();
    let ports = vec![Port { name: "pg".into(), protocol: Protocol::Tcp, number: 80, backends }];
    Service { namespace: "shop".into(), name: name.into(), reached, ports, endpoints, affinity: None }
}

fn names() -> Names {
    let services = vec![
        service("web", ServiceAddress::ClusterIp(Ipv4Addr::new(10, 96, 1, 1)), vec![endpoint(5, None)]),
        service("db", ServiceAddress::Headless, vec![endpoint(6, Some("db-0")), endpoint(7, Some("db-1"))]),
        service("empty", ServiceAddress::Headless, vec![]),
        service("alias", ServiceAddress::ExternalName("Web.shop.svc.cluster.local.".into()), vec![]),
        service("out", ServiceAddress::ExternalName("db.example.com".into()), vec![]),
        service("loop", ServiceAddress::ExternalName("loop.shop.svc.cluster.local".into()), vec![]),
    ];
    Names::new(&Settings::of_node(0, "/n"), ServiceMap { services })
}

fn ask(name: &str, kind: u16) -> Answer {
    ask_at(name, kind, 0)
}

fn ask_at(name: &str, kind: u16, turn: usize) -> Answer {
    let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0, 0, 0, 0, 1]);
    let at = bytes.len() - 4;
    bytes[at..at + 2].copy_from_slice(&kind.to_be_bytes());
    names().answer(&packet::parse(&bytes).unwrap(), turn)
}

fn addresses(answer: &Answer) -> Vec<String> {
    let all = answer.records.iter();
    all.filter_map(|record| if let Data::A(address) = record.data { Some(address.to_string()) } else { None })
        .collect()
}

#[test]
fn services_have_addresses() {
    let web = ask("web.shop.svc.cluster.local", kind::A);
    assert_eq!((web.code, addresses(&web)), (Code::Known, vec!["10.96.1.1".into()]));
    let db = ask("db.shop.svc.cluster.local", kind::A);
    assert_eq!(addresses(&db), ["10.244.0.6", "10.244.0.7"]);
    assert_eq!(
        addresses(&ask_at("db.shop.svc.cluster.local", kind::A, 3)),
        ["10.244.0.7", "10.244.0.6"],
        "in turn"
    );
    assert_eq!(addresses(&ask("WEB.Shop.svc.CLUSTER.local", kind::A)), ["10.96.1.1"]);
}

#[test]
fn pods_of_a_stateful_set_have_names() {
    assert_eq!(addresses(&ask("db-1.db.shop.svc.cluster.local", kind::A)), ["10.244.0.7"]);
    assert_eq!(addresses(&ask("10-244-0-5.web.shop.svc.cluster.local", kind::A)), ["10.244.0.5"]);
    assert_eq!(ask("db-2.db.shop.svc.cluster.local", kind::A).code, Code::Unknown);
    assert_eq!(addresses(&ask("10-244-0-9.shop.pod.cluster.local", kind::A)), ["10.244.0.9"]);
    assert_eq!(ask("nonsense.shop.pod.cluster.local", kind::A).code, Code::Unknown);
}

#[test]
fn named_ports_are_found() {
    let web = ask("_pg._tcp.web.shop.svc.cluster.local", kind::SRV);
    let target = "web.shop.svc.cluster.local".to_owned();
    assert_eq!(web.records[0].data, Data::Srv { port: 80, weight: 100, target });
    assert_eq!(web.additional.len(), 1);
    let db = ask("_pg._tcp.db.shop.svc.cluster.local", kind::SRV);
    let target = "db-0.db.shop.svc.cluster.local".to_owned();
    assert_eq!(db.records[0].data, Data::Srv { port: 5432, weight: 50, target });
    assert_eq!(db.records.len(), 2);
    assert_eq!(ask("_pg._udp.web.shop.svc.cluster.local", kind::SRV).code, Code::Unknown);
    assert_eq!(ask("web.shop.svc.cluster.local", kind::SRV).records.len(), 1);
}

#[test]
fn what_is_not_there_is_denied_with_whose_word_it_is() {
    for name in [
        "nobody.shop.svc.cluster.local",
        "web.other.svc.cluster.local",
        "empty.shop.svc.cluster.local",
        "x.cluster.local",
    ] {
        let answer = ask(name, kind::A);
        assert_eq!(answer.code, Code::Unknown, "{name}");
        assert!(matches!(answer.authority[0].data, Data::Soa { .. }));
    }
    let no_such_kind = ask("web.shop.svc.cluster.local", 28);
    assert_eq!(
        (no_such_kind.code, no_such_kind.records.len(), no_such_kind.authority.len()),
        (Code::Known, 0, 1)
    );
    assert_eq!(ask("shop.svc.cluster.local", kind::A).code, Code::Known, "names below it exist");
    assert_eq!(ask("example.com", kind::A).code, Code::Refused);
    assert_eq!(ask("dns-version.cluster.local", kind::TXT).records.len(), 1);
    assert_eq!(ask("cluster.local", kind::SOA).records.len(), 1);
}

#[test]
fn other_names_are_followed_where_they_are_ours() {
    let alias = ask("alias.shop.svc.cluster.local", kind::A);
    assert_eq!((alias.records.len(), addresses(&alias)), (2, vec!["10.96.1.1".into()]));
    assert_eq!(ask("alias.shop.svc.cluster.local", kind::CNAME).records.len(), 1);
    assert_eq!(
        ask("out.shop.svc.cluster.local", kind::A).records[0].data,
        Data::Cname("db.example.com".into())
    );
    assert!(ask("loop.shop.svc.cluster.local", kind::A).records.len() <= 1 + FOLLOWED, "it ends");
}

#[test]
fn addresses_have_names() {
    let service = ask("1.1.96.10.in-addr.arpa", kind::PTR);
    assert_eq!(service.records[0].data, Data::Ptr("web.shop.svc.cluster.local".into()));
    let pod = ask("6.0.244.10.in-addr.arpa", kind::PTR);
    assert_eq!(pod.records[0].data, Data::Ptr("db-0.db.shop.svc.cluster.local".into()));
    assert_eq!(ask("9.9.9.9.in-addr.arpa", kind::PTR).code, Code::Unknown);
    assert_eq!(ask("x.in-addr.arpa", kind::PTR).code, Code::Unknown);
}
