//! What all pods of a node share: its API, its place, its network and its folders.

use super::Workers;
use super::fields::Place;
use super::identity::Runner;
use super::known::Evicted;
use crate::images::Catalogue;
use crate::net::Network;
use crate::pressure::Short;
use crate::shim::Program;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Client;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use tokio::sync::watch;
use windlass::Recorder;
use windlass::cache::{Cache, Opened};
use windlass_clock::Clock;

/// What names of the cluster end in.
pub(crate) const DOMAIN: &str = "cluster.local";

/// What all pods of a node share.
pub(crate) struct Site {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    /// The node's name.
    pub(crate) node: String,
    /// The node's address.
    pub(crate) host_ip: String,
    pub(crate) allocatable: BTreeMap<String, Quantity>,
    /// How to run ourselves as something else.
    pub(crate) program: Program,
    /// The node's folder.
    pub(crate) root: PathBuf,
    /// None where this machine cannot have one: then all pods are on the machine's own.
    pub(crate) network: Option<Network>,
    pub(crate) images: Catalogue,
    pub(crate) recorder: Recorder,
    pub(crate) cache: Cache,
    pub(crate) pods: Opened<Pod>,
    pub(crate) services: Opened<Service>,
    pub(crate) runner: Runner,
    pub(crate) workers: Workers,
    /// What the machine is short of.
    pub(crate) short: watch::Sender<BTreeSet<Short>>,
    /// Pods that were taken in, by UID, as long as they are here.
    pub(crate) admitted: Mutex<HashSet<String>>,
    /// Pods that have to go, by UID, as long as they are here.
    pub(crate) evicted: Mutex<HashMap<String, Evicted>>,
}

impl Site {
    /// The folder of a pod.
    pub(crate) fn folder(&self, uid: &str) -> PathBuf {
        self.root.join("pods").join(uid)
    }

    /// Where logs of all pods are.
    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Where the volumes of claims are.
    pub(crate) fn volumes(&self) -> PathBuf {
        self.root.join("volumes")
    }

    /// The folder of a pod's logs.
    pub(crate) fn logs_of(&self, pod: &Pod) -> PathBuf {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let meta = &pod.metadata;
        self.logs().join(format!("{}_{}_{}", text(&meta.namespace), text(&meta.name), text(&meta.uid)))
    }

    /// Has a pod go. Answers whether that is news.
    pub(crate) fn evict(&self, uid: &str, evicted: Evicted) -> bool {
        let Some(worker) = self.workers.lock().get(uid).cloned() else { return false };
        let mut all = self.evicted.lock();
        if all.contains_key(uid) {
            return false;
        }
        all.insert(uid.to_owned(), evicted);
        drop(all);
        worker.notify_one();
        true
    }

    /// Where a pod runs, as it is told.
    pub(crate) fn place(&self, pod_ip: Option<String>) -> Place {
        Place {
            node: self.node.clone(),
            host_ip: self.host_ip.clone(),
            pod_ip,
            allocatable: self.allocatable.clone(),
        }
    }

    /// Whether a pod is on the machine's own network: because it asks for that, or because there is no other.
    pub(crate) fn on_host_network(&self, pod: &Pod) -> bool {
        self.network.is_none() || pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true)
    }
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("node", &self.node).finish_non_exhaustive()
    }
}
