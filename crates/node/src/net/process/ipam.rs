//! Which pod holds which address: pure. The same pod gets the same address, and one that was given back rests as long as it can,
//! since others may remember who had it.

use crate::net::Cidr;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Places at the beginning that are not lent: the range's own address, and the bridge's.
const RESERVED: u32 = 2;

/// Who holds what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ipam {
    range: Cidr,
    held: BTreeMap<String, Ipv4Addr>,
    next: u32,
}

impl Ipam {
    /// Nobody holds anything.
    pub(super) fn new(range: Cidr) -> Self {
        Self { range, held: BTreeMap::new(), next: RESERVED }
    }

    /// What an earlier network process wrote down, if it is about the same range.
    pub(super) fn recovered(text: &[u8], range: Cidr) -> Option<Self> {
        let found: Self = serde_json::from_slice(text).ok()?;
        let distinct: BTreeSet<_> = found.held.values().collect();
        let sound = found.range == range
            && distinct.len() == found.held.len()
            && found.held.values().all(|address| found.is_allocatable(*address));
        sound.then_some(found)
    }

    /// The pod's address: the one it holds, or the next that is free. None where all are taken.
    pub(super) fn allocate(&mut self, uid: &str) -> Option<Ipv4Addr> {
        if let Some(held) = self.held.get(uid) {
            return Some(*held);
        }
        let taken: BTreeSet<Ipv4Addr> = self.held.values().copied().collect();
        let size = u32::from(self.range.last()) - u32::from(self.range.first());
        let places = (self.next..size).chain(RESERVED..self.next.min(size));
        let (place, address) = places
            .filter_map(|place| Some((place, self.range.at(place)?)))
            .find(|(_, address)| !taken.contains(address))?;
        self.next = place + 1;
        self.held.insert(uid.into(), address);
        Some(address)
    }

    /// The address the pod holds.
    pub(super) fn of(&self, uid: &str) -> Option<Ipv4Addr> {
        self.held.get(uid).copied()
    }

    /// Takes it back.
    pub(super) fn release(&mut self, uid: &str) -> Option<Ipv4Addr> {
        self.held.remove(uid)
    }

    /// Everybody, by UID.
    pub(super) fn all(&self) -> Vec<(String, Ipv4Addr)> {
        self.held.iter().map(|(uid, address)| (uid.clone(), *address)).collect()
    }

    fn is_allocatable(&self, address: Ipv4Addr) -> bool {
        let place = u32::from(address).checked_sub(u32::from(self.range.first()));
        self.range.contains(address) && address != self.range.last() && place >= Some(RESERVED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Ipam {
        Ipam::new("10.244.0.0/29".parse().unwrap())
    }

    #[test]
    fn the_same_pod_has_the_same_address() {
        let mut addresses = small();
        let first = addresses.allocate("a").unwrap();
        assert_eq!(first, Ipv4Addr::new(10, 244, 0, 2));
        assert_eq!(addresses.allocate("b"), Some(Ipv4Addr::new(10, 244, 0, 3)));
        assert_eq!(addresses.allocate("a"), Some(first));
    }

    #[test]
    fn an_address_rests_before_it_is_lent_again() {
        let mut addresses = small();
        let first = addresses.allocate("a").unwrap();
        assert_eq!(addresses.release("a"), Some(first));
        let others: Vec<_> = ["b", "c", "d", "e"].map(|uid| addresses.allocate(uid).unwrap()).into();
        assert!(!others.contains(&first));
        assert_eq!(addresses.allocate("f"), Some(first), "the last that is left");
        assert_eq!(addresses.allocate("g"), None, "neither the bridge's nor the highest");
    }

    #[test]
    fn what_was_written_down_is_taken_up_if_it_is_sound() {
        let mut addresses = small();
        addresses.allocate("a");
        let text = serde_json::to_string(&addresses).unwrap();
        let range = "10.244.0.0/29".parse().unwrap();
        assert_eq!(Ipam::recovered(text.as_bytes(), range), Some(addresses));
        assert_eq!(Ipam::recovered(text.as_bytes(), "10.244.1.0/29".parse().unwrap()), None);
        assert_eq!(Ipam::recovered(text.replace("0.2", "0.1").as_bytes(), range), None, "the bridge's");
        assert_eq!(Ipam::recovered(&text.as_bytes()[..9], range), None, "torn");
    }
}
