//! A range of addresses: `10.244.0.0/24`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Addresses that agree in their first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr {
    first: Ipv4Addr,
    prefix: u8,
}

/// Text that is no range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no range of IPv4 addresses such as 10.244.0.0/24")]
pub struct InvalidCidr(String);

impl Cidr {
    /// The range in which `address` lies; none where `prefix` is more than 32.
    pub fn new(address: Ipv4Addr, prefix: u8) -> Option<Self> {
        (prefix <= 32).then(|| Self { first: Ipv4Addr::from(u32::from(address) & mask(prefix)), prefix })
    }

    /// How many of the first bits are common.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// The lowest address.
    pub fn first(&self) -> Ipv4Addr {
        self.first
    }

    /// The highest address.
    pub fn last(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.first) | !mask(self.prefix))
    }

    /// The address at this place, counted from zero; none beyond the end.
    pub fn at(&self, place: u32) -> Option<Ipv4Addr> {
        let address = Ipv4Addr::from(u32::from(self.first).checked_add(place)?);
        self.contains(address).then_some(address)
    }

    /// Whether the address lies in it.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        u32::from(address) & mask(self.prefix) == u32::from(self.first)
    }

    /// Whether any address lies in both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.first) || other.contains(self.first)
    }
}

fn mask(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)
}

impl FromStr for Cidr {
    type Err = InvalidCidr;

    fn from_str(text: &str) -> Result<Self, InvalidCidr> {
        let parsed = text
            .split_once('/')
            .and_then(|(address, prefix)| Self::new(address.parse().ok()?, prefix.parse().ok()?));
        parsed.ok_or_else(|| InvalidCidr(text.into()))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl TryFrom<String> for Cidr {
    type Error = InvalidCidr;

    fn try_from(text: String) -> Result<Self, InvalidCidr> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(range: Cidr) -> Self {
        range.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_knows_its_ends() {
        let range: Cidr = "10.244.3.77/24".parse().unwrap();
        assert_eq!(range.to_string(), "10.244.3.0/24");
        assert_eq!(range.last(), Ipv4Addr::new(10, 244, 3, 255));
        assert_eq!(range.at(255), Some(range.last()));
        assert_eq!(range.at(256), None);
        assert!(!range.contains(Ipv4Addr::new(10, 244, 4, 0)));
        assert!("0.0.0.0/0".parse::<Cidr>().unwrap().contains(Ipv4Addr::new(8, 8, 8, 8)));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0/8", "::1/64", "10.0.0.0/-1"] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
    }
}
