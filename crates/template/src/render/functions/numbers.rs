//! Sprig's arithmetic.

use super::cast::{float, int};
use super::{Context, Row, integer, lossy};
use crate::go::print::show;
use crate::go::strconv::{Wrong, parse_int};
use crate::render::exec::Run;
use crate::value::{Elem, List, Value};

pub(super) const ROWS: &[Row] = &[
    ("atoi", "s>i", |_, given| Ok(Value::int(atoi(&lossy(given, 0))))),
    ("int64", "a>i", |_, given| Ok(Value::int64(int(&given[0])))),
    ("int", "a>i", |_, given| Ok(Value::int(int(&given[0])))),
    ("float64", "a>f", |_, given| Ok(Value::Float(float(&given[0])))),
    ("seq", "i*>s", seq),
    ("toDecimal", "a>i", |_, given| Ok(Value::int64(parse_int(&show(&given[0]), 8).unwrap_or(0)))),
    ("until", "i>x", |context, given| {
        let count = integer(given, 0);
        until_step(context, 0, count, if count < 0 { -1 } else { 1 })
    }),
    ("untilStep", "iii>x", |context, given| {
        until_step(context, integer(given, 0), integer(given, 1), integer(given, 2))
    }),
    ("add1", "a>i", |_, given| Ok(Value::int64(int(&given[0]).wrapping_add(1)))),
    ("add", "a*>i", |_, given| {
        Ok(Value::int64(given.iter().fold(0, |sum, value| sum.wrapping_add(int(value)))))
    }),
    ("sub", "aa>i", |_, given| Ok(Value::int64(int(&given[0]).wrapping_sub(int(&given[1]))))),
    ("div", "aa>i", |_, given| divide(given, i64::wrapping_div)),
    ("mod", "aa>i", |_, given| divide(given, i64::wrapping_rem)),
    ("mul", "aa*>i", |_, given| {
        Ok(Value::int64(given.iter().fold(1, |all, value| all.wrapping_mul(int(value)))))
    }),
    ("max", "aa*>i", |_, given| Ok(Value::int64(given.iter().map(int).max().unwrap_or(0)))),
    ("biggest", "aa*>i", |_, given| Ok(Value::int64(given.iter().map(int).max().unwrap_or(0)))),
    ("min", "aa*>i", |_, given| Ok(Value::int64(given.iter().map(int).min().unwrap_or(0)))),
    ("maxf", "aa*>f", |_, given| Ok(Value::Float(extreme(given, |a, b| b > a)))),
    ("minf", "aa*>f", |_, given| Ok(Value::Float(extreme(given, |a, b| b < a)))),
    ("ceil", "a>f", |_, given| Ok(Value::Float(float(&given[0]).ceil()))),
    ("floor", "a>f", |_, given| Ok(Value::Float(float(&given[0]).floor()))),
    ("round", "aif*>f", round),
    ("add1f", "a>f", |_, given| decimals(&[given[0].clone(), Value::int(1)], Decimal::add)),
    ("addf", "a*>f", |_, given| {
        let mut all = vec![Value::Float(0.0)];
        all.extend_from_slice(given);
        decimals(&all, Decimal::add)
    }),
    ("subf", "aa*>f", |_, given| decimals(given, Decimal::subtract)),
    ("mulf", "aa*>f", |_, given| decimals(given, Decimal::multiply)),
    ("divf", "aa*>f", |_, given| decimals(given, Decimal::divide)),
    ("randInt", "ii>i", |_, given| {
        let (least, end) = (integer(given, 0), integer(given, 1));
        let span = end.checked_sub(least).filter(|span| *span > 0).ok_or("invalid argument to Intn")?;
        let random = super::crypto::random_below(span.unsigned_abs())?;
        Ok(Value::int(least.wrapping_add(i64::try_from(random).unwrap_or(0))))
    }),
];

/// `strconv.Atoi`, whose errors are ignored: what is too large is the largest.
fn atoi(text: &str) -> i64 {
    match parse_int(text, 10) {
        Ok(value) => value,
        Err(Wrong::Range(_)) if text.starts_with('-') => i64::MIN,
        Err(Wrong::Range(_)) => i64::MAX,
        Err(Wrong::Syntax) => 0,
    }
}

fn divide(given: &[Value], by: fn(i64, i64) -> i64) -> Run<Value> {
    let divisor = int(&given[1]);
    if divisor == 0 {
        return Err("runtime error: integer divide by zero".into());
    }
    Ok(Value::int64(by(int(&given[0]), divisor)))
}

/// Go's `math.Max` and `math.Min`: not a number wins over all but the extreme itself.
fn extreme(given: &[Value], better: fn(f64, f64) -> bool) -> f64 {
    let mut best = float(&given[0]);
    for value in &given[1..] {
        let value = float(value);
        let infinite = if better(0.0, 1.0) { f64::INFINITY } else { f64::NEG_INFINITY };
        #[allow(clippy::float_cmp)]
        if best == infinite || value == infinite {
            best = infinite;
        } else if best.is_nan() || value.is_nan() {
            best = f64::NAN;
        } else if better(best, value)
            || best == 0.0 && value == 0.0 && best.is_sign_negative() == better(0.0, 1.0)
        {
            best = value;
        }
    }
    best
}

