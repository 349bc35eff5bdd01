//! The range that cluster IPs of Services are from, as `--service-cluster-ip-range` says it.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// The largest number of addresses that a range has: the reference caps it as well.
const MOST: u32 = 1 << 20;

/// The range that cluster IPs of Services are from, such as `10.96.0.0/16`. The first address is the API server's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceClusterIpRange {
    network: u32,
    prefix: u8,
}

impl Default for ServiceClusterIpRange {
    /// `10.96.0.0/16`.
    fn default() -> Self {
        Self { network: u32::from(Ipv4Addr::new(10, 96, 0, 0)), prefix: 16 }
    }
}

impl ServiceClusterIpRange {
    /// The address of the Service `kubernetes`, through which pods find the API.
    pub fn api_server(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.network + 1)
    }

    pub(super) fn contains(&self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.network);
        (1..=self.last()).contains(&offset)
    }

    /// Those that are given out first, from a random one on: not the lower ones, which are for those who ask by name.
    pub(super) fn dynamic(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        self.between(self.static_size() + 1, self.last())
    }

    /// Those that are given out when there is no other.
    pub(super) fn static_block(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        self.between(1, self.static_size())
    }

    fn between(&self, first: u32, last: u32) -> impl Iterator<Item = Ipv4Addr> + use<> {
        let network = self.network;
        from_a_random_one(first, last).map(move |offset| Ipv4Addr::from(network + offset))
    }

    /// The number of addresses for those who ask by name, as the reference reckons: a sixteenth, 16 to 256 of them; in a
    /// small range none.
    fn static_size(&self) -> u32 {
        match self.size() {
            small if small < 16 => 0,
            size => (size / 16).clamp(16, 256).min(self.last()),
        }
    }

    /// The highest offset that is given out: not the broadcast address.
    fn last(&self) -> u32 {
        self.size().saturating_sub(2)
    }

    fn size(&self) -> u32 {
        1u32.checked_shl(32 - u32::from(self.prefix)).unwrap_or(MOST).min(MOST)
    }
}

impl fmt::Display for ServiceClusterIpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.network), self.prefix)
    }
}

/// A text is no range of addresses that Services could have.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no range of IPv4 addresses such as 10.96.0.0/16, with a prefix from 8 to 30")]
pub struct InvalidRange(String);

impl FromStr for ServiceClusterIpRange {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let wrong = || InvalidRange(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        if !(8..=30).contains(&prefix) {
            return Err(wrong());
        }
        Ok(Self { network: u32::from(address) & (u32::MAX << (32 - prefix)), prefix })
    }
}

/// All numbers of a range once, from a random one on.
pub(super) fn from_a_random_one(first: u32, last: u32) -> impl Iterator<Item = u32> {
    let count = (last + 1).saturating_sub(first);
    let start = u32::from_be_bytes(crate::object::random()).checked_rem(count).unwrap_or(0);
    (0..count).map(move |step| first + (start + step) % count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_address_is_given_out_once_and_none_at_the_ends() {
        let range: ServiceClusterIpRange = "10.0.0.17/24".parse().unwrap();
        assert_eq!(range.to_string(), "10.0.0.0/24");
        assert_eq!(range.api_server(), Ipv4Addr::new(10, 0, 0, 1));
        let dynamic: BTreeSet<Ipv4Addr> = range.dynamic().collect();
        assert_eq!(dynamic.first(), Some(&Ipv4Addr::new(10, 0, 0, 17)));
        assert_eq!(dynamic.last(), Some(&Ipv4Addr::new(10, 0, 0, 254)));
        let all: Vec<Ipv4Addr> = range.dynamic().chain(range.static_block()).collect();
        assert_eq!(all.len(), 254);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 254);
        assert!(all.iter().all(|address| range.contains(*address)));
        for outside in ["10.0.0.0", "10.0.0.255", "10.0.1.1", "9.255.255.255"] {
            assert!(!range.contains(outside.parse().unwrap()), "{outside}");
        }
    }

    #[test]
    fn small_ranges_have_no_static_block_and_wrong_texts_are_refused() {
        let range: ServiceClusterIpRange = "10.0.0.0/30".parse().unwrap();
        assert_eq!((range.dynamic().count(), range.static_block().count()), (2, 0));
        for wrong in ["", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/4", "fd00::/108", "10.0.0.0/x", "a/16"] {
            assert!(wrong.parse::<ServiceClusterIpRange>().is_err(), "{wrong}");
        }
    }
}
