//! User namespaces: the pod's, in which the node's user is itself, and a container's, in which it has the number asked for.

use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs::{File, write};
use std::io;

/// Enters the user namespace that a pod needs: the one of the process `of`, or one of its own where the caller may not mount.
/// Returns whether it is in one now.
pub fn enter(of: Option<i32>) -> io::Result<bool> {
    if let Some(pid) = of {
        let namespace = File::open(format!("/proc/{pid}/ns/user"))?;
        setns(namespace, CloneFlags::CLONE_NEWUSER)?;
        return Ok(true);
    }
    if capabilities(None)?.effective.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::SETUID) {
        return Ok(false);
    }
    become_user(geteuid().as_raw(), getegid().as_raw())?;
    Ok(true)
}

/// Makes a user namespace that has one user and one group: the caller's, which have these numbers in it.
pub fn become_user(user: u32, group: u32) -> io::Result<()> {
    let (outer_user, outer_group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // Without this nobody but root may map a group.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", format!("{user} {outer_user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {outer_group} 1"))
}
