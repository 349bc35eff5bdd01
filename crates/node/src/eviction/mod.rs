//! The eviction manager: when the machine runs low on memory, disk, inodes or PIDs, it sets the node's pressure conditions and
//! evicts pods, as a kubelet does.
//!
//! `observe.rs` measures the machine and `usage.rs` the pods; `decide.rs` says purely which thresholds are met and which pod is
//! evicted first. The kubelet that owns the pods is behind [`Host`].

pub(crate) mod decide;
#[cfg(test)]
mod decide_tests;
mod observe;
mod thresholds;
mod usage;

pub use thresholds::{EvictionConfig, InvalidThreshold, Pressure, Signal, Threshold};

use decide::{MetThreshold, PodUsage, PressureTracker};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;
use windlass::cache::Opened;
use windlass::{Reason, Recorder};
use windlass_clock::Clock;
use windlass_component_helpers::node_status::NodePressure;

/// A pod that is evicted or was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Eviction {
    /// The message in its status.
    pub(crate) message: String,
    /// When it was decided.
    pub(crate) at: Timestamp,
    pub(crate) cause: EvictionCause,
}

/// Why a pod is terminated by its kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EvictionCause {
    /// Node pressure: the pod gets the condition `DisruptionTarget`.
    NodePressure,
    /// The pod exceeds a limit of its own.
    LimitExceeded,
    /// It was rejected at admission, for this reason.
    Rejected(String),
}

/// The directories of a pod on the node.
pub(crate) struct PodDirectories {
    pub(crate) root: PathBuf,
    pub(crate) logs: PathBuf,
}

/// The kubelet, as far as the eviction manager needs it.
pub(crate) trait Host: Send + Sync {
    /// The node's name.
    fn node_name(&self) -> &str;
    fn clock(&self) -> &Clock;
    fn recorder(&self) -> &Recorder;
    /// The pods that are bound to the node.
    fn pods(&self) -> Vec<Arc<Pod>>;
    fn directories(&self, pod: &Pod) -> PodDirectories;
    /// The pressure conditions that are true.
    fn pressure(&self) -> &watch::Sender<BTreeSet<Pressure>>;
    /// Whether a pod is being evicted.
    fn is_evicted(&self, uid: &str) -> bool;
    /// Evicts a pod. Returns false if it is being evicted already, or is not on this node.
    fn evict(&self, uid: &str, eviction: Eviction) -> bool;
}

/// The node conditions of these pressures.
pub(crate) fn node_pressure(pressure: &BTreeSet<Pressure>) -> NodePressure {
    NodePressure {
        memory: pressure.contains(&Pressure::Memory),
        disk: pressure.contains(&Pressure::Disk),
        pids: pressure.contains(&Pressure::Pids),
        network_down: false,
    }
}

/// Monitors the machine and evicts pods.
pub(crate) struct EvictionManager {
    config: EvictionConfig,
    root: PathBuf,
    tracker: PressureTracker,
    met: Vec<MetThreshold>,
}

impl EvictionManager {
    pub(crate) fn new(config: EvictionConfig, root: PathBuf) -> Self {
        Self { config, root, tracker: PressureTracker::default(), met: Vec::new() }
    }

    /// Measures the machine. Returns the pressure conditions that are true.
    pub(crate) fn observe(&mut self, now: Timestamp) -> BTreeSet<Pressure> {
        self.met = decide::thresholds_met(&self.config, &observe::observe(&self.root));
        self.tracker.update(&self.met, &self.config, now)
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(mut self, host: Arc<impl Host>, node: Opened<Node>) {
        loop {
            host.clock().sleep(self.config.monitoring_interval).await;
            // Before the measurement: what a pod that is gone by then used, the measurement finds free.
            let pods = host.pods();
            let pressure = self.observe(host.clock().now());
            let before = host.pressure().borrow().clone();
            if let Some(node) = node.list().pop() {
                for (pressure, begins) in changes(&before, &pressure) {
                    let reason = event_reason(pressure, begins);
                    let text = format!("Node {} status is now: {reason}", host.node_name());
                    host.recorder().tell(&*node, false, Reason::new(reason, text));
                }
                if let Some(met) = self.met.first() {
                    let text = format!("Attempting to reclaim {}", met.signal.resource());
                    host.recorder().tell(&*node, true, Reason::new("EvictionThresholdMet", text));
                }
            }
            if pressure != before {
                host.pressure().send_replace(pressure);
            }
            self.evict_pods(&*host, &pods).await;
        }
    }

    /// Evicts every pod that exceeds its own limits, and for node pressure one other at a time.
    async fn evict_pods(&self, host: &impl Host, pods: &[Arc<Pod>]) {
        let active: Vec<&Arc<Pod>> = pods.iter().filter(|pod| is_active(pod)).collect();
        for pod in active.iter().filter(|pod| decide::has_storage_limits(pod)) {
            if let Some(why) = decide::exceeded_limit(pod, &usage::of(&host.directories(pod), pod).await) {
                evict(host, pod, why, EvictionCause::LimitExceeded);
            }
        }
        let Some(met) = self.met.first() else { return };
        // One is terminating already: what it frees may be enough.
        if active.iter().any(|pod| host.is_evicted(uid(pod))) {
            return;
        }
        let mut usages: Vec<(&Pod, PodUsage)> = Vec::new();
        for pod in &active {
            usages.push((pod, usage::of(&host.directories(pod), pod).await));
        }
        if let Some((pod, usage)) = decide::first_to_evict(met.signal, &usages) {
            evict(host, pod, decide::message(met, pod, &usage), EvictionCause::NodePressure);
        }
    }
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed")) && pod.metadata.deletion_timestamp.is_none()
}

fn evict(host: &impl Host, pod: &Pod, why: String, cause: EvictionCause) {
    if decide::is_critical(pod) {
        return;
    }
    let eviction = Eviction { message: why.clone(), at: host.clock().now(), cause };
    if host.evict(uid(pod), eviction) {
        host.recorder().tell(pod, true, Reason::new("Evicted", why));
    }
}

/// The conditions that became true, and those that became false.
fn changes(before: &BTreeSet<Pressure>, after: &BTreeSet<Pressure>) -> Vec<(Pressure, bool)> {
    let begins = after.difference(before).map(|pressure| (*pressure, true));
    begins.chain(before.difference(after).map(|pressure| (*pressure, false))).collect()
}

fn event_reason(pressure: Pressure, begins: bool) -> &'static str {
    match (pressure, begins) {
        (Pressure::Memory, true) => "NodeHasInsufficientMemory",
        (Pressure::Memory, false) => "NodeHasSufficientMemory",
        (Pressure::Disk, true) => "NodeHasDiskPressure",
        (Pressure::Disk, false) => "NodeHasNoDiskPressure",
        (Pressure::Pids, true) => "NodeHasInsufficientPID",
        (Pressure::Pids, false) => "NodeHasSufficientPID",
    }
}
