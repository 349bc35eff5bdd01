//! Services as the network needs them: names, addresses, ports and endpoints.
//!
//! Made purely of the API's objects and replaced as a whole. `dns` answers from it, and `proxy` listens for it.

mod objects;

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddrV4};

/// All Services of the cluster. It is published as a whole, and replaces the previous one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceMap {
    /// The Services, sorted by namespace and name.
    pub services: Vec<Service>,
}

/// One Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its address.
    pub reached: ServiceAddress,
    /// Its ports.
    pub ports: Vec<Port>,
    /// The ready endpoints, which have DNS names below it.
    pub endpoints: Vec<Endpoint>,
    /// The timeout of ClientIP session affinity, in seconds.
    pub affinity: Option<u32>,
}

/// The address of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceAddress {
    /// A cluster IP.
    ClusterIp(Ipv4Addr),
    /// Headless: the IPs of its endpoints.
    Headless,
    /// A DNS name.
    ExternalName(String),
}

/// A port of a Service, and its backends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number.
    pub number: u16,
    /// The ready endpoints; if there are none, those that are terminating but still serving.
    pub backends: Vec<SocketAddrV4>,
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A ready endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its hostname.
    pub hostname: Option<String>,
    /// Its ports, by name.
    pub ports: Vec<(String, Protocol, u16)>,
}

impl Endpoint {
    /// Its DNS label below the Service: its hostname, or its IP with dashes.
    pub fn label(&self) -> String {
        self.hostname.clone().unwrap_or_else(|| self.address.to_string().replace('.', "-"))
    }
}

impl Service {
    /// Whether this is `kubernetes.default`, whose endpoints are on the host.
    pub fn is_api(&self) -> bool {
        self.namespace == "default" && self.name == "kubernetes"
    }
}

impl ServiceMap {
    /// Adds the Service `kubernetes.default` at this address, if there is none, so that pods find any API there.
    #[must_use]
    pub fn with_api(mut self, address: Ipv4Addr) -> Self {
        let endpoint = SocketAddrV4::new(address, 443);
        if let Some(there) = self.services.iter_mut().find(|service| service.is_api()) {
            // The kubelet makes these connections.
            for port in there.ports.iter_mut().filter(|port| port.backends.is_empty()) {
                port.backends.push(endpoint);
            }
            return self;
        }
        self.services.push(Service {
            namespace: "default".into(),
            name: "kubernetes".into(),
            reached: ServiceAddress::ClusterIp(address),
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
