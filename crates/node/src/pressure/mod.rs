//! What a node does when its machine runs short of memory, disk or processes: it says so, takes in no more, and lets pods go, as
//! a kubelet does.
//!
//! `seen.rs` looks at the machine, `held.rs` at what each pod holds of it, `judge.rs` says purely what that means.

mod held;
pub(crate) mod judge;
#[cfg(test)]
mod judge_tests;
mod seen;
mod thresholds;

pub use thresholds::{Eviction, Least, NoThreshold, Short, Signal};

use crate::pods::known::{Cause, Evicted};
use crate::pods::site::Site;
use jiff::Timestamp;
use judge::{Crossed, PodHeld, Shortages};
use k8s_openapi::api::core::v1::{Node, Pod};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use windlass::Reason;
use windlass::cache::Opened;
use windlass_cluster::node::heartbeat::Pressures;

/// What the conditions of the node say of this.
pub(crate) fn pressures(short: &BTreeSet<Short>) -> Pressures {
    Pressures {
        memory: short.contains(&Short::Memory),
        disk: short.contains(&Short::Disk),
        pids: short.contains(&Short::Pids),
    }
}

/// Looks at the machine again and again.
pub(crate) struct Keeper {
    eviction: Eviction,
    root: PathBuf,
    shortages: Shortages,
    crossed: Vec<Crossed>,
}

impl Keeper {
    pub(crate) fn new(eviction: Eviction, root: PathBuf) -> Self {
        Self { eviction, root, shortages: Shortages::default(), crossed: Vec::new() }
    }

    /// What the node is short of now.
    pub(crate) fn look(&mut self, now: Timestamp) -> BTreeSet<Short> {
        self.crossed = judge::crossed(&self.eviction, &seen::look(&self.root));
        self.shortages.after(&self.crossed, &self.eviction, now)
    }

    /// Looks, tells and lets pods go, until it is dropped.
    pub(crate) async fn keep(mut self, site: Arc<Site>, node: Opened<Node>) {
        loop {
            site.clock.sleep(self.eviction.every).await;
            // Before the look: of who is gone by now, the look finds the room that was left.
            let pods = site.pods.list();
            let short = self.look(site.clock.now());
            let before = site.short.borrow().clone();
            if let Some(node) = node.list().pop() {
                for (short, begins) in changes(&before, &short) {
                    let reason = said(short, begins);
                    let text = format!("Node {} status is now: {reason}", site.node);
                    site.recorder.tell(&*node, false, Reason::new(reason, text));
                }
                if let Some(crossed) = self.crossed.first() {
                    let text = format!("Attempting to reclaim {}", crossed.signal.resource());
                    site.recorder.tell(&*node, true, Reason::new("EvictionThresholdMet", text));
                }
            }
            if short != before {
                site.short.send_replace(short);
            }
            self.let_go(&site, &pods).await;
        }
    }

    /// Lets those go that hold more than they may, and for what the machine is short of one other at a time.
    async fn let_go(&self, site: &Arc<Site>, pods: &[Arc<Pod>]) {
        let active: Vec<&Arc<Pod>> = pods.iter().filter(|pod| is_active(pod)).collect();
        for pod in active.iter().filter(|pod| judge::is_bounded(pod)) {
            if let Some(why) = judge::exceeds(pod, &held::of(site, pod).await) {
                evict(site, pod, why, Cause::Excess);
            }
        }
        let Some(crossed) = self.crossed.first() else { return };
        // One is on its way: what it leaves may be enough.
        let leaving = |pod: &&Arc<Pod>| site.evicted.lock().contains_key(uid(pod));
        if active.iter().any(leaving) {
            return;
        }
        let mut held: Vec<(&Pod, PodHeld)> = Vec::new();
        for pod in &active {
            held.push((pod, held::of(site, pod).await));
        }
        if let Some((pod, holds)) = judge::first(crossed.signal, &held) {
            evict(site, pod, judge::message(crossed, pod, &holds), Cause::Shortage);
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

fn evict(site: &Site, pod: &Pod, why: String, cause: Cause) {
    if judge::is_critical(pod) {
        return;
    }
    let evicted = Evicted { message: why.clone(), at: site.clock.now(), cause };
    if site.evict(uid(pod), evicted) {
        site.recorder.tell(pod, true, Reason::new("Evicted", why));
    }
}

/// What began and what ended.
fn changes(before: &BTreeSet<Short>, after: &BTreeSet<Short>) -> Vec<(Short, bool)> {
    let begins = after.difference(before).map(|short| (*short, true));
    begins.chain(before.difference(after).map(|short| (*short, false))).collect()
}

fn said(short: Short, begins: bool) -> &'static str {
    match (short, begins) {
        (Short::Memory, true) => "NodeHasInsufficientMemory",
        (Short::Memory, false) => "NodeHasSufficientMemory",
        (Short::Disk, true) => "NodeHasDiskPressure",
        (Short::Disk, false) => "NodeHasNoDiskPressure",
        (Short::Pids, true) => "NodeHasInsufficientPID",
        (Short::Pids, false) => "NodeHasSufficientPID",
    }
}
