//! A whole Kubernetes in one process: the embedded API, the workload controllers, a scheduler and simulated kubelets.
//!
//! Each controller is a folder: `decide.rs` says purely what is to be done, given what is there; `mod.rs` observes, and carries
//! it out. They are written on the operator library as anyone would write theirs, and talk to the API as anyone would: they run
//! on the embedded API and beside a real kube-apiserver alike.

mod accounts;
mod catalog;
mod cluster;
mod cron;
mod daemons;
mod deployment;
mod disruption;
mod endpoints;
mod events;
mod fenceposts;
mod garbage;
mod jobs;
mod many;
mod namespaces;
mod node_lifecycle;
mod owning;
mod pace;
mod pods;
mod quota;
mod replicas;
mod revisions;
mod roles;
mod scheduler;
pub mod simulated_kubelet;
mod slow_start;
mod stateful;
mod time;
mod volumes;
mod wire;

pub use cluster::{Cluster, SettleError};
pub use time::Time;
pub use windlass_component_helpers::node_status::is_ready as is_node_ready;

use windlass::Manager;

/// What the controllers cannot find out from the API.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The certificate of the authority that signed the API's, in PEM: every namespace has it in `kube-root-ca.crt`.
    pub root_ca: Option<String>,
    /// The number of simulated nodes.
    pub simulated_nodes: usize,
    /// Leaves the controllers out: whoever tests them runs them otherwise.
    pub without_controllers: bool,
}

/// The manager with every controller of a cluster.
pub fn controllers(manager: Manager, settings: &Settings) -> Manager {
    let controllers: &[fn(Manager, &Settings) -> Manager] = &[
        |manager, settings| accounts::add(manager, settings),
        |manager, _| garbage::add(manager),
        |manager, _| namespaces::add(manager),
        |manager, _| disruption::add(manager),
        |manager, _| quota::add(manager),
        |manager, _| events::add(manager),
        |manager, _| roles::add(manager),
        |manager, _| node_lifecycle::add(manager),
        |manager, _| replicas::add(manager),
        |manager, _| deployment::add(manager),
        |manager, _| endpoints::add(manager),
        |manager, _| daemons::add(manager),
        |manager, _| stateful::add(manager),
        |manager, _| jobs::add(manager),
        |manager, _| cron::add(manager),
        |manager, _| volumes::add(manager),
    ];
    let manager = manager.caching(|cache| cache.transform(pods::lighten));
    controllers.iter().fold(manager, |manager, add| add(manager, settings))
}
