//! What a DaemonSet lacks and has too much of, node by node.

use super::nodes::{Placement, is_new, node_of, place};
use crate::{int_or_percent, pods};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What was seen for a set.
pub(super) struct Observed<'a> {
    pub(super) set: &'a DaemonSet,
    pub(super) spec: &'a DaemonSetSpec,
    /// Of the template as it is now.
    pub(super) hash: &'a str,
    pub(super) nodes: Vec<(Arc<Node>, Placement)>,
    pub(super) pods: BTreeMap<String, Vec<Arc<Pod>>>,
    pub(super) now: Timestamp,
}

/// A pod to delete, and the event about it if there is one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodDeletion {
    pub(super) pod: Arc<Pod>,
    pub(super) event: Option<(bool, &'static str, String)>,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Steps {
    /// Nodes that get a pod.
    pub(super) create: Vec<String>,
    pub(super) delete: Vec<PodDeletion>,
    /// When failed pods may be replaced.
    pub(super) wait: Option<Duration>,
}

impl Steps {
    pub(super) fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }

    fn delete_pod(&mut self, pod: &Arc<Pod>) {
        self.delete.push(PodDeletion { pod: pod.clone(), event: None });
    }
}

impl<'a> Observed<'a> {
    /// Sorts the pods by node; terminal pods that are being deleted do not count.
    pub(super) fn new(
        set: &'a DaemonSet,
        spec: &'a DaemonSetSpec,
        hash: &'a str,
        nodes: Vec<Arc<Node>>,
        mine: Vec<Arc<Pod>>,
        now: Timestamp,
    ) -> Self {
        let nodes = nodes.into_iter().map(|node| (place(&spec.template, &node), node));
        let mut pods: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in mine.into_iter().filter(|pod| !pods::has_ended(pod) || !pods::is_terminating(pod)) {
            if let Some(node) = node_of(&pod) {
                pods.entry(node.to_owned()).or_default().push(pod);
            }
        }
        pods.values_mut().for_each(|pods| pods.sort_by_cached_key(|pod| seniority(pod)));
        Self { set, spec, hash, nodes: nodes.map(|(place, node)| (node, place)).collect(), pods, now }
    }

    fn on(&self, node: &str) -> &[Arc<Pod>] {
        self.pods.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pods::is_available(pod, self.spec.min_ready_seconds.unwrap_or_default(), self.now)
    }

    fn is_new(&self, pod: &Pod) -> bool {
        is_new(self.set, pod, self.hash)
    }

    fn wanted(&self) -> i32 {
        let count = self.nodes.iter().filter(|(_, place)| *place == Placement::Run).count();
        i32::try_from(count).unwrap_or(i32::MAX)
    }

    /// The most nodes with two pods, and the most without an available one; `None` if the strategy is OnDelete.
    fn max_surge_and_unavailable(&self) -> Option<(i32, i32)> {
        let strategy = self.spec.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return None;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let scaled =
            |value: Option<&_>| value.map_or(0, |value| int_or_percent::scaled(value, self.wanted(), true));
        let surge = scaled(rolling.and_then(|rolling| rolling.max_surge.as_ref()));
        let unavailable = scaled(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()));
        Some(if (surge, unavailable) == (0, 0) { (0, 1) } else { (surge, unavailable) })
    }
}

/// Sort order: pods that are bound first, then the oldest.
fn seniority(pod: &Pod) -> (bool, Option<Timestamp>, Option<String>) {
    let waits = pod.spec.as_ref().is_none_or(|spec| spec.node_name.as_deref().unwrap_or_default().is_empty());
    (waits, pod.metadata.creation_timestamp.as_ref().map(|time| time.0), pod.metadata.name.clone())
}

