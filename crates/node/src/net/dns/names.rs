//! What a name means: pure. As Kubernetes' specification of cluster DNS has it, answered from the table of Services.

use super::packet::{Answer, CLASS, Code, Data, Query, Record, kind};
use crate::net::{Endpoint, Protocol, Service, ServiceAddress, ServiceMap, Settings};
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

/// The version of the specification that names follow; asked for as `dns-version`.
const SPECIFICATION: &str = "1.1.0";
/// How many names that stand for others are followed.
const FOLLOWED: usize = 8;

/// The names of one table.
#[derive(Debug)]
pub(crate) struct Names {
    domain: Vec<String>,
    table: ServiceMap,
    services: HashMap<(String, String), usize>,
    namespaces: HashSet<String>,
    addresses: HashMap<Ipv4Addr, Vec<String>>,
}

/// What is known about a name of the cluster.
enum Meaning {
    Nothing,
    /// It exists, or names below it do.
    Records(Vec<Data>, Vec<Record>),
}

impl Names {
    /// The names that follow from this table.
    pub(crate) fn new(settings: &Settings, table: ServiceMap) -> Self {
        let domain = settings
            .domain
            .split('.')
            .map(str::to_ascii_lowercase)
            .filter(|label| !label.is_empty())
            .collect();
        let mut names = Self {
            domain,
            services: HashMap::new(),
            namespaces: HashSet::new(),
            addresses: HashMap::new(),
            table: ServiceMap::default(),
        };
        for (index, service) in table.services.iter().enumerate() {
            names.services.insert((service.namespace.clone(), service.name.clone()), index);
            names.namespaces.insert(service.namespace.clone());
            let name = names.name_of(service);
            if let ServiceAddress::ClusterIp(address) = &service.reached {
                names.addresses.entry(*address).or_default().push(name.clone());
            }
            for endpoint in &service.endpoints {
                let own = format!("{}.{name}", endpoint.label());
                names.addresses.entry(endpoint.address).or_default().push(own);
            }
        }
        names.table = table;
        names
    }

    /// Answers a question. `turn` moves on with every question, so that who takes the first of many does not take the same.
    pub(super) fn answer(&self, query: &Query, turn: usize) -> Answer {
        if query.class != CLASS {
            return empty(Code::Refused);
        }
        if let Some(rest) = query.labels.strip_suffix_labels(&["in-addr", "arpa"]) {
            return self.reverse(rest, query.kind);
        }
        let Some(rest) = query.labels.strip_suffix_labels(&self.domain) else { return empty(Code::Refused) };
        let mut answer = empty(Code::Known);
        match self.meaning(rest, query.kind) {
            Meaning::Nothing => answer.code = Code::Unknown,
            Meaning::Records(data, additional) => {
                answer.records = data.into_iter().map(|data| Record { name: None, data }).collect();
                answer.additional = additional;
            }
        }
        self.follow(&mut answer, query.kind);
        let count = answer.records.len();
        if count > 1 && answer.records.iter().all(|record| matches!(record.data, Data::A(_))) {
            answer.records.rotate_left(turn % count);
        }
        if answer.records.is_empty() {
            answer.authority =
                vec![Record { name: Some(self.zone()), data: Data::Soa { zone: self.zone() } }];
        }
        answer
    }

    /// Another name's addresses come along, where it is one of ours.
    fn follow(&self, answer: &mut Answer, asked: u16) {
        for _ in 0..FOLLOWED {
            let Some(Record { data: Data::Cname(target), .. }) = answer.records.last() else { return };
            if asked == kind::CNAME {
                return;
            }
            let target = target.trim_end_matches('.').to_ascii_lowercase();
            let labels: Vec<String> = target.split('.').map(Into::into).collect();
            let Some(rest) = labels.strip_suffix_labels(&self.domain) else { return };
            let Meaning::Records(data, _) = self.meaning(rest, asked) else { return };
            if data.is_empty() {
                return;
            }
            answer.records.extend(data.into_iter().map(|data| Record { name: Some(target.clone()), data }));
        }
    }

    fn meaning(&self, rest: &[String], asked: u16) -> Meaning {
        let of = |wanted: u16, data: Vec<Data>| {
            let given = if asked == wanted || asked == kind::ANY { data } else { Vec::new() };
            Meaning::Records(given, Vec::new())
        };
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        match rest.as_slice() {
            [] if asked == kind::NS => of(kind::NS, vec![Data::Ns(format!("ns.dns.{}", self.zone()))]),
            [] => of(kind::SOA, vec![Data::Soa { zone: self.zone() }]),
            ["dns-version"] => of(kind::TXT, vec![Data::Txt(SPECIFICATION.into())]),
            ["svc" | "pod"] => of(kind::A, Vec::new()),
            [namespace, "svc"] if self.namespaces.contains(*namespace) => of(kind::A, Vec::new()),
            [dashed, _, "pod"] => match dashed.replace('-', ".").parse() {
                Ok(address) => of(kind::A, vec![Data::A(address)]),
                Err(_) => Meaning::Nothing,
            },
            [below @ .., name, namespace, "svc"] => match self.service(namespace, name) {
                Some(service) => self.of_service(service, below, asked),
                None => Meaning::Nothing,
            },
            _ => Meaning::Nothing,
        }
    }

