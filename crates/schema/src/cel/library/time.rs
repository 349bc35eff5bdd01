//! Times and durations. Zones are UTC and fixed offsets; there is no table of named zones.

use super::super::value::{Failure, Meter, Outcome, Value};
use super::Row;
use crate::formats::duration as durations;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

const TIME: &str = ".(timestamp) int | .(timestamp, string) int";
const EITHER: &str = ".(timestamp) int | .(timestamp, string) int | .(duration) int";

pub(super) const ROWS: &[Row] = &[
    Row("getFullYear", TIME, |meter, values| part(meter, values, |time| time.year().into())),
    Row("getMonth", TIME, |meter, values| part(meter, values, |time| i64::from(time.month()) - 1)),
    Row("getDayOfYear", TIME, |meter, values| part(meter, values, |time| i64::from(time.day_of_year()) - 1)),
    Row("getDate", TIME, |meter, values| part(meter, values, |time| time.day().into())),
    Row("getDayOfMonth", TIME, |meter, values| part(meter, values, |time| i64::from(time.day()) - 1)),
    Row("getDayOfWeek", TIME, |meter, values| {
        part(meter, values, |time| time.weekday().to_sunday_zero_offset().into())
    }),
    Row("getHours", EITHER, |meter, values| {
        either(meter, values, 3_600_000_000_000, |time| time.hour().into())
    }),
    Row("getMinutes", EITHER, |meter, values| {
        either(meter, values, 60_000_000_000, |time| time.minute().into())
    }),
    Row("getSeconds", EITHER, |meter, values| {
        either(meter, values, 1_000_000_000, |time| time.second().into())
    }),
    Row("getMilliseconds", EITHER, |meter, values| match values {
        // Only those beyond the whole seconds.
        [Value::Duration(nanoseconds)] => {
            meter.charge(1)?;
            Ok(Value::Int(nanoseconds / 1_000_000 % 1_000))
        }
        _ => part(meter, values, |time| time.millisecond().into()),
    }),
];

fn either<'a>(meter: &mut Meter, values: &[Value<'a>], unit: i64, read: fn(&DateTime) -> i64) -> Outcome<'a> {
    match values {
        [Value::Duration(nanoseconds)] => {
            meter.charge(1)?;
            Ok(Value::Int(nanoseconds / unit))
        }
        _ => part(meter, values, read),
    }
}

fn part<'a>(meter: &mut Meter, values: &[Value<'a>], read: fn(&DateTime) -> i64) -> Outcome<'a> {
    meter.charge(1)?;
    let (time, offset) = match values {
        [Value::Timestamp(time)] => (time, Offset::UTC),
        [Value::Timestamp(time), Value::String(zone)] => (time, zone_offset(zone)?),
        _ => return Err(Failure::no_such_overload()),
    };
    Ok(Value::Int(read(&offset.to_datetime(*time))))
}

fn zone_offset(zone: &str) -> Result<Offset, Failure> {
    if matches!(zone, "" | "UTC" | "Etc/UTC" | "GMT") {
        return Ok(Offset::UTC);
    }
    let unknown = || Failure::new(format!("unknown time zone {zone}"));
    let (hours, minutes) = zone.split_once(':').ok_or_else(unknown)?;
    let negative = hours.starts_with('-');
    let hours: i32 = hours.trim_start_matches(['+', '-']).parse().map_err(|_| unknown())?;
    let minutes: i32 = minutes.parse().map_err(|_| unknown())?;
    let seconds = hours.checked_mul(3600).and_then(|seconds| seconds.checked_add(minutes.checked_mul(60)?));
    let seconds = seconds.ok_or_else(unknown)?;
    Offset::from_seconds(if negative { -seconds } else { seconds }).map_err(|_| unknown())
}

/// A constant such as `1h30m`.
pub(in super::super) fn duration(text: &str) -> Result<i64, String> {
    durations::go(text).ok_or_else(|| format!("time: invalid duration {}", crate::go::quote(text)))
}

/// A duration of the data, where people's own words are allowed too.
pub(in super::super) fn data_duration(text: &str) -> Result<i64, String> {
    durations::any(text).ok_or_else(|| format!("unable to parse {text} as duration"))
}

/// A time as RFC 3339 writes it.
pub(in super::super) fn timestamp(text: &str) -> Result<Timestamp, String> {
    let bytes = text.as_bytes();
    let shaped = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[10] == b'T'
        && bytes[13] == b':'
        && bytes[16] == b':'
        && !text.contains('[');
    let parsed: Option<Timestamp> = if shaped { text.parse().ok() } else { None };
    let parsed = parsed.filter(|time| time.as_second() >= FIRST && time.as_second() <= LAST);
    parsed.ok_or_else(|| format!("parsing time {}", crate::go::quote(text)))
}

/// A time of the data, which may be written in lower case.
pub(in super::super) fn date_time(text: &str) -> Result<Timestamp, String> {
    if text.is_empty() {
        return Timestamp::from_second(FIRST).map_err(|why| why.to_string());
    }
    timestamp(&text.to_ascii_uppercase().replacen(' ', "T", 1))
}

/// The beginning of a day of the data.
pub(in super::super) fn date(text: &str) -> Result<Timestamp, String> {
    let date: Date = text.parse().map_err(|_| format!("parsing time {}", crate::go::quote(text)))?;
    Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).map_err(|why| why.to_string())
}

/// The first and the last second that there is: the years 1 to 9999.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;

/// The time that many nanoseconds after 1970 began.
pub(in super::super) fn at(nanoseconds: i128) -> Result<Timestamp, Failure> {
    let overflow = || Failure::new("timestamp overflow");
    let seconds = nanoseconds.div_euclid(1_000_000_000);
    if !(i128::from(FIRST)..=i128::from(LAST)).contains(&seconds) {
        return Err(overflow());
    }
    Timestamp::from_nanosecond(nanoseconds).map_err(|_| overflow())
}

/// The time that many nanoseconds later.
pub(in super::super) fn shift(time: Timestamp, by: i128) -> Result<Timestamp, Failure> {
    at(time.as_nanosecond() + by)
}
