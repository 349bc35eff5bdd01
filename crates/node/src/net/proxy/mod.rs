//! Services' addresses: a listener for each port that has somebody behind it. Where there is nobody there is no listener, so the kernel
//! refuses at once.
//!
//! The whole range of cluster IPs is local to the namespace, which is what makes the kernel do so.

mod balancer;
mod places;
mod tcp;
mod udp;

use super::{Protocol, ServiceAddress, ServiceMap, Settings, dns};
use balancer::Balancer;
use parking_lot::Mutex;
use places::Places;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;
use windlass_clock::Clock;

/// How many connections to Services there may be at once; each takes two descriptors, and memory for what is on its way.
const CONNECTIONS: usize = 4096;

/// Where a Service listens.
type Front = (Protocol, SocketAddrV4);

/// All Services that have somebody behind them.
pub(super) struct Proxy {
    settings: Settings,
    listeners: tokio::sync::Mutex<HashMap<Front, Listener>>,
    places: Places,
}

struct Listener {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// What a listener, and the connections it took, look at.
struct Shared {
    balancer: Mutex<Balancer>,
    /// Endpoints beyond these addresses are on the host's side: the node makes connections to them.
    pods: super::Cidr,
    /// Where the node is asked to.
    host: PathBuf,
    /// Whether this is the API's own Service.
    api: bool,
    clock: Clock,
}

/// What a front is to become.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    backends: Vec<SocketAddrV4>,
    affinity: Option<Duration>,
    api: bool,
}

impl Proxy {
    /// No Services yet.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            listeners: tokio::sync::Mutex::default(),
            places: Places::new(CONNECTIONS),
        }
    }

    /// Listens where this table says, and nowhere else. Connections that were made stay: whoever is at their other end ends them.
    /// What could not be listened at is told; the next table tries again.
    pub(super) async fn replace(&self, table: &ServiceMap) -> Vec<String> {
        let mut wanted = wanted(table, SocketAddrV4::new(self.settings.dns, dns::PORT));
        let mut listeners = self.listeners.lock().await;
        let gone: Vec<Front> = listeners
            .iter()
            .filter(|(front, listener)| {
                wanted.get(front).is_none_or(|wanted| wanted.api != listener.shared.api)
            })
            .map(|(front, _)| *front)
            .collect();
        for front in gone {
            if let Some(mut listener) = listeners.remove(&front) {
                listener.task.abort();
                // Only then it refuses.
                _ = (&mut listener.task).await;
            }
        }
        let mut wrong = Vec::new();
        for (front, wanted) in wanted.drain() {
            if let Some(listener) = listeners.get(&front) {
                listener.shared.balancer.lock().replace(wanted.backends, wanted.affinity);
                continue;
            }
            match self.listen(front, wanted).await {
                Ok(listener) => _ = listeners.insert(front, listener),
                Err(error) => wrong.push(format!("cannot listen at {}: {error}", front.1)),
            }
        }
        wrong
    }

    async fn listen(&self, (protocol, address): Front, wanted: Wanted) -> io::Result<Listener> {
        let mut balancer = Balancer::default();
        balancer.replace(wanted.backends, wanted.affinity);
        let shared = Arc::new(Shared {
            balancer: Mutex::new(balancer),
            pods: self.settings.pods,
            host: self.settings.host_socket(),
            api: wanted.api,
            clock: Clock::real(),
        });
        let task = match protocol {
            Protocol::Tcp => {
                let listener = TcpListener::bind(address).await?;
                tokio::spawn(tcp::serve(listener, shared.clone(), self.places.clone()))
            }
            Protocol::Udp => {
                let socket = UdpSocket::bind(address).await?;
                tokio::spawn(udp::serve(socket, shared.clone()))
            }
        };
        Ok(Listener { shared, task })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where to listen, and for whom: pure. `taken` is our own.
fn wanted(table: &ServiceMap, taken: SocketAddrV4) -> HashMap<Front, Wanted> {
    let mut wanted = HashMap::new();
    for service in &table.services {
        let ServiceAddress::ClusterIp(address) = service.reached else { continue };
        for port in service.ports.iter().filter(|port| !port.backends.is_empty()) {
            let at = SocketAddrV4::new(address, port.number);
            if at == taken {
                continue;
            }
            let affinity = service.affinity.map(|seconds| Duration::from_secs(seconds.into()));
            let to = Wanted { backends: port.backends.clone(), affinity, api: service.is_api() };
            wanted.entry((port.protocol, at)).or_insert(to);
        }
    }
    wanted
}

/// The addresses of Services that lie outside their range: they are made this network's own one by one.
pub(super) fn outside(table: &ServiceMap, settings: &Settings) -> Vec<Ipv4Addr> {
    let addresses = table.services.iter().filter_map(|service| match service.reached {
        ServiceAddress::ClusterIp(address) => Some(address),
        _ => None,
    });
    let strange = addresses
        .filter(|address| !settings.services.contains(*address) && !settings.pods.contains(*address));
    strange.filter(|address| address.is_private()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Port, Service};

    #[test]
    fn only_ports_with_somebody_behind_them_listen() {
        let port = |number: u16, protocol, backends: &[&str]| Port {
            name: String::new(),
            protocol,
            number,
            backends: backends.iter().map(|backend| backend.parse().unwrap()).collect(),
        };
        let service = |reached, ports| Service {
            namespace: "shop".into(),
            name: "web".into(),
            reached,
            ports,
            endpoints: Vec::new(),
            affinity: Some(9),
        };
        let at = Ipv4Addr::new(10, 96, 1, 1);
        let dns = Ipv4Addr::new(10, 96, 0, 10);
        let table = ServiceMap {
            services: vec![
                service(
                    ServiceAddress::ClusterIp(at),
                    vec![
                        port(80, Protocol::Tcp, &["10.244.0.5:8080"]),
                        port(81, Protocol::Tcp, &[]),
                        port(80, Protocol::Udp, &["10.244.0.5:1"]),
                    ],
                ),
                service(ServiceAddress::Headless, vec![port(80, Protocol::Tcp, &["10.244.0.5:8080"])]),
                service(ServiceAddress::ClusterIp(dns), vec![port(53, Protocol::Udp, &["10.244.0.5:8080"])]),
            ],
        };
        let wanted = wanted(&table, SocketAddrV4::new(dns, 53));
        assert_eq!(wanted.len(), 2);
        assert_eq!(
            wanted[&(Protocol::Tcp, SocketAddrV4::new(at, 80))].affinity,
            Some(Duration::from_secs(9))
        );
        assert_eq!(outside(&table, &Settings::of_node(0, "/n")), [] as [Ipv4Addr; 0]);
    }
}
