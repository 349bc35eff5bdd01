//! How Go prints: quoted strings and numbers, as Kubernetes' messages and JSON carry them.

use serde_json::Number;
use std::fmt::Write;

/// `%q`: a quoted string with Go's escapes.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c => quote_char(c, &mut out),
        }
    }
    out.push('"');
    out
}

fn quote_char(c: char, out: &mut String) {
    let code = u32::from(c);
    // Writing to a String cannot fail.
    let _ = if printable(c) {
        out.push(c);
        Ok(())
    } else if code < 0x80 {
        write!(out, "\\x{code:02x}")
    } else if code < 0x1_0000 {
        write!(out, "\\u{code:04x}")
    } else {
        write!(out, "\\U{code:08x}")
    };
}

/// Would Go print the character as it is? Rust's own table of printable characters is close; combining marks, which
/// Rust escapes at the start of a string only, are printable in Go.
fn printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut text = String::from("a");
    text.push(c);
    text.escape_debug().nth(1) == Some(c)
}

/// `%v` of a float.
pub(crate) fn float(value: f64) -> String {
    format_float(value, -4, 6)
}

/// A float as `encoding/json` writes it.
pub(crate) fn json_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = exponential(value);
        // A negative exponent of two digits loses its leading zero there.
        match text.strip_suffix(|c: char| c.is_ascii_digit()).and_then(|head| head.strip_suffix("e-0")) {
            Some(head) => format!("{head}e-{}", &text[text.len() - 1..]),
            None => text,
        }
    } else {
        format!("{value}")
    }
}

fn format_float(value: f64, least: i32, most: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let scientific = format!("{value:e}");
    let exponent: i32 =
        scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or_default();
    if exponent < least || exponent >= most { exponential(value) } else { format!("{value}") }
}

/// `1e+21`: Go writes a sign and at least two digits.
fn exponential(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// A number as `%v` prints it.
pub(crate) fn number(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => float(value),
        _ => number.to_string(),
    }
}
