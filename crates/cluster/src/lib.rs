//! A whole Kubernetes in one process: the embedded API, the controllers that make workloads out of what is declared, a scheduler
//! and simulated nodes.
//!
//! Each controller is a folder: `decide.rs` says purely what is to be done, given what is there; `mod.rs` observes, and carries
//! it out. They are written on the operator library as anyone would write theirs, and talk to the API as anyone would: they run
//! on the embedded API and beside a real kube-apiserver alike.

mod accounts;
mod cluster;
mod cron;
mod deployment;
mod fenceposts;
mod hashing;
mod jobs;
mod many;
mod owning;
mod pace;
mod pods;
mod replicas;
mod revisions;
mod slow_start;
mod stateful;
mod time;

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
    let controllers: &[fn(Manager, &Settings) -> Manager] = &[
        |manager, settings| accounts::add(manager, settings),
        |manager, _| replicas::add(manager),
        |manager, _| deployment::add(manager),
        |manager, _| stateful::add(manager),
        |manager, _| jobs::add(manager),
        |manager, _| cron::add(manager),
    ];
    controllers.iter().fold(manager, |manager, add| add(manager, settings))
}
