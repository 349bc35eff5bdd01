//! The first process of a namespace that containers share: it buries orphans, and has nothing that they could find in it.

use super::Fault;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::pivot_root;

/// Returns only with what is wrong.
pub fn pause() -> Fault {
    let attempt = || -> nix::Result<std::convert::Infallible> {
        let _ = rustix::process::setsid();
        let deaths = SigSet::from(Signal::SIGCHLD);
        deaths.thread_block()?;
        leave()?;
        loop {
            while !matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive) | Err(_)) {}
            deaths.wait()?;
        }
    };
    Fault::during("hold the pod's processes")(attempt().unwrap_err().into())
}

/// Leaves the host's files for an empty root: who may look into this process finds nothing.
fn leave() -> nix::Result<()> {
    let none: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(Some("tmpfs"), "/proc", Some("tmpfs"), MsFlags::MS_RDONLY, Some("size=0k"))?;
    nix::unistd::chdir("/proc")?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    nix::unistd::chdir("/")?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
}
