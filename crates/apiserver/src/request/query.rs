//! The query of a URL: its parameters in order, and the timeout that every request may name.

use crate::request::path::unescape;
use crate::status::Status;
use std::time::Duration;

/// A URL's query, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(name, true)?, unescape(value, true)?))
        });
        Self(pairs.collect())
    }

    /// The first value of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The same with another parameter.
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// All of them, in order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A flag, as Kubernetes reads one: present and neither `false` nor `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }
}

/// Checks the time that a request may take, as everything but a watch reads it.
///
/// # Errors
/// 400 for what is no duration.
pub(crate) fn check_timeout(query: &Query) -> Result<(), Status> {
    let asked = query.get("timeout").unwrap_or_default();
    if asked.is_empty() {
        return Ok(());
    }
    duration(asked).map(drop).map_err(|why| {
        Status::bad_request(format!("invalid timeout specified in the request URL - time: {why}"))
    })
}

/// The time that a request may take: as it says, or as long as any.
pub(crate) fn timeout(query: &Query) -> Duration {
    let asked = query.get("timeout").and_then(|asked| duration(asked).ok()).filter(|time| *time > 0.0);
    asked.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(Duration::MAX)
}

/// A duration, such as `1m30s`, in seconds. Says in Go's words why it is none.
fn duration(text: &str) -> Result<f64, String> {
    let invalid = || format!("invalid duration {text:?}");
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Ok(0.0);
    }
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let mut seconds = 0.0;
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let number = rest.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(rest.len());
        let (amount, after) = rest.split_at(number);
        if !amount.contains(|next: char| next.is_ascii_digit()) || amount.matches('.').count() > 1 {
            return Err(invalid());
        }
        let unit = after.find(|next: char| next.is_ascii_digit() || next == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let one = match unit {
            "" => return Err(format!("missing unit in duration {text:?}")),
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(format!("unknown unit {unit:?} in duration {text:?}")),
        };
        seconds += amount.parse::<f64>().unwrap_or_default() * one;
        rest = after;
    }
    Ok(sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_gos() {
        for fine in ["0", "5s", "-1s", "1m30s", "1.5h", ".5ms"] {
            assert!(duration(fine).is_ok(), "{fine}");
        }
        assert_eq!((duration("1m30s"), duration("-1.5s")), (Ok(90.0), Ok(-1.5)));
        assert_eq!(timeout(&Query::parse("timeout=1500ms")), Duration::from_millis(1500));
        assert_eq!(timeout(&Query::parse("timeout=-1s")), Duration::MAX);
        for (text, why) in [
            ("5", "missing unit in duration \"5\""),
            ("x", "invalid duration \"x\""),
            ("5y", "unknown unit \"y\" in duration \"5y\""),
            ("-", "invalid duration \"-\""),
        ] {
            assert_eq!(duration(text), Err(why.to_owned()));
        }
    }
}
