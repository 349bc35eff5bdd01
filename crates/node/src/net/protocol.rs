//! The protocol of the network process: one request per connection, and its reply.

use super::{NetError, ServiceMap, Settings};
use crate::ipc;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{BorrowedFd, OwnedFd};
use tokio::net::UnixStream;

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Identify yourself.
    Hello,
    /// Allocate an IP for the pod of this UID.
    Allocate { uid: String },
    /// Release it, and remove the pod's interface.
    Release { uid: String },
    /// Create an interface for this pod in the namespace of the file descriptor.
    Join { uid: String },
    /// Wait until the pod's interface is up.
    Await { uid: String },
    /// Replace the Services.
    Publish { table: ServiceMap },
    /// Connect, and return the connection as a file descriptor.
    Connect { to: SocketAddrV4 },
    /// The allocated IPs, by pod UID.
    ListAllocated,
    /// Terminate.
    End,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Its identity.
    Hello(Hello),
    /// The pod's IP.
    Address(Ipv4Addr),
    /// How to configure the pod's interface.
    Joined(Joined),
    /// The allocated IPs, by pod UID.
    Allocated(Vec<(String, Ipv4Addr)>),
    /// Done; with a file descriptor, if a connection was requested.
    Done,
    /// The connection failed, with this errno.
    NotConnected(Option<i32>),
    /// The request failed, and why.
    Refused(String),
}

/// The identity of a network process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Its process.
    pub(crate) pid: i32,
    /// The start time of that process, in clock ticks: with the PID it is unique.
    pub(crate) started: u64,
    /// Whether it has a user namespace of its own, which pods have to join.
    pub(crate) own_users: bool,
    /// Its settings.
    pub(crate) settings: Settings,
}

/// The configuration of a pod's interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Joined {
    /// The name of the interface.
    pub(crate) link: String,
    /// The pod's IP.
    pub(crate) address: Ipv4Addr,
    /// The prefix length of the pod CIDR.
    pub(crate) prefix: u8,
    /// The default gateway.
    pub(crate) gateway: Ipv4Addr,
}

impl Reply {
    /// The error of a reply that was not expected.
    pub(crate) fn unexpected(self) -> NetError {
        match self {
            Self::Refused(why) => NetError::Refused(why),
            Self::NotConnected(number) => NetError::Connect(
                number.map_or_else(|| io::ErrorKind::TimedOut.into(), io::Error::from_raw_os_error),
            ),
            other => NetError::Refused(format!("unexpected reply of the network process: {other:?}")),
        }
    }
}

/// Reads one message, and its file descriptor.
pub(crate) async fn read<T: DeserializeOwned>(
    stream: &UnixStream,
) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let received = ipc::receive_async(stream).await?;
    Ok(received.map(|(message, descriptors)| (message, descriptors.into_iter().next())))
}

/// Writes one message.
pub(crate) async fn write(
    stream: &UnixStream,
    message: &impl Serialize,
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    ipc::send_async(stream, message, descriptor.as_slice()).await
}
