//! Eviction thresholds, in the syntax of a kubelet's `--eviction-hard`: `memory.available<100Mi,nodefs.available<10%`.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;
use windlass::Quantity;

/// An eviction signal: something that a machine can run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// Memory, in bytes.
    Memory,
    /// Free space on the file system of the node's directory, in bytes.
    Disk,
    /// Free inodes there.
    Inodes,
    /// Free process IDs.
    Pids,
}

/// A pressure condition of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pressure {
    /// `MemoryPressure`.
    Memory,
    /// `DiskPressure`.
    Disk,
    /// `PIDPressure`.
    Pids,
}

impl Signal {
    const ALL: [Self; 4] = [Self::Memory, Self::Disk, Self::Inodes, Self::Pids];

    /// Its name in thresholds.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory.available",
            Self::Disk => "nodefs.available",
            Self::Inodes => "nodefs.inodesFree",
            Self::Pids => "pid.available",
        }
    }

    /// The resource, as a kubelet names it in messages.
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "ephemeral-storage",
            Self::Inodes => "inodes",
            Self::Pids => "pids",
        }
    }

    /// The condition that is true while its threshold is met.
    pub(crate) fn pressure(self) -> Pressure {
        match self {
            Self::Memory => Pressure::Memory,
            Self::Disk | Self::Inodes => Pressure::Disk,
            Self::Pids => Pressure::Pids,
        }
    }
}

/// The value of a threshold: the least that should be available.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// An amount.
    Amount(u64),
    /// A percentage of the capacity.
    Percent(f64),
}

impl Threshold {
    /// The amount, given the capacity.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub(crate) fn of(self, capacity: u64) -> u64 {
        match self {
            Self::Amount(amount) => amount,
            Self::Percent(percent) => (capacity as f64 * percent / 100.0) as u64,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent = percent.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
                Some(Self::Percent(percent))
            }
            None => Some(Self::Amount(u64::try_from(text.parse::<Quantity>().ok()?.value()).ok()?)),
        }
    }
}

/// When pods are evicted.
#[derive(Debug, Clone, PartialEq)]
pub struct EvictionConfig {
    /// The hard eviction thresholds.
    pub hard: BTreeMap<Signal, Threshold>,
    /// How long a pressure condition stays true after its threshold was last met.
    pub pressure_transition_period: Duration,
    /// How often the machine is measured.
    pub monitoring_interval: Duration,
}

impl Default for EvictionConfig {
    /// A kubelet's defaults, but for `nodefs.available`: a developer's disk is often more than 90% full. There is no `imagefs`, since
    /// images are programs of this machine.
    fn default() -> Self {
        Self {
            hard: [
                (Signal::Memory, Threshold::Amount(100 << 20)),
                (Signal::Disk, Threshold::Amount(1 << 30)),
                (Signal::Inodes, Threshold::Percent(5.0)),
            ]
            .into(),
            pressure_transition_period: Duration::from_secs(300),
            monitoring_interval: Duration::from_secs(10),
        }
    }
}

impl EvictionConfig {
    /// No thresholds: no pod is ever evicted for node pressure.
    pub fn never() -> Self {
        Self { hard: BTreeMap::new(), ..Self::default() }
    }
}

/// A threshold is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid eviction threshold {0:?}: expected one such as nodefs.available<10% or memory.available<100Mi"
)]
pub struct InvalidThreshold(String);

impl FromStr for EvictionConfig {
    type Err = InvalidThreshold;

    /// Thresholds that replace the defaults, separated by commas. Signals that are not named have none.
    fn from_str(text: &str) -> Result<Self, InvalidThreshold> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let one = |part: &str| {
            let (name, value) = part.split_once('<')?;
            let signal = Signal::ALL.into_iter().find(|signal| signal.name() == name.trim())?;
            Some((signal, Threshold::parse(value.trim())?))
        };
        let hard = parts.map(|part| one(part).ok_or_else(|| InvalidThreshold(part.to_owned())));
        Ok(Self { hard: hard.collect::<Result<_, _>>()?, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_written_as_a_kubelet_is_told_them() {
        let usual = "memory.available<100Mi, nodefs.available<1Gi,nodefs.inodesFree<5%";
        assert_eq!(usual.parse(), Ok(EvictionConfig::default()));
        assert_eq!("".parse(), Ok(EvictionConfig::never()));
        let pids: EvictionConfig = "pid.available<12.5%".parse().unwrap();
        assert_eq!(pids.hard[&Signal::Pids].of(1000), 125);
        for wrong in
            ["memory", "memory.available<-1", "disk<10%", "nodefs.available<101%", "memory.available>1"]
        {
            assert_eq!(wrong.parse::<EvictionConfig>(), Err(InvalidThreshold(wrong.to_owned())));
        }
    }
}