/// Creates a pod on every node that should have one, and deletes those elsewhere. `may_replace` says for a node whether a
/// failed pod may be replaced now, or how long to wait.
pub(super) fn manage(
    observed: &Observed<'_>,
    mut may_replace: impl FnMut(&str) -> Result<(), Duration>,
) -> Steps {
    let mut steps = Steps::default();
    let surges = observed.max_surge_and_unavailable().is_some_and(|(surge, _)| surge > 0);
    for (node, place) in &observed.nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let there = observed.on(name);
        match place {
            Placement::Exclude => {
                there.iter().filter(|pod| !pods::is_terminating(pod)).for_each(|pod| steps.delete_pod(pod))
            }
            Placement::Run if there.is_empty() => steps.create.push(name.to_owned()),
            Placement::Run | Placement::KeepRunning => {
                let mut running = Vec::new();
                for pod in there.iter().filter(|pod| !pods::is_terminating(pod)) {
                    let named = || {
                        let meta = &pod.metadata;
                        let of = |text: &Option<String>| text.clone().unwrap_or_default();
                        format!("{}/{} on node {name}", of(&meta.namespace), of(&meta.name))
                    };
                    let event = match pods::phase(pod) {
                        "Failed" => match may_replace(name) {
                            Ok(()) => {
                                let message =
                                    format!("Found failed daemon pod {}, will try to kill it", named());
                                (true, "FailedDaemonPod", message)
                            }
                            Err(wait) => {
                                steps.wait = Some(steps.wait.map_or(wait, |other| other.min(wait)));
                                continue;
                            }
                        },
                        "Succeeded" => {
                            let message =
                                format!("Found succeeded daemon pod {}, will try to delete it", named());
                            (false, "SucceededDaemonPod", message)
                        }
                        _ => {
                            running.push(pod);
                            continue;
                        }
                    };
                    steps.delete.push(PodDeletion { pod: pod.clone(), event: Some(event) });
                }
                match surges {
                    // All but the oldest.
                    false => running.iter().skip(1).for_each(|pod| steps.delete_pod(pod)),
                    true if running.is_empty() && *place == Placement::Run => {
                        steps.create.push(name.to_owned())
                    }
                    true => delete_replaced(observed, &running, &mut steps),
                }
            }
        }
    }
    // Those that wait for a node that is gone would wait for ever.
    let known =
        |name: &String| observed.nodes.iter().any(|(node, _)| node.metadata.name.as_ref() == Some(name));
    for (_, lost) in observed.pods.iter().filter(|(name, _)| !known(name)) {
        let waits = |pod: &&Arc<Pod>| seniority(pod).0 && !pods::is_terminating(pod);
        lost.iter().filter(waits).for_each(|pod| steps.delete_pod(pod));
    }
    steps
}

/// On a node with an old and a new pod: deletes the old one once the new one is available or the old one is no longer ready.
fn delete_replaced(observed: &Observed<'_>, running: &[&Arc<Pod>], steps: &mut Steps) {
    if running.len() < 2 {
        return;
    }
    let (mut new, mut old) = (None, None);
    for pod in running {
        let place = if observed.is_new(pod) { &mut new } else { &mut old };
        match place {
            None => *place = Some(*pod),
            Some(_) => steps.delete_pod(pod),
        }
    }
    if let (Some(new), Some(old)) = (new, old)
        && (!pods::is_ready(old) || observed.is_available(new))
    {
        steps.delete_pod(old);
    }
}

/// The next step of a rolling update, when every node has what it should.
pub(super) fn rolling_update(observed: &Observed<'_>) -> Steps {
    match observed.max_surge_and_unavailable() {
        None => Steps::default(),
        Some((0, unavailable)) => replace(observed, unavailable),
        Some((surge, _)) => surge_update(observed, surge),
    }
}

/// The new and the old pod on a node; `None` if there are several of one.
type NewAndOld<'a> = Option<(Option<&'a Arc<Pod>>, Option<&'a Arc<Pod>>)>;

fn new_and_old<'a>(observed: &Observed<'_>, there: &'a [Arc<Pod>]) -> NewAndOld<'a> {
    let (mut new, mut old) = (None, None);
    for pod in there.iter().filter(|pod| !pods::is_terminating(pod)) {
        let place = if observed.is_new(pod) { &mut new } else { &mut old };
        if place.replace(pod).is_some() {
            return None;
        }
    }
    Some((new, old))
}

/// The names of the nodes that should have a pod, and of those that have one.
fn relevant_nodes<'a>(observed: &'a Observed<'_>) -> Vec<&'a str> {
    let runs = observed.nodes.iter().filter(|(_, place)| *place == Placement::Run);
    let mut names: Vec<&str> = runs.filter_map(|(node, _)| node.metadata.name.as_deref()).collect();
    names.extend(observed.pods.keys().map(String::as_str));
    names.sort_unstable();
    names.dedup();
    names
}

