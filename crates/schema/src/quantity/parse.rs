//! Kubernetes' grammar of quantities: a signed decimal number and a suffix.

use super::amount::{Amount, MOST_DIGITS, NANO};
use super::digits::Digits;
use super::{Format, ParseQuantityError, Quantity};
use std::str::FromStr;

/// Up to this many digits Kubernetes keeps a decimal quantity in 64 bits.
const INT64_DIGITS: usize = 18;

/// The parts of a quantity, still text.
struct Parts<'a> {
    negative: bool,
    /// Whether there was any digit, leading zeros included.
    has_digits: bool,
    /// Digits before the point, without leading zeros.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// A quantity, and whether the text that it came from is a form that Kubernetes leaves alone.
pub(super) struct Parsed {
    pub(super) quantity: Quantity,
    pub(super) is_kept: bool,
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(|parsed| parsed.quantity)
    }
}

pub(super) fn parse(text: &str) -> Result<Parsed, ParseQuantityError> {
    let parts = split(text)?;
    let (format, exponent) = interpret(parts.suffix).ok_or(ParseQuantityError::Suffix)?;
    match parse_short(&parts, format, exponent) {
        Some(parsed) => Ok(parsed),
        None if !parts.has_digits => Err(ParseQuantityError::Number),
        None => Ok(Parsed { quantity: parse_exact(&parts, format, exponent), is_kept: false }),
    }
}

fn split(text: &str) -> Result<Parts<'_>, ParseQuantityError> {
    if text.is_empty() {
        return Err(ParseQuantityError::Format);
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let rest = unsigned.trim_start_matches('0');
    let has_zeros = rest.len() < unsigned.len();
    let (whole, rest) = rest.split_at(digits(rest));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let exponent = suffix.trim_start_matches(|letter: char| "eEinumkKMGTP".contains(letter));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !exponent.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(ParseQuantityError::Format);
    }
    Ok(Parts {
        negative: text.starts_with('-'),
        has_digits: has_zeros || !whole.is_empty() || !fraction.is_empty(),
        whole,
        fraction,
        suffix,
    })
}

/// The notation that a suffix belongs to, and its power of ten, or of two for a binary one.
fn interpret(suffix: &str) -> Option<(Format, i32)> {
    let decimal = |exponent| Some((Format::DecimalSI, exponent));
    let binary = |exponent| Some((Format::BinarySI, exponent));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => Some((Format::DecimalExponent, suffix.strip_prefix(['e', 'E'])?.parse().ok()?)),
    }
}

/// What Kubernetes keeps in 64 bits: few digits, and no fraction before a binary suffix. Only such a text can stay as it was.
fn parse_short(parts: &Parts<'_>, format: Format, exponent: i32) -> Option<Parsed> {
    // Without a digit before the point, Kubernetes takes a zero there.
    let length = parts.whole.len().max(1) + parts.fraction.len();
    let is_short = match format {
        Format::BinarySI => {
            // A power of 1024 takes three digits of the fifteen.
            parts.fraction.is_empty() && length + usize::try_from(exponent).ok()? * 3 / 10 < 15
        }
        Format::DecimalSI | Format::DecimalExponent => length <= INT64_DIGITS,
    };
    if !is_short {
        return None;
    }
    let digits = parts.whole.bytes().chain(parts.fraction.bytes());
    let number = digits.fold(0_i64, |number, digit| number * 10 + i64::from(digit - b'0'));
    let sign = if parts.negative { -1 } else { 1 };
    let (value, scale, is_kept) = match format {
        Format::BinarySI => (number.checked_mul(1 << exponent)?, 0, number & 7 != 0),
        Format::DecimalSI | Format::DecimalExponent => {
            let scale = exponent.saturating_sub(i32::try_from(parts.fraction.len()).ok()?);
            if scale < NANO {
                return None;
            }
            let is_kept = scale % 3 == 0 && number % 1000 != 0 && !parts.whole.is_empty();
            (number, scale, is_kept)
        }
    };
    let amount = Amount::scaled(sign * value, scale);
    Some(Parsed { quantity: Quantity { amount, format }, is_kept })
}

/// The exact amount, rounded up to a billionth; with a binary suffix, at most 2^63-1.
fn parse_exact(parts: &Parts<'_>, format: Format, exponent: i32) -> Quantity {
    let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
    let (times, scale) = match format {
        Format::BinarySI => (1_u64 << exponent, -places),
        Format::DecimalSI | Format::DecimalExponent => (1, exponent.saturating_sub(places)),
    };
    let digits = parts.whole.bytes().chain(parts.fraction.bytes());
    let short = (parts.whole.len() + parts.fraction.len() < MOST_DIGITS)
        .then(|| digits.clone().fold(0_i128, |number, digit| number * 10 + i128::from(digit - b'0')))
        .and_then(|number| number.checked_mul(i128::from(times)));
    let amount = match short {
        Some(number) => Amount::exact(number, scale),
        None => Amount::long(Digits::from_text(digits).times(times), scale),
    };
    let mut amount = amount.round_up(NANO).in_nanos();
    let mut format = format;
    if format == Format::BinarySI {
        let most = Amount::exact(i128::from(i64::MAX), 0);
        if amount > most {
            amount = most;
        }
        // A fraction has no binary suffix.
        if amount < Amount::whole(1) && amount > Amount::whole(0) {
            format = Format::DecimalSI;
        }
    }
    Quantity { amount: if parts.negative { amount.negated() } else { amount }, format }
}
