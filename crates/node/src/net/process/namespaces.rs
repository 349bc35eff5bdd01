//! The namespaces of the network process, made before it has a second thread.

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use std::fs;

/// Leaves the host's network; where that is refused, the host's users first: then this user alone is known, as itself, and may do
/// everything to what is made here. Says whether it has users of its own.
///
/// # Errors
/// The machine allows neither; the text says what to ask.
pub(crate) fn leave_the_host() -> Result<bool, String> {
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => return Ok(false),
        Err(Errno::EPERM) => {}
        Err(error) => {
            return Err(format!("a network namespace is refused ({error}); `windlass doctor` says more"));
        }
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| {
        format!("a user namespace is refused ({error}); `windlass doctor` says what to change")
    })?;
    let write = |file: &str, text: &str| {
        fs::write(file, text).map_err(|error| format!("cannot write {file}: {error}"))
    };
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|error| format!("a network namespace is refused ({error}); `windlass doctor` says more"))?;
    Ok(true)
}
