//! Positions in the write-ahead log.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A log sequence number, written as PostgreSQL writes it: `16/B374D848`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// It is not a log sequence number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a log sequence number such as 16/B374D848")]
pub struct InvalidLsn(String);

impl FromStr for Lsn {
    type Err = InvalidLsn;

    fn from_str(text: &str) -> Result<Self, InvalidLsn> {
        let half = |text: &str| {
            let hex =
                !text.is_empty() && text.len() <= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            hex.then(|| u64::from_str_radix(text, 16).ok()).flatten()
        };
        let halves = text.split_once('/').and_then(|(high, low)| Some((half(high)?, half(low)?)));
        let (high, low) = halves.ok_or_else(|| InvalidLsn(text.to_owned()))?;
        Ok(Self(high << 32 | low))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl Serialize for Lsn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Lsn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Lsn {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Lsn".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_and_written_as_postgresql_does() {
        for text in ["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF", "0/3000060"] {
            assert_eq!(text.parse::<Lsn>().unwrap().to_string(), text);
        }
        assert!("1/0".parse::<Lsn>().unwrap() > "0/FFFFFFFF".parse().unwrap());
        for text in ["", "/", "0", "1/", "/1", "1/2/3", "g/0", "123456789/0", "+1/0"] {
            assert!(text.parse::<Lsn>().is_err(), "{text}");
        }
    }
}
