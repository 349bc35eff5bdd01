//! The bridge, and a pair of links for each pod.

use crate::net::Settings;
use crate::net::netlink::{Netlink, OtherEnd, index_of};
use crate::net::protocol::Joined;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

const BRIDGE: &str = "windlass0";
/// A pair that keeps the bridge running while there are no pods, and its other end.
const KEEPER: [&str; 2] = ["windlass1", "windlass2"];
/// How many times the kernel is asked whether the keeper runs, a millisecond apart.
const TIMES: u32 = 1000;
/// What every pod calls its link.
const POD_LINK: &str = "eth0";

/// The links of the node's network namespace.
#[derive(Debug)]
pub(super) struct Links {
    netlink: Netlink,
    loopback: u32,
    bridge: u32,
    prefix: u8,
    gateway: Ipv4Addr,
}

impl Links {
    /// Makes the bridge, in a namespace that has nothing.
    pub(super) fn set_up(settings: &Settings) -> io::Result<Self> {
        let mut netlink = Netlink::open()?;
        let (prefix, gateway) = (settings.pods.prefix(), settings.gateway());
        let loopback = index_of("lo").ok_or(io::ErrorKind::NotFound)?;
        netlink.up(loopback)?;
        netlink.add_bridge(BRIDGE, hardware(gateway))?;
        let bridge = index_of(BRIDGE).ok_or(io::ErrorKind::NotFound)?;
        keep_running(&mut netlink, bridge)?;
        netlink.add_address(bridge, gateway, prefix)?;
        netlink.add_local_range(settings.services.first(), settings.services.prefix(), loopback)?;
        // Whoever asks for anything else is told so at once, and does not wait for an answer that never comes. To tell,
        // the kernel must be willing to forward, though there is nowhere to.
        netlink.add_unreachable_default()?;
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        // Names are answered at port 53, and Services at any.
        fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")?;
        Ok(Self { netlink, loopback, bridge, prefix, gateway })
    }

    /// Puts one end of a new pair into the pod's namespace. One that was there before is replaced.
    pub(super) fn add(&mut self, address: Ipv4Addr, namespace: BorrowedFd<'_>) -> io::Result<Joined> {
        self.remove(address)?;
        let inside = OtherEnd { name: POD_LINK, hardware: hardware(address), namespace: Some(namespace) };
        self.netlink.add_pair(&name(address), self.bridge, &inside)?;
        Ok(Joined { link: POD_LINK.into(), address, prefix: self.prefix, gateway: self.gateway })
    }

    /// Whether packets of the pod arrive: once it has set its end up, the kernel takes a moment.
    pub(super) fn is_running(&mut self, address: Ipv4Addr) -> io::Result<bool> {
        let index = index_of(&name(address)).ok_or(io::ErrorKind::NotFound)?;
        self.netlink.is_running(index)
    }

    /// Makes one address this namespace's own.
    pub(super) fn own(&mut self, address: Ipv4Addr) -> io::Result<()> {
        self.netlink.add_local_range(address, 32, self.loopback)
    }

    /// Removes the pod's pair, if it is there: it is gone when its namespace is.
    pub(super) fn remove(&mut self, address: Ipv4Addr) -> io::Result<()> {
        let Some(index) = index_of(&name(address)) else { return Ok(()) };
        match self.netlink.remove(index) {
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => Ok(()),
            other => other,
        }
    }
}

/// A bridge is set up with one port that always runs. Otherwise it would stop with its last pod, and the kernel lets up to a second
/// pass before it notices that it runs again: a second in which the first pod reaches nobody.
fn keep_running(netlink: &mut Netlink, bridge: u32) -> io::Result<()> {
    let [name, other] = KEEPER;
    let other_end = OtherEnd { name: other, hardware: hardware(Ipv4Addr::LOCALHOST), namespace: None };
    netlink.add_pair(name, bridge, &other_end)?;
    let (keeper, other) =
        (index_of(name).ok_or(io::ErrorKind::NotFound)?, index_of(other).ok_or(io::ErrorKind::NotFound)?);
    netlink.up(other)?;
    for _ in 0..TIMES {
        if netlink.is_running(keeper)? {
            break;
        }
        // Before the runtime begins: there is nothing else that this thread could do.
        let pause = nix::sys::time::TimeSpec::new(0, 1_000_000);
        _ = nix::poll::ppoll(&mut [], Some(pause), None);
    }
    netlink.up(bridge)
}

/// The pair's end beside the bridge, by the pod's address: a name has fifteen characters.
fn name(address: Ipv4Addr) -> String {
    format!("pod{:08x}", u32::from(address))
}

/// A hardware address of the local kind that follows from the address: whoever has it next is reached by what others remember.
fn hardware(address: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = address.octets();
    [0x0a, 0x58, a, b, c, d]
}
