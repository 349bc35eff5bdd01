//! When a CronJob is due: cron's five fields, its words, and fixed intervals, in a time zone.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// A schedule comes again within so many days, or never.
const FAR: u32 = 5 * 366;
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// When something is due.
#[derive(Debug, Clone)]
pub(super) enum Schedule {
    /// By the clock on the wall of a place.
    Wall(Box<Wall>),
    /// So long after the last time.
    Every(SignedDuration),
}

/// The minutes at which a clock on the wall shows what is asked for.
#[derive(Debug, Clone)]
pub(super) struct Wall {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether a day of the month or of the week will do: if both are asked for.
    either_day: bool,
    zone: TimeZone,
}

/// The zone of this name, written just so.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name))
}

impl Schedule {
    /// Reads it; a zone in the text itself wins over the one that is given.
    pub(super) fn parse(text: &str, given: &TimeZone) -> Result<Self, String> {
        let named = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (text, zone) = match named.map(|rest| rest.split_once(' ').unwrap_or((rest, ""))) {
            Some((name, rest)) => {
                (rest.trim(), zone(name).ok_or_else(|| format!("provided bad location {name}"))?)
            }
            None => (text.trim(), given.clone()),
        };
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        if let Some(interval) = fields.strip_prefix("@every ") {
            let wrong = || format!("failed to parse duration {text}");
            let interval = duration(interval).ok_or_else(wrong)?;
            // Not more often than each second, and in whole ones.
            return Ok(Self::Every(SignedDuration::from_secs(interval.as_secs().max(1))));
        }
        let parts: Vec<&str> = fields.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts[..] else {
            return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
        };
        let any = |field: &str| field.split(',').any(|part| part.starts_with(['*', '?']));
        Ok(Self::Wall(Box::new(Wall {
            minutes: field(minutes, 0, 59, &[])?,
            hours: field(hours, 0, 23, &[])?,
            days: field(days, 1, 31, &[])?,
            months: field(months, 1, 12, &MONTHS)?,
            weekdays: field(weekdays, 0, 6, &WEEKDAYS)?,
            either_day: !any(days) && !any(weekdays),
            zone,
        })))
    }

    /// The first time after this one; none if it never comes.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(interval) => {
                Timestamp::from_second(after.as_second()).ok()?.checked_add(*interval).ok()
            }
            Self::Wall(wall) => wall.next(after),
        }
    }
}

impl Wall {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let mut date = self.zone.to_datetime(after).date();
        for _ in 0..FAR {
            if self.on(date) {
                let found = self.times_on(date).into_iter().find(|at| *at > after);
                if found.is_some() {
                    return found;
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// The times on a day, in order. What the clock skips does not come, and what it shows twice comes twice.
    fn times_on(&self, date: Date) -> Vec<Timestamp> {
        let at = |minute: u32| -> Option<DateTime> {
            let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
            Some(date.at(hour, minute, 0, 0))
        };
        let asked = |minute: &u32| has(self.hours, minute / 60) && has(self.minutes, minute % 60);
        let minutes = (0..24 * 60).filter(asked).filter_map(at);
        let times = minutes.flat_map(|at| match self.zone.to_ambiguous_timestamp(at).offset() {
            AmbiguousOffset::Unambiguous { offset } => [offset.to_timestamp(at).ok(), None],
            AmbiguousOffset::Gap { .. } => [None, None],
            AmbiguousOffset::Fold { before, after } => {
                [before.to_timestamp(at).ok(), after.to_timestamp(at).ok()]
            }
        });
        let mut times: Vec<Timestamp> = times.flatten().collect();
        // Where the clock is put back, a later minute comes before an earlier one.
        times.sort_unstable();
        times
    }

    fn on(&self, date: Date) -> bool {
        let number = |number: i8| u32::from(number.unsigned_abs());
        let day = has(self.days, number(date.day()));
        let weekday = has(self.weekdays, number(date.weekday().to_sunday_zero_offset()));
        let fits = if self.either_day { day || weekday } else { day && weekday };
        has(self.months, number(date.month())) && fits
    }
}

fn has(set: u64, number: u32) -> bool {
    set & (1 << number) != 0
}

/// The numbers that one field stands for, as bits.
fn field(text: &str, first: u32, last: u32, names: &[&str]) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no list of numbers from {first} to {last}");
    let number = |text: &str| -> Result<u32, String> {
        let named = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let number = match named {
            Some(position) => u32::try_from(position).map_err(|_| wrong())? + first,
            None => text.parse().map_err(|_| wrong())?,
        };
        (first..=last).contains(&number).then_some(number).ok_or_else(wrong)
    };
    let mut set = 0;
    for part in text.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, ""));
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (first, last),
            Some((from, to)) => (number(from)?, number(to)?),
            // With a step, one number is where it begins.
            None if !step.is_empty() => (number(range)?, last),
            None => (number(range)?, number(range)?),
        };
        let step = if step.is_empty() { 1 } else { step.parse().map_err(|_| wrong())? };
        if from > to || step == 0 {
            return Err(wrong());
        }
        set |= (from..=to).step_by(step).fold(0, |set, number| set | 1 << number);
    }
    Ok(set)
}

