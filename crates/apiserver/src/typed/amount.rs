//! Amounts to calculate with: read from the texts that `quantity` writes, added, compared, and written again.

use super::quantity::{self, Format};
use std::cmp::Ordering;
use std::fmt;

/// Parts of one.
const NANOS: i128 = 1_000_000_000;

/// An amount of something, and the way it was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    nanos: i128,
    format: Format,
}

impl Amount {
    /// The amount in a text; none if it is none, or beyond counting.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (nanos, format) = quantity::nanos(text)?;
        Some(Self { nanos, format })
    }

    /// The amount that a JSON value holds.
    pub(crate) fn of(value: &serde_json::Value) -> Option<Self> {
        Self::read(value.as_str()?)
    }

    /// So many whole ones.
    pub(crate) fn whole(number: i64) -> Self {
        Self { nanos: i128::from(number) * NANOS, format: Format::Decimal }
    }

    pub(crate) fn is_negative(self) -> bool {
        self.nanos < 0
    }

    pub(crate) fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Is it a whole number?
    pub(crate) fn is_whole(self) -> bool {
        self.nanos % NANOS == 0
    }

    /// As a number of thousandths, rounded up.
    pub(crate) fn millis(self) -> i128 {
        let part = NANOS / 1000;
        self.nanos.div_euclid(part) + i128::from(self.nanos.rem_euclid(part) != 0)
    }

    /// The sum, written as this one is; nothing takes the other's way.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_add(other.nanos), format }
    }

    /// The difference, written as this one is.
    #[must_use]
    pub(crate) fn minus(self, other: Self) -> Self {
        self.plus(Self { nanos: -other.nanos, format: other.format })
    }

    /// How many times the other it is.
    pub(crate) fn ratio(self, other: Self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // A ratio for people to read.
        let parts = |amount: Self| amount.millis() as f64;
        parts(self) / parts(other)
    }

    /// Less than a thousandth is one.
    #[must_use]
    pub(crate) fn in_millis(self) -> Self {
        Self { nanos: self.millis() * (NANOS / 1000), format: self.format }
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&quantity::written(self.nanos, self.format))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_written_as_their_first_part() {
        let sum = |left: &str, right: &str| {
            Amount::read(left).and_then(|left| Some(left.plus(Amount::read(right)?).to_string()))
        };
        for (left, right, expected) in [
            ("1", "500m", "1500m"),
            ("1Gi", "1Mi", "1025Mi"),
            ("0", "1Gi", "1Gi"),
            ("500m", "500m", "1"),
            ("1k", "24", "1024"),
            ("1Ki", "0.5", "1024500m"),
        ] {
            assert_eq!(sum(left, right).as_deref(), Some(expected), "{left} + {right}");
        }
    }

    #[test]
    fn what_is_smaller_than_a_thousandth_is_one() {
        for (given, expected) in [("1u", "1m"), ("1m", "1m"), ("1500u", "2m"), ("3", "3")] {
            assert_eq!(
                Amount::read(given).map(|amount| amount.in_millis().to_string()).as_deref(),
                Some(expected)
            );
        }
    }
}
