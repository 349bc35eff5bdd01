//! The IPs of nodes and pods. Nothing can be reached there: all that matters is that they are unique.
//!
//! Nodes have IPs in 10.127.0.0/16. Each has a pod CIDR of 16,384 IPs in 10.128.0.0/9, in its `spec.podCIDR`, so that nodes
//! that join later choose another.

use std::collections::{HashMap, HashSet};

/// The number of pod CIDRs.
pub(super) const RANGES: u32 = 512;
/// The number of IPs in each.
const SIZE: u32 = 1 << 14;

/// A node's pod CIDR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Range(u32);

impl Range {
    /// The first that is not taken. When all are, they are shared.
    pub(super) fn free(taken: &HashSet<Self>) -> Self {
        (0..RANGES).map(Self).find(|range| !taken.contains(range)).unwrap_or(Self(0))
    }

    /// From `spec.podCIDR`, if it is one of these.
    pub(super) fn parse(cidr: &str) -> Option<Self> {
        let address = cidr.strip_suffix("/18")?.parse::<std::net::Ipv4Addr>().ok()?;
        let offset = u32::from(address).checked_sub(Self(0).at(0))?;
        (offset.is_multiple_of(SIZE) && offset / SIZE < RANGES).then_some(Self(offset / SIZE))
    }

    pub(super) fn cidr(self) -> String {
        format!("{}/18", text(self.at(0)))
    }

    /// The IP of the node itself.
    pub(super) fn host(self) -> String {
        format!("10.127.{}.{}", self.0 / 250, self.0 % 250 + 1)
    }

    fn at(self, offset: u32) -> u32 {
        (10 << 24) + (128 << 16) + self.0 * SIZE + offset
    }
}

fn text(address: u32) -> String {
    std::net::Ipv4Addr::from(address).to_string()
}

/// The pod IPs of a node, by pod UID.
#[derive(Debug)]
pub(super) struct Addresses {
    range: Range,
    by_pod: HashMap<String, u32>,
    used: HashSet<u32>,
    next: u32,
}

impl Addresses {
    pub(super) fn new(range: Range) -> Self {
        Self { range, by_pod: HashMap::new(), used: HashSet::new(), next: 0 }
    }

    /// Marks the IP of a pod that has one already as used.
    pub(super) fn reserve(&mut self, uid: &str, address: &str) {
        let Ok(address) = address.parse::<std::net::Ipv4Addr>() else { return };
        let offset = u32::from(address).wrapping_sub(self.range.at(0));
        if offset < SIZE && self.used.insert(offset) {
            self.by_pod.insert(uid.to_owned(), offset);
        }
    }

    /// The IP of a pod: the one that it has, or a free one.
    pub(super) fn allocate(&mut self, uid: &str) -> Option<String> {
        if let Some(offset) = self.by_pod.get(uid) {
            return Some(text(self.range.at(*offset)));
        }
        // The first and the last of each 256 look like network and broadcast addresses.
        let usable = |offset: &u32| !matches!(offset % 256, 0 | 255);
        let from = self.next;
        let free =
            (from..SIZE).chain(0..from).find(|offset| usable(offset) && !self.used.contains(offset))?;
        self.next = free + 1;
        self.used.insert(free);
        self.by_pod.insert(uid.to_owned(), free);
        Some(text(self.range.at(free)))
    }

    /// Releases the IP of a deleted pod.
    pub(super) fn release(&mut self, uid: &str) {
        if let Some(offset) = self.by_pod.remove(uid) {
            self.used.remove(&offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_a_range_and_each_pod_an_address_in_it() {
        let first = Range::free(&HashSet::new());
        assert_eq!((first.cidr().as_str(), first.host().as_str()), ("10.128.0.0/18", "10.127.0.1"));
        let taken = ["10.128.0.0/18", "192.0.2.0/18", "10.128.64.0/24", "10.128.64.7/18"];
        let second = Range::free(&taken.into_iter().filter_map(Range::parse).collect());
        assert_eq!(second.cidr(), "10.128.64.0/18");
        assert_eq!((0..RANGES).map(Range).find(|range| Range::parse(&range.cidr()) != Some(*range)), None);
        let mut addresses = Addresses::new(second);
        addresses.reserve("old", "10.128.64.1");
        addresses.reserve("elsewhere", "10.128.0.7");
        assert_eq!(addresses.allocate("a").as_deref(), Some("10.128.64.2"));
        assert_eq!(addresses.allocate("a").as_deref(), Some("10.128.64.2"), "it keeps it");
        assert_eq!(addresses.allocate("old").as_deref(), Some("10.128.64.1"));
    }

    #[test]
    fn a_range_is_used_up_and_given_back() {
        let mut addresses = Addresses::new(Range(0));
        let all: HashSet<String> =
            (0..).map_while(|number| addresses.allocate(&number.to_string())).collect();
        assert_eq!(all.len(), 64 * 254);
        addresses.release("7");
        assert!(addresses.allocate("new").is_some() && addresses.allocate("one more").is_none());
    }
}
