//! Services, as the network needs them: names, addresses, and who is behind them.

mod objects;

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddrV4};

/// All Services of the cluster. It is published as a whole, and replaces what was before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Each by its own.
    pub services: Vec<Service>,
}

/// One Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Where it is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// How it is reached.
    pub reached: Reached,
    /// What it offers.
    pub ports: Vec<Port>,
    /// Who is behind it and has a name below it: all that are ready.
    pub endpoints: Vec<Endpoint>,
    /// For how many seconds the same client reaches the same endpoint; none where any will do.
    pub affinity: Option<u32>,
}

/// How a Service is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reached {
    /// At an address of its own.
    At(Ipv4Addr),
    /// At the addresses of its endpoints.
    Headless,
    /// Under another name.
    Elsewhere(String),
}

/// A port of a Service, and where connections to it go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// What it is called; empty where it is the only one and has no name.
    pub name: String,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Its number.
    pub number: u16,
    /// Where connections go: the ready endpoints, or where there are none, those that end but still serve.
    pub backends: Vec<SocketAddrV4>,
}

/// What is spoken at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// A ready endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its address.
    pub address: Ipv4Addr,
    /// What it is called below its Service; its address with dashes where it has no name.
    pub hostname: Option<String>,
    /// Its ports, by name.
    pub ports: Vec<(String, Protocol, u16)>,
}

impl Endpoint {
    /// What it is called below its Service.
    pub fn label(&self) -> String {
        self.hostname.clone().unwrap_or_else(|| self.address.to_string().replace('.', "-"))
    }
}

impl Service {
    /// Whether this is the API's own, whose endpoints are on the host.
    pub fn is_api(&self) -> bool {
        self.namespace == "default" && self.name == "kubernetes"
    }
}

impl Table {
    /// With the API's own Service at this address, if nobody published one: a pod finds the API at `kubernetes.default`
    /// whatever the API is.
    #[must_use]
    pub fn with_api(mut self, address: Ipv4Addr) -> Self {
        let endpoint = SocketAddrV4::new(address, 443);
        if let Some(there) = self.services.iter_mut().find(|service| service.is_api()) {
            // Somebody answers: the node itself, which knows the way.
            for port in there.ports.iter_mut().filter(|port| port.backends.is_empty()) {
                port.backends.push(endpoint);
            }
            return self;
        }
        self.services.push(Service {
            namespace: "default".into(),
            name: "kubernetes".into(),
            reached: Reached::At(address),
            ports: vec![Port {
                name: "https".into(),
                protocol: Protocol::Tcp,
                number: 443,
                backends: vec![endpoint],
            }],
            endpoints: Vec::new(),
            affinity: None,
        });
        self
    }
}
