//! Resource quantities such as `100m` and `1.5Gi`: parsed, calculated with and written as Kubernetes' `resource.Quantity` does.
//!
//! Arithmetic is exact. Ordinary quantities are an integer of at most 38 digits with a power of ten, without allocation; longer
//! ones are kept digit by digit. What Kubernetes rounds and caps is rounded and capped when parsing, and only there:
//!
//! - what is finer than a billionth (`n`) is rounded away from zero, so that a request is never rounded to nothing;
//! - a quantity with a binary suffix is at most 2^63-1.
//!
//! Where Kubernetes itself loses a value, this does not: a decimal quantity beyond `E` is written with an exponent (`1000E` is `1e21`, as on
//! Kubernetes' main branch; 1.36 and 1.37 write `1`), and an exponent that does not fit in 32 bits is an error and not another number.

mod amount;
mod canonical;
mod digits;
mod operators;
mod parse;
mod serialize;
#[cfg(test)]
mod tests;

use amount::Amount;
use std::cmp::Ordering;

/// Why a text is no quantity, in the words of the Kubernetes API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// It is not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number is well formed, but its suffix is none.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// There is no number.
    #[error("unable to parse numeric part of quantity")]
    Number,
}

/// The notation of a quantity: the one that it was parsed from, and that it is written in again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// With a power of ten: `12e6`.
    DecimalExponent,
    /// With a suffix for a power of 1024: `12Mi`.
    BinarySI,
    /// With a suffix for a power of 1000: `12M`.
    DecimalSI,
}

/// An amount of a resource, and the notation to write it in.
///
/// Equality and order are those of the amounts, whatever the notation: `1` equals `1000m`.
///
/// ```
/// use windlass_schema::Quantity;
///
/// let memory: Quantity = "1.5Gi".parse()?;
/// assert_eq!(memory.value(), 1_610_612_736);
/// assert_eq!((memory * 2).to_string(), "3Gi");
/// assert!("100m".parse::<Quantity>()? < "0.5".parse()?);
/// # Ok::<(), windlass_schema::ParseQuantityError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Quantity {
    amount: Amount,
    format: Format,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self::new(0, Format::DecimalSI);

    /// A whole number, in this notation.
    pub const fn new(value: i64, format: Format) -> Self {
        Self { amount: Amount::whole(value), format }
    }

    /// A number of thousandths, in this notation.
    pub const fn from_milli(value: i64, format: Format) -> Self {
        Self { amount: Amount::scaled(value, -3), format }
    }

    /// The notation that it is written in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The same amount, written in another notation.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The amount in whole units, rounded away from zero; at most what 64 bits hold.
    pub fn value(&self) -> i64 {
        self.amount.to_scale(0)
    }

    /// The amount in thousandths, rounded away from zero; at most what 64 bits hold.
    pub fn milli_value(&self) -> i64 {
        self.amount.to_scale(-3)
    }

    /// The amount, if it is a whole number that 64 bits hold.
    pub fn as_i64(&self) -> Option<i64> {
        let value = self.value();
        (*self == Self::new(value, Format::DecimalSI)).then_some(value)
    }

    /// The amount as a floating-point number, which may lose precision.
    pub fn as_approximate_f64(&self) -> f64 {
        self.amount.approximate()
    }

    /// Rounded away from zero to a multiple of this power of ten: -3 for thousandths.
    #[must_use]
    pub fn round_up(self, scale: i32) -> Self {
        Self { amount: self.amount.round_up(scale), format: self.format }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.amount.sign() == Ordering::Equal
    }

    /// Whether it is negative.
    pub fn is_negative(&self) -> bool {
        self.amount.sign() == Ordering::Less
    }

    /// Whether it is a whole number.
    pub fn is_integer(&self) -> bool {
        self.amount.is_multiple_of(0)
    }

    /// Less, equal to, or greater than zero.
    pub fn sign(&self) -> Ordering {
        self.amount.sign()
    }

    /// What Go's `AsInt64` returns: it does not look for a whole number in `1000m` or `1.5Ki`, and CEL's `isInteger` shows that.
    pub(crate) fn go_as_int64(&self) -> Option<i64> {
        self.amount.go_as_int64()
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl From<i64> for Quantity {
    fn from(value: i64) -> Self {
        Self::new(value, Format::DecimalSI)
    }
}
