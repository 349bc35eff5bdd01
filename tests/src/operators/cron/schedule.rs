//! Cron's words for times: five fields of lists, ranges and steps, or a name such as `@daily`. In UTC.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use windlass::clock::Timestamp;

/// When something runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether a day must be of the month and of the week as asked, or one of them will do: as soon as both are asked for.
    either_day: bool,
}

/// A schedule comes again within so many days, or never: the 29th of February does in eight years.
const FAR: u32 = 8 * 366 + 1;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Reads it.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expanded = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = expanded.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(format!("expected 5 fields, found {}: {text:?}", fields.len()));
        };
        Ok(Self {
            minutes: field(minutes, 0, 59, &[])?,
            hours: field(hours, 0, 23, &[])?,
            days: field(days, 1, 31, &[])?,
            months: field(months, 1, 12, &MONTHS)?,
            weekdays: field(weekdays, 0, 6, &WEEKDAYS)?,
            either_day: !any(days) && !any(weekdays),
        })
    }

    /// The first time after this one; none for a day that never comes.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = after.to_zoned(TimeZone::UTC);
        let mut date = after.date();
        let mut from = u32::try_from(i32::from(after.hour()) * 60 + i32::from(after.minute()) + 1).ok()?;
        for _ in 0..FAR {
            let minute =
                (from..24 * 60).find(|minute| has(self.hours, minute / 60) && has(self.minutes, minute % 60));
            if let Some(minute) = minute.filter(|_| self.on(date)) {
                let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
                return Some(date.at(hour, minute, 0, 0).to_zoned(TimeZone::UTC).ok()?.timestamp());
            }
            (date, from) = (date.tomorrow().ok()?, 0);
        }
        None
    }

    fn on(&self, date: Date) -> bool {
        let number = |number: i8| u32::from(number.unsigned_abs());
        let day = has(self.days, number(date.day()));
        let weekday = has(self.weekdays, number(date.weekday().to_sunday_zero_offset()));
        let either = if self.either_day { day || weekday } else { day && weekday };
        has(self.months, number(date.month())) && either
    }
}

fn has(set: u64, number: u32) -> bool {
    set & (1 << number) != 0
}

fn any(field: &str) -> bool {
    field.starts_with(['*', '?'])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_time_is_found() {
        for (schedule, after, next) in [
            ("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
            ("* * * * *", "2026-01-01T00:00:59Z", "2026-01-01T00:01:00Z"),
            ("*/15 8-9 * * *", "2026-01-01T08:46:00Z", "2026-01-01T09:00:00Z"),
            ("*/15 8-9 * * *", "2026-01-01T09:45:00Z", "2026-01-02T08:00:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("30 6 * * mon", "2026-01-01T00:00:00Z", "2026-01-05T06:30:00Z"),
            // Both days are asked for: either will do.
            ("0 0 13 * FRI", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            ("@hourly", "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z"),
        ] {
            let found = Schedule::parse(schedule).unwrap().next(after.parse().unwrap());
            assert_eq!(found, Some(next.parse().unwrap()), "{schedule} after {after}");
        }
        assert_eq!(Schedule::parse("0 0 31 2 *").unwrap().next(Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn nonsense_is_refused() {
        for nonsense in
            ["", "* * * *", "60 * * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "a * * * *", "@often"]
        {
            assert!(Schedule::parse(nonsense).is_err(), "{nonsense}");
        }
    }
}
