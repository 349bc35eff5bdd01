//! Reading numbers as `strconv` does.

/// Why a number could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    Syntax,
    /// With the value that Go answers nevertheless.
    Range(u64),
}

/// `strconv.ParseUint(text, base, 64)`; base 0 takes it from the prefix, and allows `_` between digits.
pub(crate) fn parse_uint(text: &str, base: u32) -> Result<u64, Wrong> {
    if text.is_empty() {
        return Err(Wrong::Syntax);
    }
    let (mut digits, mut radix) = (text, base);
    if base == 0 {
        radix = 10;
        if let Some(after_zero) = text.strip_prefix('0') {
            let prefix = text.get(..2).unwrap_or_default().to_ascii_lowercase();
            (digits, radix) = match prefix.as_str() {
                "0b" if text.len() > 2 => (&text[2..], 2),
                "0o" if text.len() > 2 => (&text[2..], 8),
                "0x" if text.len() > 2 => (&text[2..], 16),
                _ => (after_zero, 8),
            };
            if digits.is_empty() {
                return Ok(0);
            }
        }
    }
    let mut value: u64 = 0;
    let mut over = false;
    for c in digits.chars() {
        if c == '_' && base == 0 {
            continue;
        }
        let digit = c.to_digit(radix).ok_or(Wrong::Syntax)?;
        match value.checked_mul(u64::from(radix)).and_then(|value| value.checked_add(u64::from(digit))) {
            Some(next) => value = next,
            None => over = true,
        }
    }
    if text.contains('_') && !underscores_ok(text) {
        return Err(Wrong::Syntax);
    }
    if over { Err(Wrong::Range(u64::MAX)) } else { Ok(value) }
}

/// `strconv.ParseInt(text, base, 64)`
pub(crate) fn parse_int(text: &str, base: u32) -> Result<i64, Wrong> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let value = match parse_uint(digits, base) {
        Ok(value) => value,
        Err(Wrong::Syntax) => return Err(Wrong::Syntax),
        Err(Wrong::Range(_)) => u64::MAX,
    };
    let limit = 1_u64 << 63;
    match (negative, value) {
        (false, value) => i64::try_from(value).map_err(|_| Wrong::Range(limit - 1)),
        (true, value) if value <= limit => Ok((value as i64).wrapping_neg()),
        (true, _) => Err(Wrong::Range(limit)),
    }
}

/// Underscores stand between digits, or between a prefix and a digit.
fn underscores_ok(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = text.to_ascii_lowercase();
    let hex = lower.starts_with("0x");
    let (mut before, rest) = match lower.get(..2) {
        Some("0x" | "0b" | "0o") => ('0', &lower[2..]),
        _ => ('^', lower.as_str()),
    };
    for c in rest.chars() {
        if c.is_ascii_digit() || hex && c.is_ascii_hexdigit() {
            before = '0';
        } else if c == '_' {
            if before != '0' {
                return false;
            }
            before = '_';
        } else {
            if before == '_' {
                return false;
            }
            before = '!';
        }
    }
    before != '_'
}

/// `strconv.ParseFloat(text, 64)`
pub(crate) fn parse_float(text: &str) -> Result<f64, Wrong> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let value = match lower.as_str() {
        "inf" | "infinity" => f64::INFINITY,
        "nan" if digits.len() == text.len() => f64::NAN,
        _ => {
            if lower.contains('_') && (!lower.starts_with("0x") || !underscores_ok(text)) {
                // Only literals with a prefix may have them.
                return Err(Wrong::Syntax);
            }
            let plain = lower.replace('_', "");
            let value = match plain.strip_prefix("0x") {
                Some(hex) => parse_hex(hex)?,
                None => {
                    let decimal =
                        plain.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'+' | b'-'));
                    if !decimal || plain.starts_with(['+', '-']) {
                        return Err(Wrong::Syntax);
                    }
                    plain.parse::<f64>().map_err(|_| Wrong::Syntax)?
                }
            };
            if value.is_infinite() {
                return Err(Wrong::Range(0));
            }
            value
        }
    };
    Ok(if negative { -value } else { value })
}

/// `1.8p3`, which stands for 1.5 * 2^3.
fn parse_hex(text: &str) -> Result<f64, Wrong> {
    let (mantissa, exponent) = text.split_once('p').ok_or(Wrong::Syntax)?;
    let exponent: i32 = exponent.parse().map_err(|_| Wrong::Syntax)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || whole.len() + fraction.len() > 13 {
        return Err(Wrong::Syntax);
    }
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16).ok_or(Wrong::Syntax)?);
    }
    let shift = i32::try_from(fraction.len()).unwrap_or(0) * 4;
    Ok(value * 2.0_f64.powi(exponent.clamp(-5000, 5000) - shift))
}
