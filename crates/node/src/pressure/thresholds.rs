//! How little of something is too little, as a kubelet is told it: `memory.available<100Mi,nodefs.available<10%`.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;
use windlass::Quantity;

/// Something that a machine can run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// Memory, in bytes.
    Memory,
    /// Room on the disk that the node's folder is on, in bytes.
    Disk,
    /// Files that can still be made there.
    Inodes,
    /// Processes that can still be started.
    Pids,
}

/// A node's condition of being short of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Short {
    /// `MemoryPressure`.
    Memory,
    /// `DiskPressure`.
    Disk,
    /// `PIDPressure`.
    Pids,
}

impl Signal {
    const ALL: [Self; 4] = [Self::Memory, Self::Disk, Self::Inodes, Self::Pids];

    /// As a kubelet calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory.available",
            Self::Disk => "nodefs.available",
            Self::Inodes => "nodefs.inodesFree",
            Self::Pids => "pid.available",
        }
    }

    /// What there is too little of, as a kubelet tells it.
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "ephemeral-storage",
            Self::Inodes => "inodes",
            Self::Pids => "pids",
        }
    }

    /// The condition that it brings a node into.
    pub(crate) fn short(self) -> Short {
        match self {
            Self::Memory => Short::Memory,
            Self::Disk | Self::Inodes => Short::Disk,
            Self::Pids => Short::Pids,
        }
    }
}

/// The least that there should be of something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Least {
    /// So much.
    Amount(u64),
    /// So many hundredths of all there is.
    Percent(f64),
}

impl Least {
    /// The amount, of so much in all.
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

/// When a node is short of something, and pods have to go for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Eviction {
    /// The least that there should be of each.
    pub hard: BTreeMap<Signal, Least>,
    /// How long a node that was short of something says so after it is no more.
    pub transition: Duration,
    /// How often the machine is looked at.
    pub every: Duration,
}

impl Default for Eviction {
    /// As a kubelet's, but for the disk: a developer's is often fuller than nine tenths, and nothing else would run there. There
    /// is no file system of images: they are programs of this machine.
    fn default() -> Self {
        Self {
            hard: [
                (Signal::Memory, Least::Amount(100 << 20)),
                (Signal::Disk, Least::Amount(1 << 30)),
                (Signal::Inodes, Least::Percent(5.0)),
            ]
            .into(),
            transition: Duration::from_secs(300),
            every: Duration::from_secs(10),
        }
    }
}

impl Eviction {
    /// A node that is never short of anything.
    pub fn never() -> Self {
        Self { hard: BTreeMap::new(), ..Self::default() }
    }
}

/// Thresholds that are not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no threshold such as nodefs.available<10% or memory.available<100Mi")]
pub struct NoThreshold(String);

impl FromStr for Eviction {
    type Err = NoThreshold;

    /// Thresholds instead of the usual ones, separated by commas; what is not named has none. Without any, pods never have to go.
    fn from_str(text: &str) -> Result<Self, NoThreshold> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let one = |part: &str| {
            let (name, least) = part.split_once('<')?;
            let signal = Signal::ALL.into_iter().find(|signal| signal.name() == name.trim())?;
            Some((signal, Least::parse(least.trim())?))
        };
        let hard = parts.map(|part| one(part).ok_or_else(|| NoThreshold(part.to_owned())));
        Ok(Self { hard: hard.collect::<Result<_, _>>()?, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_written_as_a_kubelet_is_told_them() {
        let usual = "memory.available<100Mi, nodefs.available<1Gi,nodefs.inodesFree<5%";
        assert_eq!(usual.parse(), Ok(Eviction::default()));
        assert_eq!("".parse(), Ok(Eviction::never()));
        let pids: Eviction = "pid.available<12.5%".parse().unwrap();
        assert_eq!(pids.hard[&Signal::Pids].of(1000), 125);
        for wrong in
            ["memory", "memory.available<-1", "disk<10%", "nodefs.available<101%", "memory.available>1"]
        {
            assert_eq!(wrong.parse::<Eviction>(), Err(NoThreshold(wrong.to_owned())));
        }
    }
}
