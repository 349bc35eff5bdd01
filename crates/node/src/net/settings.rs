//! What a node's network is made of.

use super::Cidr;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// What a node's network is made of. It never changes while the network process lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The network's own folder (`network/` of the node's): its socket, its lock and who it is are kept there.
    pub folder: PathBuf,
    /// The addresses of pods; the second of them is the bridge's, by which pods reach everything else.
    pub pods: Cidr,
    /// The addresses of Services.
    pub services: Cidr,
    /// Where names are asked for; one of the Services' addresses.
    pub dns: Ipv4Addr,
    /// What names of the cluster end in.
    pub domain: String,
}

impl Settings {
    /// The usual ones for the node of this number: pods at `10.244.NUMBER.0/24`, Services at `10.96.0.0/12`, names asked of
    /// `10.96.0.10` and below `cluster.local`.
    pub fn of_node(number: u8, folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            pods: Cidr::new(Ipv4Addr::new(10, 244, number, 0), 24).expect("24 is below 32"),
            services: Cidr::new(Ipv4Addr::new(10, 96, 0, 0), 12).expect("12 is below 32"),
            dns: Ipv4Addr::new(10, 96, 0, 10),
            domain: "cluster.local".into(),
        }
    }

    /// Where the network process is asked.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// Where the network process asks the node for connections on the host's side.
    pub(crate) fn host_socket(&self) -> PathBuf {
        self.folder.join("host")
    }

    /// The bridge's address: the pods' way to everything else.
    pub fn gateway(&self) -> Ipv4Addr {
        self.pods.at(1).unwrap_or(self.pods.first())
    }

    /// The address of the API, `kubernetes.default`: the second of the Services'.
    pub fn api(&self) -> Ipv4Addr {
        self.services.at(1).unwrap_or(self.services.first())
    }

    /// What a pod of this namespace finds in `/etc/resolv.conf`.
    pub fn resolv_conf(&self, namespace: &str) -> String {
        let Self { dns, domain, .. } = self;
        format!("search {namespace}.svc.{domain} svc.{domain} {domain}\nnameserver {dns}\noptions ndots:5\n")
    }

    /// Why a network cannot be made of these, if so.
    pub(crate) fn refused(&self) -> Option<String> {
        let Self { pods, services, dns, .. } = self;
        if pods.prefix() > 29 {
            Some(format!("the range {pods} is too small for pods"))
        } else if pods.overlaps(services) {
            Some(format!("the pods' range {pods} and the Services' {services} overlap"))
        } else if !services.contains(*dns) {
            Some(format!(
                "{dns}, where names are asked for, is not one of the Services' addresses {services}"
            ))
        } else {
            let strange = [pods, services].into_iter().find(|range| !range.first().is_private());
            strange.map(|strange| format!("{strange} is not private: it would hide addresses of others"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_told_where_to_ask_for_names() {
        assert_eq!(
            Settings::of_node(0, "/run/n").resolv_conf("shop"),
            "search shop.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n"
        );
    }

    #[test]
    fn ranges_that_cannot_work_are_refused() {
        let usual = Settings::of_node(7, "/run/n");
        assert_eq!(usual.refused(), None);
        assert_eq!(usual.gateway(), Ipv4Addr::new(10, 244, 7, 1));
        let wrong = |pods: &str, services: &str| {
            Settings { pods: pods.parse().unwrap(), services: services.parse().unwrap(), ..usual.clone() }
                .refused()
                .is_some()
        };
        assert!(wrong("10.244.0.0/31", "10.96.0.0/12"));
        assert!(wrong("10.96.4.0/24", "10.96.0.0/12"));
        assert!(wrong("10.244.0.0/24", "10.97.0.0/16"), "no address for names");
        assert!(wrong("8.8.8.0/24", "10.96.0.0/12"));
    }
}
