//! The next time of a schedule, in its time zone.

use super::Fields;
use jiff::civil::{Date, DateTime};
use jiff::tz::AmbiguousOffset;
use jiff::{SignedDuration, Timestamp};

/// The number of years to search for the next time of a schedule: as in Kubernetes, where a 29th of February may be missed around 2100.
const YEARS: i16 = 5;

const MINUTES_OF_DAY: u32 = 24 * 60;

impl Fields {
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let now = self.zone.to_datetime(after);
        let mut date = now.date();
        let last_year = date.year().saturating_add(YEARS);
        while date.year() <= last_year {
            if self.is_on(date)
                && let Some(found) = self.first_on(date, after)
            {
                return Some(found);
            }
            date = match has(self.months, number(date.month())) {
                true => date.tomorrow().ok()?,
                false => date.last_of_month().tomorrow().ok()?,
            };
        }
        None
    }

    fn is_on(&self, date: Date) -> bool {
        let day = has(self.days, number(date.day()));
        let weekday = has(self.weekdays, number(date.weekday().to_sunday_zero_offset()));
        let fits = if self.either_day { day || weekday } else { day && weekday };
        has(self.months, number(date.month())) && fits
    }

    /// The first time on a day, and after this one.
    fn first_on(&self, date: Date, after: Timestamp) -> Option<Timestamp> {
        let minutes = (0..MINUTES_OF_DAY).filter(|at| has(self.hours, at / 60) && has(self.minutes, at % 60));
        // On nearly every day the clock just runs.
        let midnight = date.at(0, 0, 0, 0);
        if let AmbiguousOffset::Unambiguous { offset } = self.zone.to_ambiguous_timestamp(midnight).offset() {
            let start = offset.to_timestamp(midnight).ok()?;
            let end = start.checked_add(SignedDuration::from_hours(24)).ok()?;
            if self.zone.following(start).next().is_none_or(|change| change.timestamp() > end) {
                let mut times = minutes.filter_map(|at| offset.to_timestamp(time_of(date, at)?).ok());
                return times.find(|at| *at > after);
            }
        }
        // Where the clock is put back, a later minute comes before an earlier one: all are looked at.
        let times = minutes.filter_map(|at| time_of(date, at)).flat_map(|at| {
            match self.zone.to_ambiguous_timestamp(at).offset() {
                AmbiguousOffset::Unambiguous { offset } => [offset.to_timestamp(at).ok(), None],
                AmbiguousOffset::Gap { .. } => [None, None],
                AmbiguousOffset::Fold { before, after } => {
                    [before.to_timestamp(at).ok(), after.to_timestamp(at).ok()]
                }
            }
        });
        times.flatten().filter(|at| *at > after).min()
    }
}

fn time_of(date: Date, minute: u32) -> Option<DateTime> {
    let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
    Some(date.at(hour, minute, 0, 0))
}

fn number(number: i8) -> u32 {
    u32::from(number.unsigned_abs())
}

fn has(bits: u64, number: u32) -> bool {
    bits & (1 << number) != 0
}
