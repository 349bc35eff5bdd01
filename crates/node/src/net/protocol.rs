//! What the network process is asked, and what it answers: one request for each connection, both as JSON in a frame.

use super::{NetError, Settings, Table};
use crate::fds;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use tokio::net::UnixStream;

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Who are you?
    Hello,
    /// An address for the pod of this UID.
    Lend { uid: String },
    /// Take it back, and its interface with it.
    Release { uid: String },
    /// Put an interface for this pod into the namespace that comes along.
    Join { uid: String },
    /// The pod has set its end up: wait until packets arrive.
    Await { uid: String },
    /// These are the Services now.
    Publish { table: Table },
    /// A connection, as a descriptor.
    Connect { to: SocketAddrV4 },
    /// Who holds which address.
    Lent,
    /// End, and everything with you.
    End,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Who it is.
    Hello(Hello),
    /// The pod's address.
    Address(Ipv4Addr),
    /// How the pod is to set up its end.
    Joined(Joined),
    /// Who holds which address.
    Lent(Vec<(String, Ipv4Addr)>),
    /// It is done; a connection comes along where one was asked for.
    Done,
    /// It could not connect: the number of the error.
    NotConnected(Option<i32>),
    /// It is refused, and why.
    Refused(String),
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Its process.
    pub(crate) pid: i32,
    /// When that process started, in the kernel's ticks: with the pid, it names this network and no later one.
    pub(crate) started: u64,
    /// Whether it has a user namespace of its own, which pods must join.
    pub(crate) own_users: bool,
    /// What it was made of.
    pub(crate) settings: Settings,
}

/// How a pod sets up its end of the pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Joined {
    /// Its link.
    pub(crate) link: String,
    /// Its address.
    pub(crate) address: Ipv4Addr,
    /// How many bits the pods' range has in common.
    pub(crate) prefix: u8,
    /// Its way to everything else.
    pub(crate) gateway: Ipv4Addr,
}

impl Reply {
    /// What it was not meant to be, as an error.
    pub(crate) fn unexpected(self) -> NetError {
        match self {
            Self::Refused(why) => NetError::Refused(why),
            Self::NotConnected(number) => NetError::Connect(
                number.map_or_else(|| io::ErrorKind::TimedOut.into(), io::Error::from_raw_os_error),
            ),
            other => NetError::Refused(format!("the network answered out of turn: {other:?}")),
        }
    }
}

/// Reads one message, and what came with it.
pub(crate) async fn read<T: for<'a> Deserialize<'a>>(
    stream: &mut UnixStream,
) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let Some(frame) = fds::receive(stream).await? else { return Ok(None) };
    Ok(Some((serde_json::from_slice(&frame.body)?, frame.descriptor)))
}

/// Writes one message.
pub(crate) async fn write(
    stream: &mut UnixStream,
    message: &impl Serialize,
    descriptor: Option<std::os::fd::BorrowedFd<'_>>,
) -> io::Result<()> {
    fds::send(stream, &serde_json::to_vec(message)?, descriptor).await
}
