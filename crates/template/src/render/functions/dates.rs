//! Sprig's functions on times.

use super::cast::int;
use super::{Context, Row, any, lossy};
use crate::go::strconv::parse_int;
use crate::go::time::{Time, duration, format, parse, parse_duration};
use crate::render::exec::Run;
use crate::value::{IntType, Value};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

pub(super) const ROWS: &[Row] = &[
    ("now", ">t", |context, _| Ok(Time::at(context.engine.options().now).value())),
    ("date", "sa>s", |context, given| in_zone(context, &lossy(given, 0), &given[1], "Local")),
    ("date_in_zone", "sas>s", |context, given| {
        in_zone(context, &lossy(given, 0), &given[1], &lossy(given, 2))
    }),
    ("dateInZone", "sas>s", |context, given| in_zone(context, &lossy(given, 0), &given[1], &lossy(given, 2))),
    ("htmlDate", "a>s", |context, given| in_zone(context, "2006-01-02", &given[0], "Local")),
    ("htmlDateInZone", "as>s", |context, given| in_zone(context, "2006-01-02", &given[0], &lossy(given, 1))),
    ("dateModify", "st>t", |_, given| Ok(modify(given).unwrap_or_else(|_| any(given, 1)))),
    ("date_modify", "st>t", |_, given| Ok(modify(given).unwrap_or_else(|_| any(given, 1)))),
    ("mustDateModify", "st>t", |_, given| Ok(modify(given)?)),
    ("must_date_modify", "st>t", |_, given| Ok(modify(given)?)),
    ("ago", "a>s", |context, given| {
        let now = context.engine.options().now;
        let since = now.duration_since(moment(context, &given[0]).timestamp());
        let seconds = since.as_secs() + i64::from(since.subsec_nanos() >= 500_000_000);
        Ok(duration(seconds.saturating_mul(1_000_000_000)).into())
    }),
    ("duration", "a>s", |_, given| {
        let seconds = match &given[0] {
            Value::Str(text) => parse_int(&text.lossy(), 10).unwrap_or(0),
            Value::Int(IntType::Int64, value) => *value,
            _ => 0,
        };
        Ok(duration(seconds.wrapping_mul(1_000_000_000)).into())
    }),
    ("durationRound", "a>s", |context, given| {
        let length = match &given[0] {
            Value::Str(text) => parse_duration(&text.lossy()).unwrap_or(0),
            Value::Int(IntType::Int64, value) => *value,
            value => match Time::of(value) {
                Some(time) => {
                    let since = context.engine.options().now.duration_since(time.0.timestamp());
                    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
                }
                None => 0,
            },
        };
        Ok(rounded(length.unsigned_abs()).into())
    }),
    ("toDate", "ss>t", |_, given| {
        Ok(parse(&lossy(given, 0), &lossy(given, 1)).map_or_else(|_| Time::zero(), Time).value())
    }),
    ("mustToDate", "ss>t", |_, given| Ok(Time(parse(&lossy(given, 0), &lossy(given, 1))?).value())),
    ("unixEpoch", "t>s", |_, given| {
        Ok(Time::of(&given[0]).map_or(0, |time| time.0.timestamp().as_second()).to_string().into())
    }),
];

fn moment(context: &Context<'_>, value: &Value) -> Zoned {
    if let Some(time) = Time::of(value) {
        return time.0.clone();
    }
    let timestamp = match value {
        Value::Int(IntType::Int | IntType::Int32 | IntType::Int64, _) => {
            Timestamp::from_second(int(value)).ok()
        }
        _ => None,
    };
    timestamp.unwrap_or(context.engine.options().now).to_zoned(TimeZone::UTC)
}

/// The machine's own zone is UTC here, wherever it runs: a chart is the same on every machine.
fn in_zone(context: &Context<'_>, layout: &str, value: &Value, zone: &str) -> Run<Value> {
    let zone = match zone {
        "" | "UTC" | "Local" => TimeZone::UTC,
        name => TimeZone::get(name).unwrap_or(TimeZone::UTC),
    };
    Ok(format(&moment(context, value).with_time_zone(zone), layout).into())
}

fn modify(given: &[Value]) -> Result<Value, String> {
    let length = parse_duration(&lossy(given, 0))?;
    let Some(time) = Time::of(&given[1]) else { return Ok(any(given, 1)) };
    let moved = time.0.checked_add(SignedDuration::from_nanos(length));
    moved.map(|time| Time(time).value()).map_err(|error| error.to_string())
}

fn rounded(length: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * SECOND;
    for (unit, name) in [
        (HOUR * 24 * 365, "y"),
        (HOUR * 24 * 30, "mo"),
        (HOUR * 24, "d"),
        (HOUR, "h"),
        (60 * SECOND, "m"),
        (SECOND, "s"),
    ] {
        if length > unit {
            return format!("{}{name}", length / unit);
        }
    }
    "0s".into()
}
