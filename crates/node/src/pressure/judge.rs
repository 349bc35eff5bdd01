//! What a node is short of, and which pod has to go for it. Pure.

use super::seen::{Left, Seen};
use super::{Eviction, Short, Signal};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use windlass::quantity::{Format, Quantity, value};

/// The priority from which on a pod is one of the system's own.
const SYSTEM: i32 = 2_000_000_000;

/// A threshold that is crossed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crossed {
    pub(crate) signal: Signal,
    pub(crate) least: u64,
    pub(crate) available: u64,
}

/// Which thresholds are crossed, those of memory first.
pub(crate) fn crossed(eviction: &Eviction, seen: &Seen) -> Vec<Crossed> {
    let one = |(signal, Left { available, capacity }): (&Signal, &Left)| {
        let least = eviction.hard.get(signal)?.of(*capacity);
        (*available < least).then_some(Crossed { signal: *signal, least, available: *available })
    };
    seen.iter().filter_map(one).collect()
}

/// What a node says it is short of: it goes on saying so for a while, lest it sway.
#[derive(Debug, Default)]
pub(crate) struct Shortages(BTreeMap<Short, Timestamp>);

impl Shortages {
    /// Takes in what is crossed now. Answers what the node is short of.
    pub(crate) fn after(
        &mut self,
        crossed: &[Crossed],
        eviction: &Eviction,
        now: Timestamp,
    ) -> BTreeSet<Short> {
        for one in crossed {
            self.0.insert(one.signal.short(), now);
        }
        let current: BTreeSet<Short> = crossed.iter().map(|one| one.signal.short()).collect();
        self.0.retain(|short, last| {
            let passed = std::time::Duration::try_from(now.duration_since(*last)).unwrap_or_default();
            current.contains(short) || passed < eviction.transition
        });
        self.0.keys().copied().collect()
    }
}

/// What a container holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) memory: u64,
    /// What it wrote into its root and its log, in bytes and in files.
    pub(crate) disk: u64,
    pub(crate) files: u64,
    pub(crate) processes: u64,
}

/// What a pod holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PodHeld {
    /// By the container's name.
    pub(crate) containers: BTreeMap<String, Held>,
    /// By the name of an emptyDir, in bytes and in files.
    pub(crate) volumes: BTreeMap<String, (u64, u64)>,
}

impl PodHeld {
    fn of(&self, signal: Signal) -> u64 {
        let containers = self.containers.values().map(|held| part(held, signal)).sum::<u64>();
        let volumes = self.volumes.values().map(|(bytes, files)| match signal {
            Signal::Disk => *bytes,
            Signal::Inodes => *files,
            Signal::Memory | Signal::Pids => 0,
        });
        containers + volumes.sum::<u64>()
    }
}

fn part(held: &Held, signal: Signal) -> u64 {
    match signal {
        Signal::Memory => held.memory,
        Signal::Disk => held.disk,
        Signal::Inodes => held.files,
        Signal::Pids => held.processes,
    }
}

fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.as_ref();
    spec.into_iter().flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()))
}

fn asked(container: &Container, limit: bool, resource: &str) -> Option<(u64, String)> {
    let all = container.resources.as_ref()?;
    let side = if limit { all.limits.as_ref()? } else { all.requests.as_ref()? };
    let amount = side.get(resource)?;
    Some((u64::try_from(value(amount)?).ok()?, amount.0.clone()))
}

fn requested(pod: &Pod, resource: &str) -> u64 {
    let main = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    main.iter().filter_map(|container| asked(container, false, resource)).map(|(amount, _)| amount).sum()
}

fn priority(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0)
}

/// Whether a pod is of the system: it is never made to go.
pub(crate) fn is_critical(pod: &Pod) -> bool {
    priority(pod) >= SYSTEM
}

/// Which of these pods goes first: one that holds more than it asked for, then the less important, then the greediest.
pub(crate) fn first<'p>(signal: Signal, pods: &[(&'p Pod, PodHeld)]) -> Option<(&'p Pod, PodHeld)> {
    let key = |(pod, held): &&(&Pod, PodHeld)| {
        let (used, wanted) = (held.of(signal), requested(pod, signal.resource()));
        // How many processes or files it will have nobody asks beforehand.
        let exceeds = signal != Signal::Pids && used > wanted;
        (Reverse(exceeds), priority(pod), Reverse(used.saturating_sub(wanted)))
    };
    pods.iter().filter(|(pod, _)| !is_critical(pod)).min_by_key(key).cloned()
}

