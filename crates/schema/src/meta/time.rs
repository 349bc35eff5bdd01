//! Times as Go reads them: RFC 3339, whole seconds kept, in UTC.

use crate::go;
use jiff::civil::DateTime;
use jiff::tz::Offset;

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// The time in UTC and whole seconds; none for Go's zero time; an error in Go's words.
pub(super) fn normalise(text: &str) -> Result<Option<String>, String> {
    let mut rest = text;
    let unread = |rest: &str, element: &str| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            go::quote(text),
            go::quote(LAYOUT),
            go::quote(rest),
            go::quote(element)
        )
    };
    let out_of_range = |what: &str| format!("parsing time {}: {what} out of range", go::quote(text));

    let mut numbers = [0_i64; 6];
    let elements =
        [("", "2006", 4), ("-", "01", 2), ("-", "02", 2), ("T", "15", 2), (":", "04", 2), (":", "05", 2)];
    for (number, (separator, element, width)) in numbers.iter_mut().zip(elements) {
        rest = rest.strip_prefix(separator).ok_or_else(|| unread(rest, separator))?;
        let digits = rest.get(..width).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let digits = digits.ok_or_else(|| unread(rest, element))?;
        *number = digits.parse().map_err(|_| unread(rest, element))?;
        rest = &rest[width..];
    }
    let [year, month, day, hour, minute, second] = numbers;
    for (what, number, most) in [("hour", hour, 23), ("minute", minute, 59), ("second", second, 59)] {
        if number > most {
            return Err(out_of_range(what));
        }
    }
    if !(1..=12).contains(&month) {
        return Err(out_of_range("month"));
    }
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let tail = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if tail.len() < fraction.len() {
            rest = tail;
        }
    }
    let offset = offset(rest).ok_or_else(|| unread(rest, "Z07:00"))?;
    let small = |number: i64| i8::try_from(number).unwrap_or_default();
    let year = i16::try_from(year).unwrap_or_default();
    let local = DateTime::new(year, small(month), small(day), small(hour), small(minute), small(second), 0)
        .map_err(|_| out_of_range("day"))?;
    let instant = offset.to_timestamp(local).map_err(|_| out_of_range("year"))?;
    let utc = Offset::UTC.to_datetime(instant);
    if (utc.year(), utc.month(), utc.day(), utc.hour(), utc.minute(), utc.second()) == (1, 1, 1, 0, 0, 0) {
        return Ok(None);
    }
    Ok(Some(format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        utc.year(),
        utc.month(),
        utc.day(),
        utc.hour(),
        utc.minute(),
        utc.second()
    )))
}

fn offset(text: &str) -> Option<Offset> {
    if text == "Z" {
        return Some(Offset::UTC);
    }
    let sign = match text.as_bytes() {
        [b'+', _, _, b':', _, _] => 1,
        [b'-', _, _, b':', _, _] => -1,
        _ => return None,
    };
    let number = |from: usize| text.get(from..from + 2)?.parse::<i32>().ok();
    let (hours, minutes) = (number(1)?, number(4)?);
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok().filter(|_| hours < 24 && minutes < 60)
}
