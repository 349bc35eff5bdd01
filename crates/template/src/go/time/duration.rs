//! `time.Duration`: nanoseconds, such as `1h2m3.5s`.

/// `Duration.String`
pub(crate) fn duration(nanoseconds: i64) -> String {
    let total = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let fraction = |value: u64, unit: u64, digits: usize| {
        let (whole, rest) = (value / unit, value % unit);
        let rest = format!("{rest:0digits$}");
        match rest.trim_end_matches('0') {
            "" => whole.to_string(),
            rest => format!("{whole}.{rest}"),
        }
    };
    match total {
        0 => "0s".into(),
        1..1_000 => format!("{sign}{total}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", fraction(total, 1_000, 3)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", fraction(total, 1_000_000, 6)),
        _ => {
            let seconds = fraction(total % 60_000_000_000, 1_000_000_000, 9);
            let minutes = total / 60_000_000_000;
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// `time.ParseDuration`
pub(crate) fn parse(text: &str) -> Result<i64, String> {
    let quoted = super::quote(text);
    let invalid = || format!("time: invalid duration {quoted}");
    let (negative, mut rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = &rest[..number_end];
        // A second point ends the number, and begins what should be its unit.
        let points: Vec<usize> = number.match_indices('.').map(|(at, _)| at).collect();
        let number = points.get(1).map_or(number, |second| &number[..*second]);
        if number.is_empty() || number == "." {
            return Err(invalid());
        }
        rest = &rest[number.len()..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = &rest[..unit_end];
        rest = &rest[unit_end..];
        let scale: u64 = match unit {
            "" => return Err(format!("time: missing unit in duration {quoted}")),
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            other => {
                let unit = super::quote(other);
                return Err(format!("time: unknown unit {unit} in duration {quoted}"));
            }
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        let mut part = whole.checked_mul(scale).ok_or_else(invalid)?;
        if !fraction.is_empty() {
            let digits = &fraction[..fraction.len().min(18)];
            let value: u128 = digits.parse().map_err(|_| invalid())?;
            let power = 10_u128.pow(u32::try_from(digits.len()).unwrap_or(18));
            part = part.saturating_add(u64::try_from(value * u128::from(scale) / power).unwrap_or(0));
        }
        total = total.checked_add(part).filter(|total| *total <= 1 << 63).ok_or_else(invalid)?;
    }
    match (negative, i64::try_from(total)) {
        (true, Ok(total)) => Ok(-total),
        (true, Err(_)) => Ok(i64::MIN),
        (false, Ok(total)) => Ok(total),
        (false, Err(_)) => Err(invalid()),
    }
}
