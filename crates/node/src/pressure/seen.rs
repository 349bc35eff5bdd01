//! How much is left on this machine.

use super::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What is left of something, and how much of it there is in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) available: u64,
    pub(crate) capacity: u64,
}

/// What is left of everything; what the machine does not tell is absent, and nobody is short of it.
pub(crate) type Seen = BTreeMap<Signal, Left>;

/// Looks at the machine, and at the disk that this folder is on.
pub(crate) fn look(folder: &Path) -> Seen {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let disk = nix::sys::statvfs::statvfs(folder).ok();
    let room = disk.map(|found| {
        let size = found.fragment_size();
        Left { available: found.blocks_available() * size, capacity: found.blocks() * size }
    });
    let files = disk.map(|found| Left { available: found.files_available(), capacity: found.files() });
    [
        (Signal::Memory, memory(&read("/proc/meminfo"))),
        // A file system without a count of files (btrfs, say) has no end of them.
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

/// What programs could still be given without anything being swapped out.
fn memory(meminfo: &str) -> Option<Left> {
    let field = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    Some(Left { available: field("MemAvailable")?, capacity: field("MemTotal")? })
}

/// The fourth field of `loadavg` has the number of threads behind its slash.
fn pids(loadavg: &str, pid_max: &str, threads_max: &str) -> Option<Left> {
    let there: u64 = loadavg.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()?;
    let capacity: u64 = pid_max.trim().parse::<u64>().ok()?.min(threads_max.trim().parse().ok()?);
    Some(Left { available: capacity.saturating_sub(there), capacity })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_is_left() {
        let text = "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n";
        assert_eq!(memory(text), Some(Left { available: 400 << 10, capacity: 1000 << 10 }));
        let text = "0.20 0.18 0.12 1/80 11206\n";
        assert_eq!(pids(text, "32768\n", "1000\n"), Some(Left { available: 920, capacity: 1000 }));
        let seen = look(Path::new("/proc/self/root"));
        assert!(seen[&Signal::Memory].available <= seen[&Signal::Memory].capacity);
        assert!(seen.contains_key(&Signal::Disk) && seen.contains_key(&Signal::Pids));
    }
}
