//! IP addresses and CIDRs.

use super::super::value::{Failure, Meter, Outcome, Value};
use super::Row;
use crate::go;
use std::fmt;
use std::net::IpAddr;

/// An address and how many of its bits name a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.bits)
    }
}

pub(super) const ROWS: &[Row] = &[
    Row("ip", "(string) ip | .(cidr) ip", |meter, values| match values {
        [Value::String(text)] => {
            meter.traverse(text.len())?;
            address(text).map(Value::Ip)
        }
        [Value::Cidr(network)] => {
            meter.charge(1)?;
            Ok(Value::Ip(network.address))
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row("isIP", "(string) bool", |meter, values| {
        let text = text(meter, values)?;
        Ok(Value::Bool(address(text).is_ok()))
    }),
    Row("ip.isCanonical", "(string) bool", |meter, values| {
        let text = text(meter, values)?;
        Ok(Value::Bool(address(text)?.to_string() == text))
    }),
    Row("family", ".(ip) int", |meter, values| {
        of_address(meter, values, |address| Value::Int(if address.is_ipv4() { 4 } else { 6 }))
    }),
    Row("isUnspecified", ".(ip) bool", |meter, values| {
        of_address(meter, values, |address| Value::Bool(address.is_unspecified()))
    }),
    Row("isLoopback", ".(ip) bool", |meter, values| {
        of_address(meter, values, |address| Value::Bool(address.is_loopback()))
    }),
    Row("isLinkLocalMulticast", ".(ip) bool", |meter, values| {
        of_address(meter, values, |address| Value::Bool(is_link_local_multicast(address)))
    }),
    Row("isLinkLocalUnicast", ".(ip) bool", |meter, values| {
        of_address(meter, values, |address| Value::Bool(is_link_local_unicast(address)))
    }),
    Row("isGlobalUnicast", ".(ip) bool", |meter, values| {
        of_address(meter, values, |address| Value::Bool(is_global_unicast(address)))
    }),
    Row("cidr", "(string) cidr", |meter, values| {
        let text = text(meter, values)?;
        network(text).map(Value::Cidr)
    }),
    Row("isCIDR", "(string) bool", |meter, values| {
        let text = text(meter, values)?;
        Ok(Value::Bool(network(text).is_ok()))
    }),
    Row("containsIP", ".(cidr, string) bool | .(cidr, ip) bool", |meter, values| {
        meter.charge(1)?;
        let (network, address) = match values {
            [Value::Cidr(network), Value::String(text)] => (network, address(text)?),
            [Value::Cidr(network), Value::Ip(address)] => (network, *address),
            _ => return Err(Failure::no_such_overload()),
        };
        Ok(Value::Bool(network.contains(address)))
    }),
    Row("containsCIDR", ".(cidr, string) bool | .(cidr, cidr) bool", |meter, values| {
        meter.charge(1)?;
        let (one, other) = match values {
            [Value::Cidr(one), Value::String(text)] => (one, network(text)?),
            [Value::Cidr(one), Value::Cidr(other)] => (one, *other),
            _ => return Err(Failure::no_such_overload()),
        };
        Ok(Value::Bool(one.bits <= other.bits && one.contains(other.address)))
    }),
    Row("prefixLength", ".(cidr) int", |meter, values| {
        of_network(meter, values, |network| Value::Int(network.bits.into()))
    }),
    Row("masked", ".(cidr) cidr", |meter, values| {
        of_network(meter, values, |network| Value::Cidr(network.masked()))
    }),
];

fn text<'v>(meter: &mut Meter, values: &'v [Value<'_>]) -> Result<&'v str, Failure> {
    match values {
        [Value::String(text)] => {
            meter.traverse(text.len())?;
            Ok(text)
        }
        _ => Err(Failure::no_such_overload()),
    }
}

fn of_address<'a>(
    meter: &mut Meter,
    values: &[Value<'a>],
    read: fn(&IpAddr) -> Value<'static>,
) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Ip(address)] => Ok(read(address)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn of_network<'a>(meter: &mut Meter, values: &[Value<'a>], read: fn(&Cidr) -> Value<'static>) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Cidr(network)] => Ok(read(network)),
        _ => Err(Failure::no_such_overload()),
    }
}

/// An address without a zone, and not one of IPv4 inside of IPv6.
fn address(text: &str) -> Result<IpAddr, Failure> {
    let quoted = go::quote(text);
    if let Some((plain, zone)) = text.split_once('%')
        && !zone.is_empty()
        && plain.parse::<std::net::Ipv6Addr>().is_ok()
    {
        return Err(Failure::new(format!("IP address {quoted} with zone value is not allowed")));
    }
    let parsed: IpAddr = text.parse().map_err(|_| {
        let why = if text.contains(['.', ':']) { "unexpected character" } else { "unable to parse IP" };
        Failure::new(format!(
            "IP Address {quoted} parse error during conversion from string: ParseAddr({quoted}): {why}"
        ))
    })?;
    match parsed {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            Err(Failure::new(format!("IPv4-mapped IPv6 address {quoted} is not allowed")))
        }
        other => Ok(other),
    }
}

fn network(text: &str) -> Result<Cidr, Failure> {
    let failed = |why: &str| {
        Failure::new(format!(
            "network address parse error during conversion from string: netip.ParsePrefix({}): {why}",
            go::quote(text)
        ))
    };
    let (head, bits) = text.rsplit_once('/').ok_or_else(|| failed("no '/'"))?;
    let parsed = address(head).map_err(|_| failed("unable to parse IP"))?;
    let plain = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    let short = bits.len() <= 3 && (bits.len() == 1 || !bits.starts_with('0'));
    if !plain || !short {
        return Err(failed(&format!("bad bits after slash: {}", go::quote(bits))));
    }
    let most = if parsed.is_ipv4() { 32 } else { 128 };
    match bits.parse::<u8>() {
        Ok(bits) if bits <= most => Ok(Cidr { address: parsed, bits }),
        _ => Err(failed("prefix length out of range")),
    }
}

impl Cidr {
    fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4((u32::from(address) & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6((u128::from(address) & mask).into())
            }
        };
        Self { address, bits: self.bits }
    }

    fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Self { address, bits: self.bits }.masked().address == self.masked().address
    }
}

fn is_link_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(address: &IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !broadcast
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
}
