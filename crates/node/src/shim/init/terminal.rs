//! A terminal in the container's own `/dev/pts`; its other side goes to the shim.

use super::super::protocol::Staged;
use super::super::spec::Identity;
use super::Fault;
use crate::ipc;
use rustix::fs::{Gid, Mode, OFlags, Uid, fchown};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Opens a terminal, makes it the session's, and returns it three times, as the three streams.
pub fn open(socket: &UnixStream, identity: &Identity) -> Result<Vec<OwnedFd>, Fault> {
    attempt(socket, identity).map_err(Fault::during("open a terminal"))
}

fn attempt(socket: &UnixStream, identity: &Identity) -> io::Result<Vec<OwnedFd>> {
    let other_side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&other_side)?;
    let name = ptsname(&other_side, Vec::new())?;
    let terminal = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    // Its user may open it again by name. In a user namespace there is but one user.
    let _ = fchown(&terminal, Some(Uid::from_raw(identity.user)), None::<Gid>);
    rustix::process::ioctl_tiocsctty(&terminal)?;
    ipc::send(socket, &Staged::Terminal, &[other_side.as_fd()])?;
    Ok(vec![terminal.try_clone()?, terminal.try_clone()?, terminal])
}