/// Deletes old pods, so that they are re-created, at most as many as may be unavailable. Old pods that are not available are
/// deleted in any case.
fn replace(observed: &Observed<'_>, unavailable: i32) -> Steps {
    let mut steps = Steps::default();
    let mut lacking = 0;
    let mut candidates = Vec::new();
    for name in relevant_nodes(observed) {
        match new_and_old(observed, observed.on(name)) {
            None | Some((None, None) | (Some(_), Some(_))) => lacking += 1,
            Some((Some(new), None)) => lacking += i32::from(!observed.is_available(new)),
            Some((None, Some(old))) if observed.is_available(old) => candidates.push(old),
            Some((None, Some(old))) => {
                lacking += 1;
                steps.delete_pod(old);
            }
        }
    }
    let more = usize::try_from(unavailable - lacking).unwrap_or_default();
    candidates.into_iter().take(more).for_each(|pod| steps.delete_pod(pod));
    steps
}

/// Creates new pods beside the old ones, at most `surge` at a time, and deletes an old one when its new one is available.
fn surge_update(observed: &Observed<'_>, surge: i32) -> Steps {
    let mut steps = Steps::default();
    let (mut surging, mut available) = (0, 0);
    let (mut candidates, mut misplaced) = (Vec::new(), Vec::new());
    let runs = |name: &str| {
        let mut places =
            observed.nodes.iter().filter(|(node, _)| node.metadata.name.as_deref() == Some(name));
        places.any(|(_, place)| *place == Placement::Run)
    };
    for name in relevant_nodes(observed) {
        let Some((new, old)) = new_and_old(observed, observed.on(name)) else {
            surging += 1;
            continue;
        };
        available += i32::from(old.or(new).is_some_and(|pod| observed.is_available(pod)));
        match (new, old) {
            (_, None) => {}
            (None, Some(old)) => match (observed.is_available(old), runs(name)) {
                (false, false) => steps.delete_pod(old),
                (false, true) => steps.create.push(name.to_owned()),
                (true, false) => misplaced.push(old),
                (true, true) => candidates.push(name.to_owned()),
            },
            (Some(new), Some(old)) => match observed.is_available(new) {
                true => steps.delete_pod(old),
                false => surging += 1,
            },
        }
    }
    let spare = usize::try_from(available - observed.wanted()).unwrap_or_default();
    misplaced.into_iter().take(spare).for_each(|pod| steps.delete_pod(pod));
    let more = usize::try_from(surge - surging).unwrap_or_default();
    steps.create.extend(candidates.into_iter().take(more));
    steps
}

/// The status.
pub(super) fn status(observed: &Observed<'_>, collisions: i32) -> DaemonSetStatus {
    let old_status = observed.set.status.clone().unwrap_or_default();
    let mut status = DaemonSetStatus {
        observed_generation: observed.set.metadata.generation,
        collision_count: old_status.collision_count.or((collisions > 0).then_some(0)).map(|_| collisions),
        conditions: old_status.conditions,
        ..DaemonSetStatus::default()
    };
    let (mut available, mut updated) = (0, 0);
    for (node, place) in &observed.nodes {
        let there = observed.on(node.metadata.name.as_deref().unwrap_or_default());
        match (place, there.first()) {
            (Placement::Run, first) => {
                status.desired_number_scheduled += 1;
                let Some(pod) = first else { continue };
                status.current_number_scheduled += 1;
                status.number_ready += i32::from(pods::is_ready(pod));
                available += i32::from(observed.is_available(pod));
                updated += i32::from(observed.is_new(pod));
            }
            (_, Some(_)) => status.number_misscheduled += 1,
            (_, None) => {}
        }
    }
    // Left out where they are zero, as they are stored.
    let some = |number: i32| (number != 0).then_some(number);
    status.number_available = some(available);
    status.updated_number_scheduled = some(updated);
    status.number_unavailable = some(status.desired_number_scheduled - available);
    status
}

/// How long until the next ready pod becomes available.
pub(super) fn until_available(observed: &Observed<'_>) -> Option<Duration> {
    let seconds = observed.spec.min_ready_seconds.filter(|seconds| *seconds > 0)?;
    let all = observed.pods.values().flatten().filter_map(|pod| pods::available_at(pod, seconds));
    let next = all.filter(|at| *at > observed.now).min()?;
    Duration::try_from(next.duration_since(observed.now)).ok()
}
