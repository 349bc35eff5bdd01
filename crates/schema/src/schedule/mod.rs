//! Cron schedules as CronJobs have them: read, validated and followed as robfig/cron v3's `ParseStandard` does, which Kubernetes uses.
//!
//! Five fields (minute, hour, day of month, month, day of week) with lists, ranges, steps and names; `@daily` and its like;
//! `@every 1h30m`; and `TZ=` or `CRON_TZ=` before any of them. Pure: the time is given.
//!
//! - If both day fields are restricted, either of them will do. A field that has `*` or `?` is not restricted, but `*/2` is.
//! - What a clock skips when it is put forward does not come that day; what it shows twice comes twice.
//! - Where the clock skips midnight (as in Cairo and Havana), that day is a day like any other. This is the one place where robfig/cron
//!   does otherwise: it leaves out that day, or takes it for the day before.
//! - What does not come before the end of the fifth year from now never comes.
//!
//! Why not a crate: `croner` runs what the clock skips at the first time after it, `cronexpr` has the time zone as a sixth field, and neither
//! has the error texts of robfig/cron, which the API shows. A CronJob has to mean here what it means in Kubernetes.

mod next;
mod parse;
#[cfg(test)]
mod tests;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A cron schedule.
///
/// ```
/// use windlass_schema::Schedule;
///
/// let schedule: Schedule = "30 6 * * mon".parse()?;
/// let new_year = "2026-01-01T00:00:00Z".parse()?;
/// assert_eq!(schedule.next(new_year), Some("2026-01-05T06:30:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Schedule(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// By the time of day in a time zone.
    Fields(Box<Fields>),
    /// After a fixed interval.
    Every(SignedDuration),
}

/// The numbers that each field allows, as bits.
#[derive(Debug, Clone)]
struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether a day of the month or of the week will do, since both are restricted.
    either_day: bool,
    zone: TimeZone,
}

/// Why a text is no schedule, in the words of robfig/cron, which the Kubernetes API shows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The fields are what the messages show.
pub enum ParseScheduleError {
    /// There is nothing.
    #[error("empty spec string")]
    Empty,
    /// `TZ=` names no time zone.
    #[error("provided bad location {0}: unknown time zone {0}")]
    Location(String),
    /// A word after `@` that is not known.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// What follows `@every` is no duration.
    #[error("failed to parse duration {text}: {why}")]
    Duration { text: String, why: String },
    /// Not five fields.
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    Fields(Vec<String>),
    /// Neither a number nor a name.
    #[error("failed to parse int from {text}: strconv.Atoi: parsing {}: {why}", crate::quote(text))]
    Number { text: String, why: &'static str },
    /// A number below zero.
    #[error("negative number ({number}) not allowed: {text}")]
    Negative { number: i64, text: String },
    /// A range with more than two ends.
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    /// A range with more than one step.
    #[error("too many slashes: {0}")]
    Slashes(String),
    /// A range that begins too low.
    #[error("beginning of range ({start}) below minimum ({least}): {range}")]
    Below { start: u64, least: u64, range: String },
    /// A range that ends too high.
    #[error("end of range ({end}) above maximum ({most}): {range}")]
    Above { end: u64, most: u64, range: String },
    /// A range that ends before it begins.
    #[error("beginning of range ({start}) beyond end of range ({end}): {range}")]
    Reversed { start: u64, end: u64, range: String },
    /// A step of nothing.
    #[error("step of range should be a positive number: {0}")]
    Step(String),
}

impl Schedule {
    /// Reads a schedule that is meant in this time zone, unless it names one itself.
    ///
    /// # Errors
    /// When the text is no schedule.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self, ParseScheduleError> {
        parse::parse(text, zone)
    }

    /// The first time after this one; none if there is none within about five years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Kind::Every(interval) => {
                Timestamp::from_second(after.as_second()).ok()?.checked_add(*interval).ok()
            }
            Kind::Fields(fields) => fields.next(after),
        }
    }
}

impl std::str::FromStr for Schedule {
    type Err = ParseScheduleError;

    /// Reads a schedule in UTC, unless it names a time zone itself.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, &TimeZone::UTC)
    }
}

/// The time zone of this IANA name, which is written just so: `Europe/Berlin`, not `europe/berlin`.
pub fn time_zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name))
}
