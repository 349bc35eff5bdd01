//! Which eviction thresholds are met, and which pod is evicted first. Pure.

use super::observe::{Observation, Observations};
use super::{EvictionConfig, Pressure, Signal};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use windlass::quantity::{Format, Quantity, value};
use windlass_component_helpers::qos::qos_class;

/// The least priority of a system-critical pod.
const SYSTEM_CRITICAL: i32 = 2_000_000_000;

/// A threshold that is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MetThreshold {
    pub(crate) signal: Signal,
    pub(crate) threshold: u64,
    pub(crate) available: u64,
}

/// The thresholds that are met, those of memory first.
pub(crate) fn thresholds_met(config: &EvictionConfig, observed: &Observations) -> Vec<MetThreshold> {
    let one = |(signal, Observation { available, capacity }): (&Signal, &Observation)| {
        let threshold = config.hard.get(signal)?.of(*capacity);
        (*available < threshold).then_some(MetThreshold { signal: *signal, threshold, available: *available })
    };
    observed.iter().filter_map(one).collect()
}

/// The pressure conditions of a node, which stay true for the transition period, lest they oscillate.
#[derive(Debug, Default)]
pub(crate) struct PressureTracker(BTreeMap<Pressure, Timestamp>);

impl PressureTracker {
    /// Updates the conditions from the thresholds that are met now. Returns those that are true.
    pub(crate) fn update(
        &mut self,
        met: &[MetThreshold],
        config: &EvictionConfig,
        now: Timestamp,
    ) -> BTreeSet<Pressure> {
        for one in met {
            self.0.insert(one.signal.pressure(), now);
        }
        let current: BTreeSet<Pressure> = met.iter().map(|one| one.signal.pressure()).collect();
        self.0.retain(|pressure, last| {
            let passed = std::time::Duration::try_from(now.duration_since(*last)).unwrap_or_default();
            current.contains(pressure) || passed < config.pressure_transition_period
        });
        self.0.keys().copied().collect()
    }
}

/// What a container uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ContainerUsage {
    pub(crate) memory: u64,
    /// Its writable layer and its logs, in bytes and in files.
    pub(crate) disk: u64,
    pub(crate) files: u64,
    pub(crate) processes: u64,
}

/// What a pod uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PodUsage {
    /// By the container's name.
    pub(crate) containers: BTreeMap<String, ContainerUsage>,
    /// By emptyDir volume, in bytes and in files.
    pub(crate) volumes: BTreeMap<String, (u64, u64)>,
}

impl PodUsage {
    fn of(&self, signal: Signal) -> u64 {
        let containers = self.containers.values().map(|usage| part(usage, signal)).sum::<u64>();
        let volumes = self.volumes.values().map(|(bytes, files)| match signal {
            Signal::Disk => *bytes,
            Signal::Inodes => *files,
            Signal::Memory | Signal::Pids => 0,
        });
        containers + volumes.sum::<u64>()
    }
}

fn part(usage: &ContainerUsage, signal: Signal) -> u64 {
    match signal {
        Signal::Memory => usage.memory,
        Signal::Disk => usage.disk,
        Signal::Inodes => usage.files,
        Signal::Pids => usage.processes,
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

/// Whether a pod is system-critical: it is never evicted.
pub(crate) fn is_critical(pod: &Pod) -> bool {
    priority(pod) >= SYSTEM_CRITICAL
}

/// The pod that is evicted first: one that exceeds its requests, then one of lower priority, then the one that exceeds them most.
pub(crate) fn first_to_evict<'p>(
    signal: Signal,
    pods: &[(&'p Pod, PodUsage)],
) -> Option<(&'p Pod, PodUsage)> {
    let key = |(pod, usage): &&(&Pod, PodUsage)| {
        let (used, wanted) = (usage.of(signal), requested(pod, signal.resource()));
        // There are no requests for PIDs.
        let exceeds = signal != Signal::Pids && used > wanted;
        (Reverse(exceeds), priority(pod), Reverse(used.saturating_sub(wanted)))
    };
    pods.iter().filter(|(pod, _)| !is_critical(pod)).min_by_key(key).cloned()
}

/// The message of an eviction, in a kubelet's words.
pub(crate) fn message(met: &MetThreshold, pod: &Pod, usage: &PodUsage) -> String {
    let resource = met.signal.resource();
    let mut text = format!(
        "The node was low on resource: {resource}. Threshold quantity: {}, available: {}. ",
        amount(met.threshold),
        amount(met.available)
    );
    for container in containers(pod) {
        let used = usage.containers.get(&container.name).map_or(0, |usage| part(usage, met.signal));
        let (wanted, written) = asked(container, false, resource).unwrap_or((0, "0".to_owned()));
        if used > wanted && met.signal != Signal::Pids {
            text += &format!(
                "Container {} was using {}, request is {written}, has larger consumption of {resource}. ",
                container.name,
                amount(used)
            );
        }
    }
    text
}

/// The message of a pod that exceeds a storage limit of its own; `None` if it does not.
pub(crate) fn exceeded_limit(pod: &Pod, usage: &PodUsage) -> Option<String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    for volume in volumes {
        let limit = volume.empty_dir.as_ref().and_then(|source| source.size_limit.as_ref());
        let used = usage.volumes.get(&volume.name).map_or(0, |(bytes, _)| *bytes);
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
    // The pod has a limit where each of its containers has one.
    let most = limits.iter().map(|(_, (most, _))| most).sum::<u64>();
    if !limits.is_empty() && limits.len() == main.len() && usage.of(Signal::Disk) > most {
        let most = amount(most);
        return Some(format!(
            "Pod ephemeral local storage usage exceeds the total limit of containers {most}. "
        ));
    }
    limits.into_iter().find_map(|(container, (most, written))| {
        let used = usage.containers.get(&container.name).map_or(0, |usage| usage.disk);
        let name = &container.name;
        let text = format!("Container {name} exceeded its local ephemeral storage limit {written:?}. ");
        (most > 0 && used > most).then_some(text)
    })
}

/// Whether a pod has limits for local storage.
pub(crate) fn has_storage_limits(pod: &Pod) -> bool {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let sized = |volume: &k8s_openapi::api::core::v1::Volume| {
        let source = volume.empty_dir.as_ref();
        source.is_some_and(|source| source.size_limit.is_some() && source.medium.as_deref() != Some("Memory"))
    };
    volumes.into_iter().any(sized)
        || containers(pod).any(|container| asked(container, true, "ephemeral-storage").is_some())
}

/// The message of a pod that is rejected because of node pressure; `None` if it is admitted. Under memory pressure alone, only
/// BestEffort pods are rejected.
pub(crate) fn rejected(pod: &Pod, pressure: &BTreeSet<Pressure>) -> Option<String> {
    if pressure.is_empty() || is_critical(pod) {
        return None;
    }
    let spec = pod.spec.as_ref()?;
    if pressure.iter().eq([&Pressure::Memory]) {
        let tolerates = spec.tolerations.iter().flatten().any(|toleration| {
            let key = toleration.key.as_deref();
            key.is_none_or(|key| key == "node.kubernetes.io/memory-pressure")
                && toleration.effect.as_deref().is_none_or(|effect| effect == "NoSchedule")
        });
        if qos_class(spec) != "BestEffort" || tolerates {
            return None;
        }
    }
    let names: Vec<&str> = pressure.iter().map(|pressure| pressure.condition()).collect();
    Some(format!("The node had condition: [{}]. ", names.join(" ")))
}

impl Pressure {
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
