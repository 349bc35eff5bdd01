//! A whole Kubernetes in one process: the embedded API, the controllers that make workloads out of what is declared, a scheduler
//! and simulated nodes.
//!
//! Each controller is a folder: `decide.rs` says purely what is to be done, given what is there; `mod.rs` observes, and carries
//! it out. They are written on the operator library as anyone would write theirs, and talk to the API as anyone would: they run
//! on the embedded API and beside a real kube-apiserver alike.

mod accounts;
mod catalog;
mod cluster;
mod disruption;
mod events;
mod garbage;
mod many;
mod namespaces;
mod owning;
mod pace;
mod pods;
mod quota;
mod replicas;
#[allow(dead_code, reason = "for the controllers to come")]
mod revisions;
mod roles;
#[allow(dead_code, reason = "for the controllers to come")]
mod slow_start;
mod time;
mod wire;

pub use cluster::Cluster;
pub use time::Time;

use windlass::Manager;

/// What the controllers cannot find out from the API.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The certificate of the authority that signed the API's, in PEM: every namespace has it in `kube-root-ca.crt`.
    pub root_ca: Option<String>,
}

/// The manager with every controller of a cluster.
pub fn controllers(manager: Manager, settings: &Settings) -> Manager {
    let manager = accounts::add(manager, settings);
    let manager = garbage::add(manager);
    let manager = namespaces::add(manager);
    let manager = disruption::add(manager);
    let manager = quota::add(manager);
    let manager = events::add(manager);
    let manager = roles::add(manager);
    replicas::add(manager)
}
