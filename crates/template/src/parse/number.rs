//! Number literals.

use super::node::Number;
use super::unquote::{Unit, unquote_char};
use crate::go::quote::quote;
use crate::go::strconv::{parse_float, parse_int, parse_uint};

/// `'x'`
pub(super) fn character(text: &str) -> Result<Number, String> {
    let (unit, tail) = unquote_char(text.get(1..).unwrap_or_default(), '\'')?;
    if tail != "'" {
        return Err(format!("malformed character constant: {text}"));
    }
    let code = match unit {
        Unit::Char(character) => u32::from(character),
        Unit::Byte(byte) => u32::from(byte),
    };
    Ok(Number {
        text: text.into(),
        int: Some(i64::from(code)),
        uint: Some(u64::from(code)),
        float: Some(f64::from(code)),
        complex: None,
    })
}

/// `1+2i`
pub(super) fn complex(text: &str) -> Result<Number, String> {
    let wrong = || "syntax error scanning complex number".to_owned();
    let inner = text.strip_suffix('i').ok_or_else(wrong)?;
    // The sign between both parts, not the one of an exponent.
    let bytes = inner.as_bytes();
    let middle = (1..bytes.len())
        .rev()
        .find(|at| matches!(bytes[*at], b'+' | b'-') && !matches!(bytes[at - 1], b'e' | b'E' | b'p' | b'P'))
        .ok_or_else(wrong)?;
    let real = parse_float(&inner[..middle]).map_err(|_| wrong())?;
    let imaginary = parse_float(&inner[middle..]).map_err(|_| wrong())?;
    Ok(simplified(text, real, imaginary))
}

fn simplified(text: &str, real: f64, imaginary: f64) -> Number {
    let mut number = Number { text: text.into(), complex: Some((real, imaginary)), ..Number::default() };
    if imaginary == 0.0 {
        number.float = Some(real);
        number.int = whole(real);
        number.uint = whole_unsigned(real);
    }
    number
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn whole(value: f64) -> Option<i64> {
    let int = value as i64;
    (int as f64 == value && int != i64::MAX).then_some(int)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
fn whole_unsigned(value: f64) -> Option<u64> {
    let uint = value as u64;
    (uint as f64 == value && uint != u64::MAX).then_some(uint)
}

/// Everything else.
pub(super) fn number(text: &str) -> Result<Number, String> {
    if let Some(imaginary) = text.strip_suffix('i').and_then(|part| parse_float(part).ok()) {
        return Ok(simplified(text, 0.0, imaginary));
    }
    let mut number = Number {
        text: text.into(),
        uint: parse_uint(text, 0).ok(),
        int: parse_int(text, 0).ok(),
        ..Number::default()
    };
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    #[allow(clippy::cast_precision_loss)]
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Ok(float) = parse_float(text) {
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {}", quote(text.as_bytes())));
        }
        number.float = Some(float);
        number.int = whole(float);
        number.uint = whole_unsigned(float);
    }
    if number.float.is_none() {
        return Err(format!("illegal number syntax: {}", quote(text.as_bytes())));
    }
    Ok(number)
}
