//! Amounts such as `100m` and `1.5Gi`: read and written again as Kubernetes writes them.
//!
//! What is written in its shortest form stays as it was; all else is brought to one: `1000m` is `1`, `1.5Gi` is `1536Mi`,
//! `0.5` is `500m`. Less than a billionth is rounded up to one.

const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";

/// The smallest power of ten that is kept.
const NANO: i32 = -9;

/// Numbers of more digits than this are kept as they were written.
const MOST_DIGITS: usize = 18;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Exponent,
    Binary,
    Decimal,
}

/// A number and its suffix, still as text.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// The amount in `text` as Kubernetes writes it, or why it is none.
pub(crate) fn rewrite(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Err(WRONG_FORMAT);
    }
    let parts = split(text)?;
    let (format, exponent) = interpret(parts.suffix).ok_or(WRONG_SUFFIX)?;
    let digits = format!("{}{}", parts.whole, parts.fraction);
    if digits.len() > MOST_DIGITS {
        return if digits.bytes().all(|digit| digit.is_ascii_digit()) {
            Ok(text.to_owned())
        } else {
            Err(WRONG_NUMBER)
        };
    }
    let number: i128 = digits.parse().map_err(|_| WRONG_NUMBER)?;
    if is_shortest(&parts, &digits, number, format, exponent) {
        return Ok(text.to_owned());
    }
    let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
    let (mut amount, mut scale) = match format {
        Format::Binary => (number << exponent, -places),
        _ => (number, exponent.saturating_sub(places)),
    };
    if scale < NANO {
        amount = round_up(amount, NANO.saturating_sub(scale));
        scale = NANO;
    }
    if format == Format::Binary && scale == 0 {
        amount = amount.min(i128::from(i64::MAX));
    }
    let (amount, suffix) = shortest(amount, scale, format);
    let sign = if parts.negative && amount != 0 { "-" } else { "" };
    Ok(format!("{sign}{amount}{suffix}"))
}

/// The amount in billionths, and how it was written; none if it is none, or beyond counting.
pub(super) fn nanos(text: &str) -> Option<(i128, Format)> {
    let parts = split(text.trim()).ok()?;
    let (format, exponent) = interpret(parts.suffix)?;
    let number: i128 = format!("{}{}", parts.whole, parts.fraction).parse().ok()?;
    let places = i32::try_from(parts.fraction.len()).ok()?;
    let (number, scale) = match format {
        Format::Binary => (number.checked_mul(1 << exponent)?, -places),
        _ => (number, exponent.saturating_sub(places)),
    };
    let nanos = match scale.saturating_sub(NANO) {
        up @ 0.. => number.checked_mul(10_i128.checked_pow(u32::try_from(up).ok()?)?)?,
        down => round_up(number, -down),
    };
    Some((if parts.negative { -nanos } else { nanos }, format))
}

/// An amount of billionths in its shortest form.
pub(super) fn written(nanos: i128, format: Format) -> String {
    let (amount, suffix) = shortest(nanos.abs(), NANO, format);
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{amount}{suffix}")
}

fn split(text: &str) -> Result<Parts<'_>, &'static str> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let negative = text.starts_with('-');
    let rest = unsigned.trim_start_matches('0');
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = rest.split_at(digits(rest));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let letters = suffix.trim_start_matches(|letter: char| "eEinumkKMGTP".contains(letter));
    let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if !exponent.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(WRONG_FORMAT);
    }
    Ok(Parts { negative, whole: if whole.is_empty() { "0" } else { whole }, fraction, suffix })
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

fn interpret(suffix: &str) -> Option<(Format, i32)> {
    let known = |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == suffix).map(|row| row.1);
    if let Some(exponent) = known(&DECIMAL) {
        return Some((Format::Decimal, exponent));
    }
    if let Some(exponent) = known(&BINARY) {
        return Some((Format::Binary, exponent));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    exponent.parse().ok().map(|exponent| (Format::Exponent, exponent))
}

/// Is it written in a form that Kubernetes leaves alone?
fn is_shortest(parts: &Parts<'_>, digits: &str, number: i128, format: Format, exponent: i32) -> bool {
    let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    match format {
        Format::Binary => {
            parts.fraction.is_empty()
                && 15 - length - exponent * 3 / 10 > 0
                && number & 7 != 0
                && i64::try_from(number << exponent).is_ok()
        }
        _ => {
            let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
            let scale = exponent.saturating_sub(places);
            scale >= NANO && scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
        }
    }
}

/// Divided by ten to the power of `places`, and away from nothing.
fn round_up(amount: i128, places: i32) -> i128 {
    match u32::try_from(places).ok().and_then(|places| 10_i128.checked_pow(places)) {
        Some(divisor) => amount / divisor + i128::from(amount % divisor != 0),
        None => i128::from(amount != 0),
    }
}

fn shortest(mut amount: i128, mut scale: i32, format: Format) -> (i128, String) {
    if amount == 0 {
        return (0, String::new());
    }
    while amount % 10 == 0 {
        amount /= 10;
        scale += 1;
    }
    if format == Format::Binary && scale >= 0 {
        let whole = u32::try_from(scale).ok().and_then(|scale| 10_i128.checked_pow(scale));
        if let Some(whole) = whole.and_then(|power| amount.checked_mul(power)).filter(|whole| *whole >= 1024)
        {
            return in_powers_of_1024(whole);
        }
    }
    while scale % 3 != 0 {
        amount = amount.saturating_mul(10);
        scale -= 1;
    }
    let suffix = match format {
        Format::Exponent if scale == 0 => String::new(),
        Format::Exponent => format!("e{scale}"),
        _ => DECIMAL.iter().find(|row| row.1 == scale).map_or(String::new(), |row| row.0.to_owned()),
    };
    (amount, suffix)
}

fn in_powers_of_1024(mut amount: i128) -> (i128, String) {
    let mut power = 0;
    while amount % 1024 == 0 && power < BINARY.len() {
        amount /= 1024;
        power += 1;
    }
    let suffix = power.checked_sub(1).and_then(|index| BINARY.get(index)).map_or("", |row| row.0);
    (amount, suffix.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_kubernetes_writes_them() {
        for (given, written) in [
            ("1000m", "1"),
            ("100m", "100m"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("1Gi", "1Gi"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1000", "1k"),
            ("1234", "1234"),
            ("12e6", "12e6"),
            ("1e3", "1e3"),
            ("0.1n", "1n"),
            ("1.500", "1.500"),
            ("+5", "+5"),
            ("-1000m", "-1"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("8Ki", "8Ki"),
            ("16Gi", "16Gi"),
        ] {
            assert_eq!(rewrite(given).as_deref(), Ok(written), "{given}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        assert_eq!(rewrite(""), Err(WRONG_FORMAT));
        assert_eq!(rewrite("a"), Err(WRONG_FORMAT));
        assert_eq!(rewrite("1z"), Err(WRONG_FORMAT));
        assert_eq!(rewrite("1KiKi"), Err(WRONG_SUFFIX));
        assert_eq!(rewrite("1e999999999999"), Err(WRONG_SUFFIX));
    }
}
