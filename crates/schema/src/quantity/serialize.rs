//! Quantities in JSON: written as strings, read from strings and numbers.

use super::Quantity;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AsTextOrNumber)
    }
}

struct AsTextOrNumber;

impl Visitor<'_> for AsTextOrNumber {
    type Value = Quantity;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a quantity, such as \"100m\", \"1.5Gi\" or 2")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }
}
