//! The canonical form: no fraction, no precision lost, and the largest suffix that allows it.

use super::amount::Amount;
use super::digits::Digits;
use super::{Format, ParseQuantityError, Quantity, parse};
use std::borrow::Cow;
use std::fmt;

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The longest number that is written in powers of 1024, which have no short form for zeros at the end.
const LONGEST_BINARY: i64 = 1_000;

impl Quantity {
    /// The text that the Kubernetes API stores for a quantity in a request: spaces around it go, and what is not canonical is
    /// rewritten. A few forms that Go does not rewrite stay: `1.500`, `+5`, `1025Ki`.
    ///
    /// # Errors
    /// When the text is no quantity.
    pub fn normalize(text: &str) -> Result<Cow<'_, str>, ParseQuantityError> {
        let text = text.trim();
        let parsed = parse::parse(text)?;
        Ok(if parsed.is_kept { Cow::Borrowed(text) } else { Cow::Owned(parsed.quantity.to_string()) })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return out.write_str("0");
        }
        if self.is_negative() {
            out.write_str("-")?;
        }
        // Below 1024, and for fractions, the other suffixes are exact and the binary ones are not.
        match self.format {
            Format::BinarySI if self.amount.is_multiple_of(0) => match Binary::of(&self.amount) {
                Some(binary) => binary.write(out),
                None => write_decimal(&self.amount, Format::DecimalSI, out),
            },
            Format::BinarySI => write_decimal(&self.amount, Format::DecimalSI, out),
            format => write_decimal(&self.amount, format, out),
        }
    }
}

/// A whole number of at least 1024, without its sign.
enum Binary {
    Short(u128),
    Long(Digits),
}

impl Binary {
    fn of(amount: &Amount) -> Option<Self> {
        let (digits, scale) = match amount {
            Amount::Short { value, scale, .. } => {
                let value = value.unsigned_abs();
                let power = 10_u128.checked_pow(scale.unsigned_abs());
                let whole = power.and_then(|power| match scale {
                    0.. => value.checked_mul(power),
                    _ => Some(value / power),
                });
                if let Some(whole) = whole {
                    return (whole >= 1024).then_some(Self::Short(whole));
                }
                (Digits::from_number(value), *scale)
            }
            Amount::Long { digits, scale, .. } => (digits.clone(), *scale),
        };
        match usize::try_from(scale) {
            Ok(zeros) if i64::from(scale) <= LONGEST_BINARY => Some(Self::Long(digits.shifted(zeros))),
            Ok(_) => None,
            Err(_) => Some(Self::Long(digits.cut(usize::try_from(scale.unsigned_abs()).ok()?))),
        }
    }

    fn write(self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut suffixes = BINARY.iter();
        let mut suffix = suffixes.next().unwrap_or(&"");
        match self {
            Self::Short(mut number) => {
                while number.is_multiple_of(1024)
                    && let Some(next) = suffixes.next()
                {
                    (number, suffix) = (number / 1024, next);
                }
                write!(out, "{number}{suffix}")
            }
            Self::Long(mut number) => {
                while let Some(quotient) = number.divided_by_1024()
                    && let Some(next) = suffixes.next()
                {
                    (number, suffix) = (quotient, next);
                }
                write!(out, "{number}{suffix}")
            }
        }
    }
}

fn write_decimal(amount: &Amount, format: Format, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    // What is written can be parsed again, so the exponent stays within 32 bits.
    let room = i32::MAX.saturating_sub(amount.scale());
    if let Amount::Short { value, scale, .. } = amount {
        let (number, zeros) = without_zeros(value.unsigned_abs(), room);
        let exponent = scale.saturating_add(zeros);
        let missing = exponent.rem_euclid(3);
        if let Some(number) = number.checked_mul([1, 10, 100][missing.unsigned_abs() as usize]) {
            write!(out, "{number}")?;
            return write_exponent(exponent - missing, format, out);
        }
    }
    let digits = amount.digits();
    let zeros = i32::try_from(digits.trailing_zeros()).unwrap_or(i32::MAX).min(room);
    let exponent = amount.scale().saturating_add(zeros);
    let missing = exponent.rem_euclid(3);
    write!(out, "{}", digits.cut(zeros.unsigned_abs() as usize).shifted(missing.unsigned_abs() as usize))?;
    write_exponent(exponent - missing, format, out)
}

/// A nonzero number without its trailing zeros, at most this number of them, and how many were removed.
fn without_zeros(mut number: u128, most: i32) -> (u128, i32) {
    let mut zeros = 0;
    // Dividing 64 bits is many times faster than 128.
    if let Ok(mut short) = u64::try_from(number) {
        while short.is_multiple_of(10) && zeros < most {
            (short, zeros) = (short / 10, zeros + 1);
        }
        return (short.into(), zeros);
    }
    while number.is_multiple_of(10) && zeros < most {
        (number, zeros) = (number / 10, zeros + 1);
    }
    (number, zeros)
}

fn write_exponent(exponent: i32, format: Format, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let suffix = match (exponent, format) {
        (0, _) => "",
        (-9, Format::DecimalSI) => "n",
        (-6, Format::DecimalSI) => "u",
        (-3, Format::DecimalSI) => "m",
        (3, Format::DecimalSI) => "k",
        (6, Format::DecimalSI) => "M",
        (9, Format::DecimalSI) => "G",
        (12, Format::DecimalSI) => "T",
        (15, Format::DecimalSI) => "P",
        (18, Format::DecimalSI) => "E",
        _ => return write!(out, "e{exponent}"),
    };
    out.write_str(suffix)
}
