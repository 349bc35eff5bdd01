//! Times as people read them: how long ago, in one or two units.

use jiff::Timestamp;
use serde_json::Value;

/// How long ago `then` was, as tables show ages; unknown if it is missing.
pub(super) fn since(then: Option<&Value>, now: Timestamp) -> String {
    let Some(text) = then.and_then(Value::as_str) else { return "<unknown>".to_owned() };
    match text.parse::<Timestamp>() {
        Ok(then) => seconds(now.as_second().saturating_sub(then.as_second())),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// A stretch of time. Clocks may differ by a second before it counts as wrong.
pub(super) fn seconds(seconds: i64) -> String {
    let pair = |large: i64, large_unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ages_get_coarser_as_they_grow() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_160, "3h6m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ];
        for (given, shown) in cases {
            assert_eq!(seconds(given), shown, "{given}");
        }
    }

    #[test]
    fn what_is_no_time_has_no_age() {
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        assert_eq!(since(Some(&json!("2026-01-01T00:00:00Z")), now), "10s");
        assert_eq!(since(Some(&json!("yesterday")), now), "<invalid>");
        assert_eq!(since(Some(&json!(null)), now), "<unknown>");
        assert_eq!(since(None, now), "<unknown>");
    }
}
