//! Amounts such as `100m` and `1.5Gi`, compared and added up exactly.

use super::super::value::{Failure, Meter, Outcome, Value};
use super::Row;
use std::cmp::Ordering;
use std::rc::Rc;

/// An amount in billionths. Less than one is rounded away from nothing, as Kubernetes does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quantity {
    amount: i128,
    /// Was it written as a whole number, and small enough? `1000m` was not, and is no integer there.
    whole: bool,
}

const ONE: i128 = 1_000_000_000;

/// Suffixes, as powers of ten or of two.
const SUFFIXES: [(&str, i128, u32); 16] = [
    ("n", 10, 0),
    ("u", 10, 3),
    ("m", 10, 6),
    ("", 10, 9),
    ("k", 10, 12),
    ("M", 10, 15),
    ("G", 10, 18),
    ("T", 10, 21),
    ("P", 10, 24),
    ("E", 10, 27),
    ("Ki", 2, 10),
    ("Mi", 2, 20),
    ("Gi", 2, 30),
    ("Ti", 2, 40),
    ("Pi", 2, 50),
    ("Ei", 2, 60),
];

/// Amounts of more digits than these are none: nothing real is as large.
const MOST_DIGITS: usize = 24;

const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

pub(super) const ROWS: &[Row] = &[
    Row("quantity", "(string) quantity", |meter, values| match values {
        [Value::String(text)] => {
            meter.traverse(text.len())?;
            Quantity::parse(text).map(wrap).ok_or_else(|| Failure::new(WRONG_FORMAT))
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row("isQuantity", "(string) bool", |meter, values| match values {
        [Value::String(text)] => {
            meter.traverse(text.len())?;
            Ok(Value::Bool(Quantity::parse(text).is_some()))
        }
        _ => Err(Failure::no_such_overload()),
    }),
    // Declared without a receiver, so that it is called as `sign(quantity)`.
    Row("sign", "(quantity) int", |meter, values| {
        of(meter, values, |amount| Ok(Value::Int(amount.amount.signum() as i64)))
    }),
    Row("isInteger", ".(quantity) bool", |meter, values| {
        of(meter, values, |amount| Ok(Value::Bool(amount.whole().is_some())))
    }),
    Row("asInteger", ".(quantity) int", |meter, values| {
        of(meter, values, |amount| {
            amount.whole().map(Value::Int).ok_or_else(|| Failure::new("cannot convert value to integer"))
        })
    }),
    Row("asApproximateFloat", ".(quantity) double", |meter, values| {
        of(meter, values, |amount| {
            let (whole, rest) = (amount.amount / ONE, amount.amount % ONE);
            Ok(Value::Double(whole as f64 + rest as f64 / ONE as f64))
        })
    }),
    Row("add", ".(quantity, quantity) quantity | .(quantity, int) quantity", |meter, values| {
        combine(meter, values, i128::checked_add)
    }),
    Row("sub", ".(quantity, quantity) quantity | .(quantity, int) quantity", |meter, values| {
        combine(meter, values, i128::checked_sub)
    }),
];

fn wrap<'a>(amount: Quantity) -> Value<'a> {
    Value::Quantity(Rc::new(amount))
}

fn of<'a>(meter: &mut Meter, values: &[Value<'a>], read: fn(&Quantity) -> Outcome<'static>) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Quantity(amount)] => read(amount),
        _ => Err(Failure::no_such_overload()),
    }
}

fn combine<'a>(
    meter: &mut Meter,
    values: &[Value<'a>],
    operate: fn(i128, i128) -> Option<i128>,
) -> Outcome<'a> {
    meter.charge(1)?;
    let (one, other) = match values {
        [Value::Quantity(one), Value::Quantity(other)] => (one, **other),
        [Value::Quantity(one), Value::Int(other)] => {
            (one, Quantity { amount: i128::from(*other) * ONE, whole: true })
        }
        _ => return Err(Failure::no_such_overload()),
    };
    let amount = operate(one.amount, other.amount).ok_or_else(|| Failure::new("quantity overflow"))?;
    Ok(wrap(Quantity { amount, whole: one.whole && other.whole }))
}

impl Quantity {
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }

    fn whole(&self) -> Option<i64> {
        if self.whole { i64::try_from(self.amount / ONE).ok() } else { None }
    }

    fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, rest) = unsigned.split_at(digits(unsigned));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let number = format!("{}{fraction}", whole.trim_start_matches('0'));
        if number.len() > MOST_DIGITS {
            return None;
        }
        let number: i128 = if number.is_empty() { 0 } else { number.parse().ok()? };
        let places = u32::try_from(fraction.len()).ok()?;
        let length = whole.trim_start_matches('0').len().max(1);
        let short = length + fraction.len() <= 18;
        let (amount, whole) = match SUFFIXES.iter().find(|(name, ..)| *name == suffix) {
            Some((_, 2, power)) => {
                let whole = fraction.is_empty() && length + (*power as usize) * 3 / 10 <= 14;
                (scaled((number << power).checked_mul(ONE)?, -i64::from(places))?, whole)
            }
            Some((_, _, power)) => {
                let power = i64::from(*power) - i64::from(places);
                (scaled(number, power)?, power >= 9 && short)
            }
            None => {
                let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
                let power = exponent.checked_add(9)?.checked_sub(places.into())?;
                (scaled(number, power)?, power >= 9 && short)
            }
        };
        Some(Self { amount: if text.starts_with('-') { -amount } else { amount }, whole })
    }
}

/// Times a power of ten; what is cut off is rounded up.
fn scaled(number: i128, power: i64) -> Option<i128> {
    if number == 0 {
        return Some(0);
    }
    let digits = u32::try_from(power.unsigned_abs()).ok()?;
    match (power >= 0, 10_i128.checked_pow(digits)) {
        (true, factor) => number.checked_mul(factor?),
        (false, Some(divisor)) => Some(number / divisor + i128::from(number % divisor != 0)),
        (false, None) => Some(1),
    }
}
