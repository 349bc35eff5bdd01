//! What the workers of all pods of a node share: clients, caches, directories, and who is admitted or evicted.

use super::Workers;
use super::security_context::Runner;
use crate::eviction::{self, Eviction, PodDirectories, Pressure};
use crate::images::Catalogue;
use crate::net::Network;
use crate::program::Program;
use crate::references::downward_api::NodeFields;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Client;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;
use windlass::Recorder;
use windlass::cache::{Cache, Opened};
use windlass_clock::Clock;

/// The cluster domain.
pub(crate) const DOMAIN: &str = "cluster.local";

/// What the workers of all pods of a node share.
pub(crate) struct NodeContext {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    /// The node's name.
    pub(crate) node: String,
    /// The node's IP.
    pub(crate) host_ip: String,
    pub(crate) allocatable: BTreeMap<String, Quantity>,
    /// How to run this program under its hidden subcommands.
    pub(crate) program: Program,
    /// The node's directory.
    pub(crate) root: PathBuf,
    /// `None` if this machine cannot have one: then all pods use the host network.
    pub(crate) network: Option<Network>,
    pub(crate) images: Catalogue,
    pub(crate) recorder: Recorder,
    pub(crate) cache: Cache,
    pub(crate) pods: Opened<Pod>,
    pub(crate) services: Opened<Service>,
    pub(crate) runner: Runner,
    pub(crate) workers: Workers,
    /// The pressure conditions that are true.
    pub(crate) pressure: watch::Sender<BTreeSet<Pressure>>,
    /// Whether the network process ended, and is not replaced yet.
    pub(crate) network_down: watch::Sender<bool>,
    /// The UIDs of admitted pods.
    pub(crate) admitted: Mutex<HashSet<String>>,
    /// Evictions, by pod UID.
    pub(crate) evicted: Mutex<HashMap<String, Eviction>>,
    /// The UIDs of deleted pods of which something could not be removed.
    pub(crate) leftovers: Mutex<HashSet<String>>,
}

impl NodeContext {
    /// The directory of a pod.
    pub(crate) fn pod_dir(&self, uid: &str) -> PathBuf {
        self.root.join("pods").join(uid)
    }

    /// The directory of all pods' logs.
    pub(crate) fn logs_dir(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The directory of local PersistentVolumes.
    pub(crate) fn volumes_dir(&self) -> PathBuf {
        self.root.join("volumes")
    }

    /// The directory of a pod's logs.
    pub(crate) fn pod_logs_dir(&self, pod: &Pod) -> PathBuf {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let meta = &pod.metadata;
        self.logs_dir().join(format!("{}_{}_{}", text(&meta.namespace), text(&meta.name), text(&meta.uid)))
    }

    /// What the downward API shows of the node.
    pub(crate) fn node_fields(&self, pod_ip: Option<String>) -> NodeFields {
        NodeFields {
            node: self.node.clone(),
            host_ip: self.host_ip.clone(),
            pod_ip,
            allocatable: self.allocatable.clone(),
        }
    }

    /// Whether a pod uses the host network: because it asks for it, or because there is no other.
    pub(crate) fn uses_host_network(&self, pod: &Pod) -> bool {
        self.network.is_none() || pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true)
    }
}

impl std::fmt::Debug for NodeContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeContext").field("node", &self.node).finish_non_exhaustive()
    }
}

impl eviction::Host for NodeContext {
    fn node_name(&self) -> &str {
        &self.node
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn pods(&self) -> Vec<Arc<Pod>> {
        self.pods.list()
    }

    fn directories(&self, pod: &Pod) -> PodDirectories {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        PodDirectories { root: self.pod_dir(uid), logs: self.pod_logs_dir(pod) }
    }

    fn pressure(&self) -> &watch::Sender<BTreeSet<Pressure>> {
        &self.pressure
    }

    fn is_evicted(&self, uid: &str) -> bool {
        self.evicted.lock().contains_key(uid)
    }

    fn evict(&self, uid: &str, eviction: Eviction) -> bool {
        let Some(worker) = self.workers.lock().get(uid).cloned() else { return false };
        let mut all = self.evicted.lock();
        if all.contains_key(uid) {
            return false;
        }
        all.insert(uid.to_owned(), eviction);
        drop(all);
        worker.notify_one();
        true
    }
}