    fn of_service(&self, service: &Service, below: &[&str], asked: u16) -> Meaning {
        let own = self.name_of(service);
        match below {
            [] => {
                if let ServiceAddress::ExternalName(name) = &service.reached {
                    return Meaning::Records(vec![Data::Cname(name.clone())], Vec::new());
                }
                let addresses = self.addresses_of(service);
                if addresses.is_empty() {
                    return Meaning::Nothing;
                }
                match asked {
                    kind::A | kind::ANY => {
                        Meaning::Records(addresses.into_iter().map(Data::A).collect(), Vec::new())
                    }
                    kind::SRV => ports(service, &own, None, None),
                    _ => Meaning::Records(Vec::new(), Vec::new()),
                }
            }
            [port, protocol] if port.starts_with('_') => {
                let protocol = match *protocol {
                    "_tcp" => Protocol::Tcp,
                    "_udp" => Protocol::Udp,
                    _ => return Meaning::Nothing,
                };
                match ports(service, &own, Some(&port[1..]), Some(protocol)) {
                    Meaning::Records(data, _) if data.is_empty() => Meaning::Nothing,
                    Meaning::Records(..) if asked != kind::SRV && asked != kind::ANY => {
                        Meaning::Records(Vec::new(), Vec::new())
                    }
                    found => found,
                }
            }
            [label] => {
                let mut found =
                    service.endpoints.iter().filter(|endpoint| endpoint.label() == *label).peekable();
                if found.peek().is_none() {
                    return Meaning::Nothing;
                }
                let addresses = found.map(|endpoint| Data::A(endpoint.address));
                let wanted = matches!(asked, kind::A | kind::ANY);
                Meaning::Records(addresses.filter(|_| wanted).collect(), Vec::new())
            }
            _ => Meaning::Nothing,
        }
    }

    /// An address' names: `5.0.244.10.in-addr.arpa`.
    fn reverse(&self, rest: &[String], asked: u16) -> Answer {
        let mut octets = rest.to_vec();
        octets.reverse();
        let address: Option<Ipv4Addr> = octets.join(".").parse().ok();
        let Some(names) = address.and_then(|address| self.addresses.get(&address)) else {
            return empty(Code::Unknown);
        };
        let mut answer = empty(Code::Known);
        if matches!(asked, kind::PTR | kind::ANY) {
            answer.records =
                names.iter().map(|name| Record { name: None, data: Data::Ptr(name.clone()) }).collect();
        }
        answer
    }

    fn addresses_of(&self, service: &Service) -> Vec<Ipv4Addr> {
        match &service.reached {
            ServiceAddress::ClusterIp(address) => vec![*address],
            ServiceAddress::Headless => {
                let mut all: Vec<_> = service.endpoints.iter().map(|endpoint| endpoint.address).collect();
                all.dedup();
                all
            }
            ServiceAddress::ExternalName(_) => Vec::new(),
        }
    }

    fn service(&self, namespace: &str, name: &str) -> Option<&Service> {
        self.services.get(&(namespace.into(), name.into())).map(|index| &self.table.services[*index])
    }

    fn name_of(&self, service: &Service) -> String {
        format!("{}.{}.svc.{}", service.name, service.namespace, self.zone())
    }

    fn zone(&self) -> String {
        self.domain.join(".")
    }
}

/// The ports of a Service, or of each of its endpoints where it has no address of its own; and the addresses that go with them.
fn ports(service: &Service, own: &str, name: Option<&str>, protocol: Option<Protocol>) -> Meaning {
    let wanted = |n: &str, p: Protocol| {
        name.is_none_or(|name| name == n) && protocol.is_none_or(|protocol| protocol == p)
    };
    let (mut data, mut additional) = (Vec::new(), Vec::new());
    match &service.reached {
        ServiceAddress::ClusterIp(address) => {
            let here = service.ports.iter().filter(|port| wanted(&port.name, port.protocol));
            data.extend(here.map(|port| Data::Srv { port: port.number, weight: 100, target: own.into() }));
            additional.push(Record { name: Some(own.into()), data: Data::A(*address) });
        }
        ServiceAddress::Headless => {
            let each = u16::try_from(100 / service.endpoints.len().max(1)).unwrap_or(1).max(1);
            for endpoint in &service.endpoints {
                let target = format!("{}.{own}", Endpoint::label(endpoint));
                let here = endpoint.ports.iter().filter(|(n, p, _)| wanted(n, *p));
                let before = data.len();
                data.extend(here.map(|(_, _, port)| Data::Srv {
                    port: *port,
                    weight: each,
                    target: target.clone(),
                }));
                if data.len() > before {
                    additional.push(Record { name: Some(target), data: Data::A(endpoint.address) });
                }
            }
        }
        ServiceAddress::ExternalName(_) => {}
    }
    Meaning::Records(data, additional)
}

fn empty(code: Code) -> Answer {
    Answer { code, records: Vec::new(), authority: Vec::new(), additional: Vec::new() }
}

/// A name without its end.
trait Labels {
    fn strip_suffix_labels<T: AsRef<str>>(&self, suffix: &[T]) -> Option<&[String]>;
}

impl Labels for [String] {
    fn strip_suffix_labels<T: AsRef<str>>(&self, suffix: &[T]) -> Option<&[String]> {
        let (rest, end) = self.split_at(self.len().checked_sub(suffix.len())?);
        end.iter().zip(suffix).all(|(a, b)| a == b.as_ref()).then_some(rest)
    }
}

#[cfg(test)]
mod tests;
