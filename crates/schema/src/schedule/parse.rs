//! The grammar of schedules.

use super::{Fields, Kind, ParseScheduleError as Error, Schedule, time_zone};
use crate::formats::duration;
use jiff::SignedDuration;
use jiff::tz::TimeZone;

/// The numbers of a field, and their names.
struct Bounds {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds { least: 0, most: 59, names: &[] };
const HOURS: Bounds = Bounds { least: 0, most: 23, names: &[] };
const DAYS: Bounds = Bounds { least: 1, most: 31, names: &[] };
const MONTHS: Bounds = Bounds {
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAYS: Bounds =
    Bounds { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// Marks a field that is not restricted; no number is as large.
const STAR: u64 = 1 << 63;

pub(super) fn parse(text: &str, zone: &TimeZone) -> Result<Schedule, Error> {
    if text.is_empty() {
        return Err(Error::Empty);
    }
    let named = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
    let (text, zone) = match named.map(|rest| rest.split_once(' ').unwrap_or((rest, ""))) {
        Some(("", rest)) => (rest.trim(), TimeZone::UTC),
        Some((name, rest)) => (rest.trim(), time_zone(name).ok_or_else(|| Error::Location(name.to_owned()))?),
        None => (text, zone.clone()),
    };
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ if text.starts_with('@') => return every(text),
        _ => text,
    };
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = fields[..] else {
        return Err(Error::Fields(fields.into_iter().map(str::to_owned).collect()));
    };
    let (minutes, hours) = (field(minutes, &MINUTES)?, field(hours, &HOURS)?);
    let (days, months, weekdays) =
        (field(days, &DAYS)?, field(months, &MONTHS)?, field(weekdays, &WEEKDAYS)?);
    let either_day = (days | weekdays) & STAR == 0;
    Ok(Schedule(Kind::Fields(Box::new(Fields { minutes, hours, days, months, weekdays, either_day, zone }))))
}

fn every(text: &str) -> Result<Schedule, Error> {
    let Some(interval) = text.strip_prefix("@every ") else {
        return Err(Error::Descriptor(text.to_owned()));
    };
    let wrong = |why| Error::Duration { text: text.to_owned(), why };
    let nanos = duration::go(interval).ok_or_else(|| wrong(duration::why_not_go(interval)))?;
    // Not more often than each second, and in whole ones.
    Ok(Schedule(Kind::Every(SignedDuration::from_secs((nanos / 1_000_000_000).max(1)))))
}

/// The numbers that a list of ranges stands for. An empty list stands for none, and then the schedule never comes.
fn field(text: &str, bounds: &Bounds) -> Result<u64, Error> {
    text.split(',')
        .filter(|range| !range.is_empty())
        .try_fold(0, |bits, text| Ok(bits | range(text, bounds)?))
}

fn range(text: &str, bounds: &Bounds) -> Result<u64, Error> {
    let (ends, steps) = text.split_once('/').map_or((text, None), |(ends, step)| (ends, Some(step)));
    let (first, last) = ends.split_once('-').map_or((ends, None), |(first, last)| (first, Some(last)));
    let mut star = 0;
    let (start, mut end) = match (first, last) {
        // Whatever follows is not looked at, as in `*-5`.
        ("*" | "?", _) => {
            star = STAR;
            (bounds.least, bounds.most)
        }
        (first, None) => {
            let start = number_or_name(first, bounds)?;
            (start, start)
        }
        (first, Some(last)) => {
            let start = number_or_name(first, bounds)?;
            if last.contains('-') {
                return Err(Error::Hyphens(text.to_owned()));
            }
            (start, number_or_name(last, bounds)?)
        }
    };
    let step = match steps {
        None => 1,
        Some(step) if step.contains('/') => return Err(Error::Slashes(text.to_owned())),
        Some(step) => {
            let step = number(step)?;
            // With a step, one number is where it begins.
            if last.is_none() {
                end = bounds.most;
            }
            if step > 1 {
                star = 0;
            }
            step
        }
    };
    let (range, least, most) = (text.to_owned(), bounds.least, bounds.most);
    if start < least {
        return Err(Error::Below { start, least, range });
    }
    if end > most {
        return Err(Error::Above { end, most, range });
    }
    if start > end {
        return Err(Error::Reversed { start, end, range });
    }
    if step == 0 {
        return Err(Error::Step(range));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    Ok((start..=end).step_by(step).fold(star, |bits, number| bits | 1 << number))
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, Error> {
    let name = text.to_lowercase();
    let numbered = (bounds.least..).zip(bounds.names);
    match numbered.into_iter().find(|(_, known)| **known == name) {
        Some((number, _)) => Ok(number),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, Error> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    let number: i64 = text.parse().map_err(|error: std::num::ParseIntError| Error::Number {
        text: text.to_owned(),
        why: match error.kind() {
            NegOverflow | PosOverflow => "value out of range",
            _ => "invalid syntax",
        },
    })?;
    u64::try_from(number).map_err(|_| Error::Negative { number, text: text.to_owned() })
}
