//! What a plain scalar is: YAML 1.1, as go-yaml v2 knows it.

use crate::go::strconv::{parse_float, parse_int, parse_uint};
use serde_json::{Number, Value as Json};

/// The value of a scalar without quotes and without a tag.
pub(super) fn resolve(text: &str) -> Result<Json, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Json::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Json::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" => return Err("json: unsupported value: NaN".into()),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Err("json: unsupported value: +Inf".into());
        }
        "-.inf" | "-.Inf" | "-.INF" => return Err("json: unsupported value: -Inf".into()),
        text => number(text).unwrap_or_else(|| Json::String(text.to_owned())),
    })
}

fn number(text: &str) -> Option<Json> {
    let first = text.chars().next()?;
    if first == '.' {
        return parse_float(text).ok().and_then(float);
    }
    if !first.is_ascii_digit() && first != '+' && first != '-' || timestamp(text) {
        return None;
    }
    let plain = text.replace('_', "");
    if let Ok(int) = parse_int(&plain, 0) {
        return Some(Json::Number(int.into()));
    }
    if let Ok(uint) = parse_uint(&plain, 0) {
        return Some(Json::Number(uint.into()));
    }
    is_float(&plain).then(|| parse_float(&plain).ok().and_then(float)).flatten()
}

/// A float that has a whole value is written without a fraction in JSON, and read as such.
fn float(value: f64) -> Option<Json> {
    let text = crate::go::float::json(value);
    if let Ok(int) = text.parse::<i64>() {
        return Some(Json::Number(int.into()));
    }
    Number::from_f64(value).map(Json::Number)
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn is_float(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa && exponent.is_none_or(digits)
}

/// Times stay texts, so `2026-01-01` is not a subtraction.
fn timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() > 5 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-'
}

/// The value of a scalar with a tag of YAML's own.
pub(super) fn tagged(tag: &str, text: &str, plain: bool) -> Result<Json, String> {
    match tag {
        "str" => Ok(Json::String(text.to_owned())),
        "binary" => {
            use base64::Engine;
            let packed: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(packed)
                .map_err(|_| "!!binary value contains invalid base64 data")?;
            Ok(Json::String(crate::text::lossy(&bytes).into_owned()))
        }
        "float" | "int" | "bool" | "null" => {
            let value = resolve(text)?;
            let fits = match tag {
                "float" | "int" => value.is_number(),
                "bool" => value.is_boolean(),
                _ => value.is_null(),
            };
            if fits { Ok(value) } else { Err(format!("cannot decode !!str `{text}` as a !!{tag}")) }
        }
        _ if plain => resolve(text),
        _ => Ok(Json::String(text.to_owned())),
    }
}

/// A key of a mapping, as a text.
pub(super) fn key(value: &Json) -> Result<String, String> {
    match value {
        Json::String(text) => Ok(text.clone()),
        Json::Bool(value) => Ok(value.to_string()),
        Json::Number(number) => Ok(match number.as_f64() {
            Some(value) if number.is_f64() => crate::go::float::format(value, 'g', None),
            _ => number.to_string(),
        }),
        other => Err(format!(
            "unsupported map key of type: {}, key: {other}",
            if other.is_null() { "nil" } else { "map" }
        )),
    }
}