/// A duration as Go writes it: `1h30m`.
fn duration(text: &str) -> Option<SignedDuration> {
    let mut rest = text.trim();
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|letter: char| letter.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * seconds;
        rest = tail;
    }
    SignedDuration::try_from_secs_f64(total).ok().filter(|total| total.is_positive())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(schedule: &str, place: &str, after: &str, times: usize) -> Vec<String> {
        let schedule = Schedule::parse(schedule, &zone(place).unwrap()).unwrap();
        let mut now: Timestamp = after.parse().unwrap();
        let mut found = Vec::new();
        while found.len() < times {
            match schedule.next(now) {
                Some(next) => now = next,
                None => break,
            }
            found.push(now.to_string());
        }
        found
    }

    #[test]
    fn the_next_time_is_found() {
        for (schedule, from, next) in [
            ("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
            ("* * * * *", "2026-01-01T00:00:59Z", "2026-01-01T00:01:00Z"),
            ("*/15 8-9 * * *", "2026-01-01T08:46:00Z", "2026-01-01T09:00:00Z"),
            ("*/15 8-9 * * *", "2026-01-01T09:45:00Z", "2026-01-02T08:00:00Z"),
            ("5/20 * * * *", "2026-01-01T00:26:00Z", "2026-01-01T00:45:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("30 6 * * mon", "2026-01-01T00:00:00Z", "2026-01-05T06:30:00Z"),
            ("0 0 1 JAN,Jul *", "2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z"),
            // Both days are asked for: either will do.
            ("0 0 13 * FRI", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            ("@hourly", "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z"),
            ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
            ("@every 1h30m", "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z"),
            ("TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ] {
            assert_eq!(after(schedule, "UTC", from, 1), [next], "{schedule} after {from}");
        }
        assert!(after("0 0 31 2 *", "UTC", "2026-01-01T00:00:00Z", 1).is_empty());
    }

    #[test]
    fn a_place_has_its_own_days() {
        let new_york = |schedule, from, times| after(schedule, "America/New_York", from, times);
        assert_eq!(new_york("0 9 * * *", "2026-01-01T00:00:00Z", 1), ["2026-01-01T14:00:00Z"]);
        // What the clock skips does not come that day.
        let skipped = new_york("30 2 * * *", "2026-03-07T08:00:00Z", 2);
        assert_eq!(skipped, ["2026-03-09T06:30:00Z", "2026-03-10T06:30:00Z"]);
        // What it shows twice comes twice.
        let twice = new_york("30 1 * * *", "2026-11-01T00:00:00Z", 3);
        assert_eq!(twice, ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"]);
        let each = new_york("0,30 * * * *", "2026-11-01T05:00:00Z", 3);
        assert_eq!(each, ["2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z"]);
    }

    #[test]
    fn nonsense_is_refused() {
        for nonsense in [
            "",
            "* * * *",
            "60 * * * *",
            "* * 0 * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "a * * * *",
            "@often",
            "@every",
            "@every x",
            "@every -1h",
            "TZ=Nowhere/Land * * * * *",
        ] {
            assert!(Schedule::parse(nonsense, &TimeZone::UTC).is_err(), "{nonsense}");
        }
    }
}
