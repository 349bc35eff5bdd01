//! A whole Kubernetes cluster in one process: the embedded API, the controllers of kube-controller-manager, a scheduler and
//! simulated kubelets.
//!
//! Each controller is a folder named as in kube-controller-manager: `decide.rs` decides purely what to do about what was
//! observed; `mod.rs` observes and writes. They are written on the operator library as anyone would write an operator, and
//! are ordinary API clients: they run on the embedded API and beside a real kube-apiserver alike.
//!
//! Kubernetes' controllers are not declarative: they create objects with generated names, replace statuses and delete with
//! preconditions. So most of them are reconcilers that write by hand (`Reconcile::create`, `replace_status`, `delete`). What
//! they write is in the cache at once, so none of them needs the expectations that Kubernetes' controllers keep. A generated
//! name is chosen by the writer and not by the API server, so that the object can be looked up when the response was lost.
//!
//! [`Cluster`] runs all of them in one manager, beside the scheduler and the nodes. They share one cache
//! (`Manager::sharing`): a pod is watched, decoded and stored once, without the fields that nobody reads
//! (`pods::strip_unused_fields`), and a controller sees at once what another one wrote. Fault rules and the record of writes
//! do not apply to them unless a rule names their user.
//!
//! Shared parts: `controller_ref` (adoption and release), `pod_control` and `slow_start` (many pods at a time), `history`
//! (ControllerRevisions), `throttle` (a pause between reconciles over many pods), `discovery` and `metadata_client`
//! (controllers that work on every kind the server serves).

mod certificates;
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
mod flow_control;
mod garbage_collection;
mod garbagecollector;
mod history;
pub mod identities;
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
mod validatingadmissionpolicy_status;
mod volume;

pub use cluster::{Cluster, SettleError};
pub use garbage_collection::GarbageCollection;
pub use time::Time;
pub use windlass_component_helpers::node_status::is_ready as is_node_ready;

use windlass::Manager;
use windlass_apiserver::Api;

/// What the controllers cannot find out from the API.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The certificate of the authority that signed the API's, in PEM: every namespace has it in `kube-root-ca.crt`.
    pub root_ca: Option<String>,
    /// The API server that issues, with its own keys, the certificates that CertificateSigningRequests ask for and the tokens of
    /// Secrets; without it neither is done. [`Cluster::start`] sets it to its own.
    pub issuer: Option<Api>,
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
        |manager, _| flow_control::add(manager),
        |manager, settings| certificates::add(manager, settings),
        |manager, settings| validatingadmissionpolicy_status::add(manager, settings),
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
    let manager = manager.caching(|cache| cache.transform(pods::strip_unused_fields));
    controllers.iter().fold(manager, |manager, add| add(manager, settings))
}
