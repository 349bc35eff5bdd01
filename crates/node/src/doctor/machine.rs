//! What a machine says about itself.

use nix::sys::resource::{Resource, getrlimit};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Settings and programs of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Machine {
    /// Whether this user may make namespaces without one of users: it has `CAP_SYS_ADMIN`. Root in a container often has not.
    pub(super) administers: bool,
    /// Whether this is root.
    pub(super) root: bool,
    /// `user.max_user_namespaces`.
    pub(super) user_namespaces: Option<u64>,
    /// Debian's `kernel.unprivileged_userns_clone`.
    pub(super) unprivileged_clone: Option<u64>,
    /// Ubuntu's `kernel.apparmor_restrict_unprivileged_userns`.
    pub(super) apparmor_restricts: Option<u64>,
    /// How many files a process may open at most.
    pub(super) files: Option<u64>,
    /// Programs that recipes run, and where they are.
    pub(super) programs: Vec<(&'static Wanted, Option<PathBuf>)>,
}

/// A program that a recipe runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The image.
    pub(super) image: &'static str,
    /// The program.
    program: &'static str,
    /// What brings it, on Debian.
    pub(super) package: &'static str,
}

/// What the catalogue's recipes run.
pub(super) const WANTED: &[Wanted] = &[
    Wanted { image: "busybox", program: "busybox", package: "busybox-static" },
    Wanted { image: "memcached", program: "memcached", package: "memcached" },
    Wanted { image: "nginx", program: "nginx", package: "nginx-light" },
    Wanted { image: "postgres", program: "postgres", package: "postgresql" },
    Wanted { image: "redis", program: "redis-server", package: "redis-server" },
];

/// Looks at this machine.
pub(super) fn look() -> Machine {
    let setting =
        |name: &str| fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?.trim().parse().ok();
    Machine {
        administers: administers(&fs::read_to_string("/proc/self/status").unwrap_or_default()),
        root: nix::unistd::geteuid().is_root(),
        user_namespaces: setting("user/max_user_namespaces"),
        unprivileged_clone: setting("kernel/unprivileged_userns_clone"),
        apparmor_restricts: setting("kernel/apparmor_restrict_unprivileged_userns"),
        files: getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(_, hard)| hard),
        programs: WANTED.iter().map(|wanted| (wanted, find(wanted.program))).collect(),
    }
}

/// Whether the effective capabilities have `CAP_SYS_ADMIN`.
fn administers(status: &str) -> bool {
    const SYS_ADMIN: u32 = 21;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << SYS_ADMIN) != 0)
}

/// Where a program is: where a shell would find it, where root's would, or where Debian keeps servers of several versions.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual =
        ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from);
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort();
    let folders = std::env::split_paths(&path).chain(usual).chain(versions.into_iter().rev());
    folders.map(|folder| folder.join(program)).find(|file| runs(file))
}

fn runs(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_told_by_capabilities_and_not_by_the_user() {
        assert!(administers("Uid:\t0\nCapPrm:\t0\nCapEff:\t000001ffffffffff\n"));
        // As root is in a container of the usual kind.
        assert!(!administers("Uid:\t0\nCapEff:\t00000000a80425fb\n"));
        assert!(!administers(""));
    }
}
