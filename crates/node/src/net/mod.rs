//! The node's network: one process that owns its namespaces, and what it is asked.
//!
//! - [`Network`] is the node's side: it starts the process or finds it again, lends addresses to pods, publishes Services, and
//!   makes connections from inside.
//! - [`join`] is the pod's side: its shim calls it in the pod's own namespaces.
//! - [`main`] is the process itself, `windlass pod-network`.
//!
//! Addresses are of private ranges inside a network namespace that has no way out: nothing leaves the machine, nothing on it is
//! hidden or reached, and all of it is gone when the process is.
//!
//! A process of its own, because the kubelet has many threads: the kernel lets it enter no user namespace, and a network
//! namespace only thread by thread. It is found again by its socket. Nothing is ever made in the host's namespace, so there
//! is nothing to clean up there.
//!
//! A connection that crosses namespaces is handed over as a file descriptor ([`Network::connect`], `host.rs`): no byte
//! passes through the kubelet, and the connection outlives it.

mod cidr;
mod client;
mod dns;
mod error;
mod expose;
mod host;
mod join;
mod netlink;
mod process;
mod protocol;
mod proxy;
mod relay;
mod service_map;
mod settings;
mod socket_path;

pub use cidr::{Cidr, InvalidCidr};
pub use client::Network;
pub use error::NetError;
pub use expose::expose;
pub use join::{Joining, join, loopback};
pub use process::main;
pub(crate) use process::{leave_the_host, try_links};
pub use service_map::{Endpoint, Port, Protocol, Service, ServiceAddress, ServiceMap};
pub use settings::Settings;
