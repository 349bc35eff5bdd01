//! Links, addresses and routes of the network namespace this process is in, asked of the kernel over its routing socket.
//!
//! Half a dozen requests, each answered before the call that sends it returns; so no library, no tasks, and nothing to parse but
//! an error number.
//!
//! The crates for this are several thousand lines of types and a task that must be driven; here one blocking request at a
//! time is needed, in processes of one thread before there is a runtime, and in every shim. A veth pair is made by one
//! message, with one end in the bridge and the other in the pod's namespace, which is passed as a file descriptor: no
//! process changes its namespace back and forth.

mod message;

use message::{CREATE, Message, flags_of_link, outcome};
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Of a veth: the attribute that describes its other end. Not among the constants of libc.
const VETH_INFO_PEER: u16 = 1;

/// A routing socket. It speaks of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    number: u32,
}

impl Netlink {
    /// Opens one in the current namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )?;
        Ok(Self { socket, number: 0 })
    }

    /// Makes a bridge with this hardware address, down. Of its own it would take the lowest of its ports', and change it.
    pub(crate) fn add_bridge(&mut self, name: &str, hardware: [u8; 6]) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWLINK, CREATE);
        message.link(0, 0);
        message.text(libc::IFLA_IFNAME, name);
        message.attribute(libc::IFLA_ADDRESS, &hardware);
        let info = message.nest(libc::IFLA_LINKINFO);
        message.text(libc::IFLA_INFO_KIND, "bridge");
        message.close(info);
        self.ask(message)
    }

    /// Makes a pair of links: `name` here, up and a port of `bridge`, and the other end where it says.
    pub(crate) fn add_pair(&mut self, name: &str, bridge: u32, other: &OtherEnd<'_>) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWLINK, CREATE);
        message.link(0, libc::IFF_UP);
        message.text(libc::IFLA_IFNAME, name);
        message.attribute(libc::IFLA_MASTER, &bridge.to_ne_bytes());
        let info = message.nest(libc::IFLA_LINKINFO);
        message.text(libc::IFLA_INFO_KIND, "veth");
        let data = message.nest(libc::IFLA_INFO_DATA);
        let peer = message.nest(VETH_INFO_PEER);
        message.link(0, 0);
        message.text(libc::IFLA_IFNAME, other.name);
        message.attribute(libc::IFLA_ADDRESS, &other.hardware);
        if let Some(namespace) = other.namespace {
            message.attribute(libc::IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
        }
        message.close(peer);
        message.close(data);
        message.close(info);
        self.ask(message)
    }

    /// Sets a link up.
    pub(crate) fn up(&mut self, index: u32) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWLINK, 0);
        message.link(index, libc::IFF_UP);
        self.ask(message)
    }

    /// Whether a link carries packets: the kernel takes a moment to notice that both ends of a pair are up.
    pub(crate) fn is_running(&mut self, index: u32) -> io::Result<bool> {
        let mut message = Message::new(libc::RTM_GETLINK, 0);
        message.link(index, 0);
        let flags = self.ask_flags(message)?.unwrap_or_default();
        Ok(flags & libc::IFF_RUNNING.cast_unsigned() != 0)
    }

    /// Removes a link, and the other end of it with it.
    pub(crate) fn remove(&mut self, index: u32) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_DELLINK, 0);
        message.link(index, 0);
        self.ask(message)
    }

    /// Gives a link an address.
    pub(crate) fn add_address(&mut self, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        message.address(prefix, index);
        message.attribute(libc::IFA_LOCAL, &address.octets());
        message.attribute(libc::IFA_ADDRESS, &address.octets());
        self.ask(message)
    }

    /// Sends everything that has no way of its own by `gateway`.
    pub(crate) fn add_default_route(&mut self, gateway: Ipv4Addr, index: u32) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        message.route(0, libc::RT_TABLE_MAIN, libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST);
        message.attribute(libc::RTA_GATEWAY, &gateway.octets());
        message.attribute(libc::RTA_OIF, &index.to_ne_bytes());
        self.ask(message)
    }

    /// Tells who asks for anything else at once that there is no way.
    pub(crate) fn add_unreachable_default(&mut self) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        message.route(0, libc::RT_TABLE_MAIN, libc::RT_SCOPE_UNIVERSE, libc::RTN_UNREACHABLE);
        self.ask(message)
    }

    /// Makes a whole range this namespace's own: whoever listens on one of its addresses is reached.
    pub(crate) fn add_local_range(&mut self, first: Ipv4Addr, prefix: u8, index: u32) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        message.route(prefix, libc::RT_TABLE_LOCAL, libc::RT_SCOPE_HOST, libc::RTN_LOCAL);
        message.attribute(libc::RTA_DST, &first.octets());
        message.attribute(libc::RTA_OIF, &index.to_ne_bytes());
        self.ask(message)
    }

    fn ask(&mut self, message: Message) -> io::Result<()> {
        self.ask_flags(message).map(|_| ())
    }

    /// Asks, and hears the flags of the link that was asked about, if one was.
    fn ask_flags(&mut self, message: Message) -> io::Result<Option<u32>> {
        self.number = self.number.wrapping_add(1);
        let bytes = message.bytes(self.number);
        let to_the_kernel = NetlinkAddr::new(0, 0);
        retrying(|| sendto(self.socket.as_raw_fd(), &bytes, &to_the_kernel, MsgFlags::empty()))?;
        let (mut answer, mut flags) = ([0; 8192], None);
        loop {
            let length = retrying(|| recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty()))?;
            if let Some(outcome) = outcome(&answer[..length], self.number) {
                return outcome.map(|()| flags).map_err(io::Error::from_raw_os_error);
            }
            flags = flags_of_link(&answer[..length], self.number).or(flags);
        }
    }
}

/// The other end of a pair.
#[derive(Debug)]
pub(crate) struct OtherEnd<'a> {
    /// What it is called where it lies.
    pub(crate) name: &'a str,
    /// Its hardware address.
    pub(crate) hardware: [u8; 6],
    /// In which namespace; none for the same.
    pub(crate) namespace: Option<BorrowedFd<'a>>,
}

/// The number of a link of the current namespace; none where there is no such link.
pub(crate) fn index_of(name: &str) -> Option<u32> {
    if_nametoindex(name).ok()
}

fn retrying<T>(mut call: impl FnMut() -> nix::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(nix::Error::EINTR) => {}
            other => return other.map_err(io::Error::from),
        }
    }
}