fn range(context: &Context<'_>, start: i64, stop: i64, step: i64) -> Run<Vec<i64>> {
    let mut all = Vec::new();
    let up = stop >= start;
    if up && step <= 0 || !up && step >= 0 {
        return Ok(all);
    }
    let count = (i128::from(stop) - i128::from(start)).unsigned_abs() / u128::from(step.unsigned_abs());
    context.engine.make(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(40))?;
    let mut at = start;
    while if up { at < stop } else { at > stop } {
        all.push(at);
        match at.checked_add(step) {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(all)
}

fn until_step(context: &Context<'_>, start: i64, stop: i64, step: i64) -> Run<Value> {
    let all = range(context, start, stop, step)?;
    Ok(Value::List(List::new(Elem::Int, all.into_iter().map(Value::int).collect())))
}

fn seq(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let (start, step, end) = match given.len() {
        1 => (1, None, integer(given, 0)),
        2 => (integer(given, 0), None, integer(given, 1)),
        3 => (integer(given, 0), Some(integer(given, 1)), integer(given, 2)),
        _ => return Ok("".into()),
    };
    let direction = if end < start { -1 } else { 1 };
    if end < start && step.is_some_and(|step| step > 0) {
        return Ok("".into());
    }
    let all = range(context, start, end.wrapping_add(direction), step.unwrap_or(direction))?;
    Ok(all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").into())
}

fn round(_: &Context<'_>, given: &[Value]) -> Run<Value> {
    let on = given.get(2).map_or(0.5, float);
    #[allow(clippy::cast_precision_loss)]
    let power = power_of_ten(integer(given, 1));
    let digit = power * float(&given[0]);
    let rounded = if digit.fract() >= on { digit.ceil() } else { digit.floor() };
    Ok(Value::Float(rounded / power))
}

/// `math.Pow(10, n)`, which is exact where the power is a float.
fn power_of_ten(exponent: i64) -> f64 {
    let exponent = exponent.clamp(-400, 400);
    format!("1e{exponent}").parse().unwrap_or(f64::NAN)
}

/// A decimal number, exact as long as it has up to 38 digits.
#[derive(Clone, Copy)]
struct Decimal {
    digits: i128,
    exponent: i32,
}

type Operation = fn(Decimal, Decimal) -> Result<Option<Decimal>, String>;

fn decimals(given: &[Value], operation: Operation) -> Run<Value> {
    let mut result = Decimal::new(float(&given[0]))?;
    for value in &given[1..] {
        let next = Decimal::new(float(value))?;
        result = match operation(result, next)? {
            Some(next) => next,
            None => return Err("a decimal number has too many digits".into()),
        };
    }
    Ok(Value::Float(result.float()))
}

impl Decimal {
    /// The fewest digits that tell the float.
    fn new(value: f64) -> Result<Self, String> {
        if !value.is_finite() {
            let name =
                if value.is_nan() { "NaN".to_owned() } else { crate::go::float::format(value, 'g', None) };
            return Err(format!("Cannot create a Decimal from {name}"));
        }
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = mantissa.replace('.', "").parse().unwrap_or(0);
        let exponent: i32 = exponent.parse().unwrap_or(0);
        Ok(Self { digits, exponent: exponent - i32::try_from(fraction).unwrap_or(0) })
    }

    fn float(self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(f64::NAN)
    }

    fn scaled(self, exponent: i32) -> Option<i128> {
        let by = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        if self.digits == 0 {
            return Some(0);
        }
        10_i128.checked_pow(by)?.checked_mul(self.digits)
    }

    #[allow(clippy::unnecessary_wraps)] // as the others
    fn add(self, other: Self) -> Result<Option<Self>, String> {
        let exponent = self.exponent.min(other.exponent);
        Ok(Some(match (self.scaled(exponent), other.scaled(exponent)) {
            (Some(a), Some(b)) => Self { digits: a.saturating_add(b), exponent },
            // So far apart that the smaller one does not count in a float.
            _ if self.float().abs() > other.float().abs() => self,
            _ => other,
        }))
    }

    fn subtract(self, other: Self) -> Result<Option<Self>, String> {
        self.add(Self { digits: -other.digits, ..other })
    }

    #[allow(clippy::unnecessary_wraps)]
    fn multiply(self, other: Self) -> Result<Option<Self>, String> {
        Ok(match self.digits.checked_mul(other.digits) {
            Some(digits) => Some(Self { digits, exponent: self.exponent.saturating_add(other.exponent) }),
            None => Self::new(self.float() * other.float()).ok(),
        })
    }

    /// With 16 digits behind the point, the last one rounded.
    fn divide(self, other: Self) -> Result<Option<Self>, String> {
        const PLACES: i32 = 16;
        if other.digits == 0 {
            return Err("decimal division by 0".into());
        }
        let shift = self.exponent - other.exponent + PLACES;
        let (a, b) = if shift >= 0 {
            let scale = u32::try_from(shift).ok().and_then(|by| 10_i128.checked_pow(by));
            (scale.and_then(|scale| scale.checked_mul(self.digits)), Some(other.digits))
        } else {
            let scale = u32::try_from(-shift).ok().and_then(|by| 10_i128.checked_pow(by));
            (Some(self.digits), scale.and_then(|scale| scale.checked_mul(other.digits)))
        };
        let (Some(a), Some(b)) = (a, b) else {
            return Ok(Self::new(self.float() / other.float()).ok());
        };
        let (mut quotient, rest) = (a / b, a % b);
        if rest.unsigned_abs().saturating_mul(2) >= b.unsigned_abs() {
            quotient += if (a < 0) == (b < 0) { 1 } else { -1 };
        }
        Ok(Some(Self { digits: quotient, exponent: -PLACES }))
    }
}
