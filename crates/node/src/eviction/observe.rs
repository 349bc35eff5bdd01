//! Measures what is available on this machine.

use super::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What is available of a resource, and its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Observation {
    pub(crate) available: u64,
    pub(crate) capacity: u64,
}

/// The observations by signal; signals that cannot be measured are absent.
pub(crate) type Observations = BTreeMap<Signal, Observation>;

/// Measures the machine, and the file system of this directory.
pub(crate) fn observe(directory: &Path) -> Observations {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let disk = nix::sys::statvfs::statvfs(directory).ok();
    let room = disk.map(|found| {
        let size = found.fragment_size();
        Observation { available: found.blocks_available() * size, capacity: found.blocks() * size }
    });
    let files = disk.map(|found| Observation { available: found.files_available(), capacity: found.files() });
    [
        (Signal::Memory, memory(&read("/proc/meminfo"))),
        // A file system without a number of inodes (btrfs, say) cannot run out of them.
        (Signal::Disk, room.filter(|room| room.capacity > 0)),
        (Signal::Inodes, files.filter(|files| files.capacity > 0)),
        (
            Signal::Pids,
            pids(
                &read("/proc/loadavg"),
                &read("/proc/sys/kernel/pid_max"),
                &read("/proc/sys/kernel/threads-max"),
            ),
        ),
    ]
    .into_iter()
    .filter_map(|(signal, left)| Some((signal, left?)))
    .collect()
}

/// What can be allocated without swapping.
fn memory(meminfo: &str) -> Option<Observation> {
    let field = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    Some(Observation { available: field("MemAvailable")?, capacity: field("MemTotal")? })
}

/// The fourth field of `loadavg` has the number of threads behind its slash.
fn pids(loadavg: &str, pid_max: &str, threads_max: &str) -> Option<Observation> {
    let there: u64 = loadavg.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()?;
    let capacity: u64 = pid_max.trim().parse::<u64>().ok()?.min(threads_max.trim().parse().ok()?);
    Some(Observation { available: capacity.saturating_sub(there), capacity })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_resources_are_measured() {
        let text = "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n";
        assert_eq!(memory(text), Some(Observation { available: 400 << 10, capacity: 1000 << 10 }));
        let text = "0.20 0.18 0.12 1/80 11206\n";
        assert_eq!(pids(text, "32768\n", "1000\n"), Some(Observation { available: 920, capacity: 1000 }));
        let seen = observe(Path::new("/proc/self/root"));
        assert!(seen[&Signal::Memory].available <= seen[&Signal::Memory].capacity);
        assert!(seen.contains_key(&Signal::Disk) && seen.contains_key(&Signal::Pids));
    }
}
