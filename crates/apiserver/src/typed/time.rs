//! Times as Kubernetes reads and writes them: RFC 3339, in UTC, to the second or to the microsecond.

use jiff::Timestamp;

/// `text` as it is written back.
pub(super) fn rewrite(text: &str, micro: bool) -> Result<String, String> {
    let layout = if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    if let Err(reason) = check(text, micro) {
        return Err(format!("parsing time {text:?} as {layout:?}: {reason}"));
    }
    let time: Timestamp = text.parse().map_err(|_| format!("parsing time {text:?}: day out of range"))?;
    let format = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(time.strftime(format).to_string())
}

/// Says where `text` leaves the layout, as Go's parser does: the rest of the text, and the part of the layout.
fn check(text: &str, micro: bool) -> Result<(), String> {
    const PARTS: [(&str, usize, u32, &str); 11] = [
        ("2006", 4, 9999, ""),
        ("-", 0, 0, ""),
        ("01", 2, 12, "month"),
        ("-", 0, 0, ""),
        ("02", 2, 31, "day"),
        ("T", 0, 0, ""),
        ("15", 2, 23, "hour"),
        (":", 0, 0, ""),
        ("04", 2, 59, "minute"),
        (":", 0, 0, ""),
        ("05", 2, 59, "second"),
    ];
    let mut rest = text;
    for (part, digits, most, name) in PARTS {
        let wrong = || format!("cannot parse {rest:?} as {part:?}");
        if digits == 0 {
            rest = rest.strip_prefix(part).ok_or_else(wrong)?;
            continue;
        }
        let number = rest.get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number: u32 = number.and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
        if !name.is_empty() && (number > most || (number == 0 && matches!(name, "month" | "day"))) {
            return Err(format!("{name} out of range"));
        }
        rest = &rest[digits..];
    }
    let fraction = rest
        .strip_prefix('.')
        .map(|rest| rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len());
    if micro {
        if fraction.is_none_or(|digits| digits < 6) {
            return Err(format!("cannot parse {rest:?} as \".000000\""));
        }
        rest = &rest[7..];
    } else if let Some(digits) = fraction.filter(|digits| *digits > 0) {
        rest = &rest[digits + 1..];
    }
    let zone = rest.as_bytes();
    let numeric = zone.len() >= 6
        && matches!(zone[0], b'+' | b'-')
        && zone[3] == b':'
        && [1, 2, 4, 5].iter().all(|&at| zone[at].is_ascii_digit());
    let used = match zone.first() {
        Some(b'Z') => 1,
        _ if numeric => 6,
        _ => return Err(format!("cannot parse {rest:?} as \"Z07:00\"")),
    };
    match rest.get(used..) {
        Some("") => Ok(()),
        extra => Err(format!("extra text: {:?}", extra.unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn times_are_written_in_utc() {
        let micro = rewrite("2026-01-01T00:00:00.123456+02:00", true);
        assert_eq!(micro.as_deref(), Ok("2025-12-31T22:00:00.123456Z"));
        assert_eq!(rewrite("2026-01-01T00:00:00.9Z", false).as_deref(), Ok("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn errors_point_at_the_rest() {
        assert_eq!(
            rewrite("foo", false).unwrap_err(),
            r#"parsing time "foo" as "2006-01-02T15:04:05Z07:00": cannot parse "foo" as "2006""#
        );
        assert_eq!(
            rewrite("2026-01-01T00:00:00Z", true).unwrap_err(),
            r#"parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#
        );
    }
}
