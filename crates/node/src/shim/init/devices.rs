//! `/dev`, `/proc` and `/sys` as a container finds them.

use super::Fault;
use super::mounts::{QUIET, Source, folder, make};
use nix::mount::{MsFlags, mount};
use std::os::unix::fs::symlink;
use std::path::Path;

/// The devices that no program can do harm with.
const HARMLESS: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// What of `/proc` can be read and not written.
const FIXED: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/// What of `/proc` and `/sys` cannot be seen.
const HIDDEN: [&str; 10] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/sys/firmware",
];

/// The host's devices, held open.
pub struct Devices {
    nodes: Vec<(&'static str, Source)>,
    shared_memory: Source,
}

impl Devices {
    pub fn open(shared_memory: &Path) -> Result<Self, Fault> {
        let mut nodes = Vec::new();
        for path in HARMLESS {
            nodes.push((path, Source::open(Path::new(path)).map_err(Fault::during(format!("find {path}")))?));
        }
        let shared_memory =
            Source::open(shared_memory).map_err(Fault::during("find the pod's shared memory"))?;
        Ok(Self { nodes, shared_memory })
    }

    /// Makes `/dev`.
    pub fn show(&self, mapped: bool) -> Result<(), Fault> {
        make("tmpfs", "/dev", MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, "mode=755,size=64k")?;
        for (path, source) in &self.nodes {
            source.show(Path::new(path)).map_err(Fault::during(format!("show {path}")))?;
        }
        // Group 5 is that of terminals; in a user namespace there is none but the user's own.
        let terminals = if mapped {
            "newinstance,ptmxmode=0666,mode=0620"
        } else {
            "newinstance,ptmxmode=0666,mode=0620,gid=5"
        };
        make("devpts", "/dev/pts", MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, terminals)?;
        make("mqueue", "/dev/mqueue", QUIET, "")?;
        self.shared_memory.show(Path::new("/dev/shm")).map_err(Fault::during("show /dev/shm"))?;
        let links = [
            ("pts/ptmx", "/dev/ptmx"),
            ("/proc/self/fd", "/dev/fd"),
            ("/proc/self/fd/0", "/dev/stdin"),
            ("/proc/self/fd/1", "/dev/stdout"),
            ("/proc/self/fd/2", "/dev/stderr"),
        ];
        for (to, at) in links {
            symlink(to, at).map_err(Fault::during(format!("make {at}")))?;
        }
        Ok(())
    }
}

/// Mounts the container's own `/proc`.
pub fn proc() -> Result<(), Fault> {
    make("proc", "/proc", QUIET, "")
}

/// Mounts `/sys`, which only tells. A pod on the host's network may not have its own where the user is not root, and does
/// without.
pub fn sys(own_network: bool) -> Result<(), Fault> {
    match make("sysfs", "/sys", QUIET | MsFlags::MS_RDONLY, "") {
        Err(fault) if own_network => Err(fault),
        _ => Ok(()),
    }
}

/// Takes from sight and from reach what would let a container's root into the machine.
pub fn hide() -> Result<(), Fault> {
    let none: Option<&str> = None;
    let hidden = |path: &str, result: nix::Result<()>| {
        result.map_err(|error| Fault::during(format!("cover {path}"))(error.into()))
    };
    for path in FIXED.into_iter().filter(|path| Path::new(path).exists()) {
        hidden(path, mount(Some(path), path, none, MsFlags::MS_BIND, none))?;
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | QUIET;
        hidden(path, mount(none, path, none, flags, none))?;
    }
    for path in HIDDEN {
        let Ok(metadata) = std::fs::symlink_metadata(path) else { continue };
        if metadata.is_dir() {
            hidden(
                path,
                mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::MS_RDONLY | QUIET, Some("size=0k")),
            )?;
        } else {
            hidden(path, mount(Some("/dev/null"), path, none, MsFlags::MS_BIND, none))?;
        }
    }
    Ok(())
}

/// The folders that every program expects, where these paths of the host are shown.
pub fn expected(shown: &[&Path]) -> Result<(), Fault> {
    let home = mode_of_roots_home(shown);
    for (path, mode) in
        [("/etc", 0o755), ("/run", 0o755), ("/root", home), ("/tmp", 0o1777), ("/var/tmp", 0o1777)]
    {
        folder(Path::new(path), mode).map_err(Fault::during(format!("make {path}")))?;
    }
    Ok(())
}

/// The home of root is closed to others, unless something in it is shown: the container may run as another user.
fn mode_of_roots_home(shown: &[&Path]) -> u32 {
    if shown.iter().any(|path| path.starts_with("/root")) { 0o711 } else { 0o700 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_of_root_can_be_passed_through_where_something_in_it_is_shown() {
        assert_eq!(mode_of_roots_home(&[Path::new("/usr"), Path::new("/rootless")]), 0o700);
        assert_eq!(mode_of_roots_home(&[Path::new("/root/src/target/debug")]), 0o711);
    }
}
