//! The pod's side of joining the network, called by its shim in the pod's own namespaces.

use super::NetError;
use super::netlink::{Netlink, index_of};
use super::protocol::{Joined, Reply, Request};
use super::socket_path::through_directory;
use crate::ipc;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use windlass_clock::Clock;

/// How long the network process has to answer; it answers in a millisecond.
const LIMIT: Duration = Duration::from_secs(10);

/// Joins the network namespace of the calling thread to the node's network, as the pod of this UID, which was lent an address
/// before. It waits for the network process, then sets up the pod's end itself: loopback, address, route, and that any
/// process may listen on any port. Called again, it begins anew. When packets pass is told by what is returned: the kernel takes a
/// few milliseconds, in which there is other work.
///
/// # Errors
/// The network process does not answer or refuses, or the kernel refuses a step.
pub fn join(socket: &Path, uid: &str) -> Result<Joining, NetError> {
    loopback().map_err(step("set up loopback"))?;
    let namespace = File::open("/proc/thread-self/ns/net")?;
    let joined = match ask(socket, &Request::Join { uid: uid.into() }, Some(namespace.as_fd()))? {
        Reply::Joined(joined) => joined,
        other => return Err(other.unexpected()),
    };
    set_up(&joined).map_err(step("set up the pod's interface"))?;
    let stream = asked(socket, &Request::Await { uid: uid.into() }, None)?;
    Ok(Joining { address: joined.address, stream })
}

/// A pod whose interface is there, and about to carry packets.
#[derive(Debug)]
pub struct Joining {
    address: Ipv4Addr,
    /// Where it is told that they pass.
    stream: UnixStream,
}

impl Joining {
    /// Waits until packets pass, and blocks as long.
    ///
    /// # Errors
    /// The network process does not answer, or the interface is gone.
    pub fn wait(self) -> Result<Ipv4Addr, NetError> {
        match answered(&self.stream)? {
            Reply::Done => Ok(self.address),
            other => Err(other.unexpected()),
        }
    }

    /// The same without blocking others.
    pub(crate) async fn finished(self, clock: &Clock) -> io::Result<()> {
        self.stream.set_nonblocking(true)?;
        let stream = tokio::net::UnixStream::from_std(self.stream)?;
        let told = clock.timeout(LIMIT, ipc::receive_async::<Reply>(&stream)).await;
        match told.map_err(io::Error::other)?? {
            Some((Reply::Done, _)) => Ok(()),
            Some((other, _)) => Err(io::Error::other(other.unexpected())),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Sets up loopback, and lets every process listen on every port: all that a pod without a network needs.
///
/// # Errors
/// The kernel refuses.
pub fn loopback() -> io::Result<()> {
    let index = index_of("lo").ok_or(io::ErrorKind::NotFound)?;
    Netlink::open()?.up(index)?;
    fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
}

fn ask(socket: &Path, request: &Request, descriptor: Option<BorrowedFd<'_>>) -> Result<Reply, NetError> {
    answered(&asked(socket, request, descriptor)?)
}

fn asked(
    socket: &Path,
    request: &Request,
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<UnixStream, NetError> {
    let stream = through_directory(socket, |path| UnixStream::connect(path))?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    ipc::send(&stream, request, descriptor.as_slice())?;
    Ok(stream)
}

fn answered(stream: &UnixStream) -> Result<Reply, NetError> {
    let answered = ipc::receive(stream)?.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
    Ok(answered.0)
}

fn set_up(joined: &Joined) -> io::Result<()> {
    let index = index_of(&joined.link).ok_or(io::ErrorKind::NotFound)?;
    let mut netlink = Netlink::open()?;
    netlink.add_address(index, joined.address, joined.prefix)?;
    netlink.up(index)?;
    netlink.add_default_route(joined.gateway, index)
}

fn step(what: &'static str) -> impl FnOnce(io::Error) -> NetError {
    move |error| NetError::Refused(format!("cannot {what}: {error}"))
}
