//! A whole Kubernetes in one process: the embedded API, the workload controllers, a scheduler and simulated kubelets.
//!
//! Each controller is a folder: `decide.rs` says purely what is to be done, given what is there; `mod.rs` observes, and carries
//! it out. They are written on the operator library as anyone would write theirs, and talk to the API as anyone would: they run
//! on the embedded API and beside a real kube-apiserver alike.

mod cluster;
mod clusterrole_aggregation;
mod controller_ref;
mod cronjob;
mod daemonset;
mod deployment;
mod discovery;
mod disruption;
mod endpoint;
mod event_ttl;
mod garbagecollector;
mod history;
mod int_or_percent;
mod job;
mod metadata_client;
mod namespace;
mod node_lifecycle;
mod pod_control;
mod pods;
mod replicaset;
mod resourcequota;
mod scheduler;
mod serviceaccount;
pub mod simulated_kubelet;
mod slow_start;
mod statefulset;
mod throttle;
mod time;
mod volume;

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
        |manager, settings| serviceaccount::add(manager, settings),
        |manager, _| garbagecollector::add(manager),
        |manager, _| namespace::add(manager),
        |manager, _| disruption::add(manager),
        |manager, _| resourcequota::add(manager),
        |manager, _| event_ttl::add(manager),
        |manager, _| clusterrole_aggregation::add(manager),
        |manager, _| node_lifecycle::add(manager),
        |manager, _| replicaset::add(manager),
        |manager, _| deployment::add(manager),
        |manager, _| endpoint::add(manager),
        |manager, _| daemonset::add(manager),
        |manager, _| statefulset::add(manager),
        |manager, _| job::add(manager),
        |manager, _| cronjob::add(manager),
        |manager, _| volume::add(manager),
    ];
    let manager = manager.caching(|cache| cache.transform(pods::lighten));
    controllers.iter().fold(manager, |manager, add| add(manager, settings))
}
