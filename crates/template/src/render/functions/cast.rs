//! `spf13/cast`: numbers from anything, zero from the rest.

use crate::go::strconv::{parse_float, parse_int};
use crate::value::{IntType, Value};

/// A float as `int64`: what does not fit is the least one, as on amd64.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
pub(super) fn truncate(value: f64) -> i64 {
    if value >= -(2.0_f64.powi(63)) && value < 2.0_f64.powi(63) { value as i64 } else { i64::MIN }
}

/// `toInt64`
#[allow(clippy::cast_possible_wrap)]
pub(super) fn int(value: &Value) -> i64 {
    match value {
        Value::Int(IntType::Duration, _) => 0,
        Value::Int(_, value) => *value,
        Value::Uint(_, value) => *value as i64,
        Value::Float(value) => truncate(*value),
        Value::Bool(value) => i64::from(*value),
        Value::Str(text) => parse_int(without_decimals(&text.lossy()), 0).unwrap_or(0),
        _ => 0,
    }
}

/// `toFloat64`
#[allow(clippy::cast_precision_loss)]
pub(super) fn float(value: &Value) -> f64 {
    match value {
        Value::Int(IntType::Duration, _) => 0.0,
        Value::Int(_, value) => *value as f64,
        Value::Uint(_, value) => *value as f64,
        Value::Float(value) => *value,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Str(text) => parse_float(&text.lossy()).unwrap_or(0.0),
        _ => 0.0,
    }
}

/// `8.00` is `8`.
fn without_decimals(text: &str) -> &str {
    let rest = text.trim_end_matches('0');
    match rest.strip_suffix('.') {
        Some(whole) if rest.len() < text.len() => whole,
        _ => text,
    }
}
