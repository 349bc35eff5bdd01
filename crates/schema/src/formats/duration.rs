//! Durations as Go parses them, and with spelled-out units: `1h30m`, `2 weeks`.

const SECOND: i128 = 1_000_000_000;

/// Units of Go's durations, in nanoseconds.
const GO_UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];

/// Names of units, of which the last may have more letters behind it.
const SPOKEN_UNITS: [(&[&str], i128); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], SECOND),
    (&["m", "min"], 60 * SECOND),
    (&["h", "hr", "hour"], 3600 * SECOND),
    (&["d", "day"], 24 * 3600 * SECOND),
    (&["w", "wk", "week"], 7 * 24 * 3600 * SECOND),
];

/// How many nanoseconds a text in either form means.
pub(crate) fn any(text: &str) -> Option<i64> {
    go(text).or_else(|| spoken(text))
}

/// How many nanoseconds Go's `1h2.5s` means.
pub fn go(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_i128;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit = GO_UNITS.iter().find(|(name, _)| *name == unit)?.1;
        total = total.checked_add(amount(number, unit)?)?;
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Why Go's `time.ParseDuration` does not read a text, in its words.
pub(crate) fn why_not_go(text: &str) -> String {
    let shown = crate::quote(text);
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_end);
        if amount(number, 1).is_none() {
            break;
        }
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        if unit.is_empty() {
            return format!("time: missing unit in duration {shown}");
        }
        if !GO_UNITS.iter().any(|(name, _)| *name == unit) {
            return format!("time: unknown unit {} in duration {shown}", crate::quote(unit));
        }
        rest = tail;
    }
    format!("time: invalid duration {shown}")
}

/// A number with a fraction, in a unit.
fn amount(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // More digits than these are less than a nanosecond.
    let digits = &fraction[..fraction.len().min(18)];
    let parts: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let scale = 10_i128.checked_pow(u32::try_from(digits.len()).ok()?)?;
    whole.checked_mul(unit)?.checked_add(parts * unit / scale)
}

fn spoken(text: &str) -> Option<i64> {
    let mut total = None;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = &rest[start..];
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let unit = number[end..].trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let unit_end = unit.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(unit.len());
        if unit_end > 0 {
            let factor: i64 = number[..end].parse().ok()?;
            let name = unit[..unit_end].to_lowercase();
            let known = SPOKEN_UNITS.iter().find(|(variants, _)| {
                variants.contains(&name.as_str())
                    || variants.last().is_some_and(|longest| name.starts_with(longest))
            });
            if let Some((_, unit)) = known {
                let added = i128::from(factor) * unit;
                total = Some(total.unwrap_or(0_i64).wrapping_add(added as i64));
            }
        }
        rest = &unit[unit_end..];
    }
    total
}