/// Why a pod has to go, as a kubelet tells it.
pub(crate) fn message(crossed: &Crossed, pod: &Pod, held: &PodHeld) -> String {
    let resource = crossed.signal.resource();
    let mut text = format!(
        "The node was low on resource: {resource}. Threshold quantity: {}, available: {}. ",
        amount(crossed.least),
        amount(crossed.available)
    );
    for container in containers(pod) {
        let used = held.containers.get(&container.name).map_or(0, |held| part(held, crossed.signal));
        let (wanted, written) = asked(container, false, resource).unwrap_or((0, "0".to_owned()));
        if used > wanted && crossed.signal != Signal::Pids {
            text += &format!(
                "Container {} was using {}, request is {written}, has larger consumption of {resource}. ",
                container.name,
                amount(used)
            );
        }
    }
    text
}

/// Why a pod that holds more on the disk than it may has to go; none where it does not.
pub(crate) fn exceeds(pod: &Pod, held: &PodHeld) -> Option<String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    for volume in volumes {
        let limit = volume.empty_dir.as_ref().and_then(|source| source.size_limit.as_ref());
        let used = held.volumes.get(&volume.name).map_or(0, |(bytes, _)| *bytes);
        if let Some(limit) = limit
            && value(limit)
                .and_then(|most| u64::try_from(most).ok())
                .is_some_and(|most| most > 0 && used > most)
        {
            return Some(format!(
                "Usage of EmptyDir volume {:?} exceeds the limit {:?}. ",
                volume.name, limit.0
            ));
        }
    }
    let main = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let limits: Vec<_> =
        main.iter().filter_map(|one| Some((one, asked(one, true, "ephemeral-storage")?))).collect();
    // The pod as a whole is bounded where each of its containers is.
    let most = limits.iter().map(|(_, (most, _))| most).sum::<u64>();
    if !limits.is_empty() && limits.len() == main.len() && held.of(Signal::Disk) > most {
        let most = amount(most);
        return Some(format!(
            "Pod ephemeral local storage usage exceeds the total limit of containers {most}. "
        ));
    }
    limits.into_iter().find_map(|(container, (most, written))| {
        let used = held.containers.get(&container.name).map_or(0, |held| held.disk);
        let name = &container.name;
        let text = format!("Container {name} exceeded its local ephemeral storage limit {written:?}. ");
        (most > 0 && used > most).then_some(text)
    })
}

/// Whether a pod says how much it may hold on the disk.
pub(crate) fn is_bounded(pod: &Pod) -> bool {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let sized = |volume: &k8s_openapi::api::core::v1::Volume| {
        let source = volume.empty_dir.as_ref();
        source.is_some_and(|source| source.size_limit.is_some() && source.medium.as_deref() != Some("Memory"))
    };
    volumes.into_iter().any(sized)
        || containers(pod).any(|container| asked(container, true, "ephemeral-storage").is_some())
}

/// Why a new pod is not taken in, as a kubelet tells it; none where it is. Short of memory, only those that ask for none are not.
pub(crate) fn refused(pod: &Pod, short: &BTreeSet<Short>) -> Option<String> {
    if short.is_empty() || is_critical(pod) {
        return None;
    }
    let spec = pod.spec.as_ref()?;
    if short.iter().eq([&Short::Memory]) {
        let tolerates = spec.tolerations.iter().flatten().any(|toleration| {
            let key = toleration.key.as_deref();
            key.is_none_or(|key| key == "node.kubernetes.io/memory-pressure")
                && toleration.effect.as_deref().is_none_or(|effect| effect == "NoSchedule")
        });
        if crate::pods::qos::class(spec) != "BestEffort" || tolerates {
            return None;
        }
    }
    let names: Vec<&str> = short.iter().map(|short| short.condition()).collect();
    Some(format!("The node had condition: [{}]. ", names.join(" ")))
}

impl Short {
    /// The name of the condition.
    pub(crate) fn condition(self) -> &'static str {
        match self {
            Self::Memory => "MemoryPressure",
            Self::Disk => "DiskPressure",
            Self::Pids => "PIDPressure",
        }
    }
}

/// A number of bytes, as the kubelet's messages have it.
pub(crate) fn amount(number: u64) -> String {
    Quantity::new(i64::try_from(number).unwrap_or(i64::MAX), Format::BinarySI).to_string()
}
