//! The schedule and the time zone of a CronJob.

use super::{Object, has, word};
use windlass_schema::field::{FieldError, Path};
use windlass_schema::schedule::{Schedule, time_zone};

pub(super) fn cron_job(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let (schedule, at) = (word(spec, "schedule"), path.child("schedule"));
    if schedule.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        if schedule.contains("TZ") {
            let why = if has(spec, "timeZone") {
                "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            } else {
                "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            };
            errors.push(FieldError::invalid(&at, schedule, why));
        }
        if let Err(why) = schedule.parse::<Schedule>() {
            errors.push(FieldError::invalid(&at, schedule, why.to_string()));
        }
    }
    if has(spec, "timeZone") {
        let (zone, at) = (word(spec, "timeZone"), path.child("timeZone"));
        let why = if zone.is_empty() {
            "timeZone must be nil or non-empty string".to_owned()
        } else if zone.eq_ignore_ascii_case("local") {
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned()
        } else if time_zone(zone).is_none() {
            format!("unknown time zone {zone}")
        } else {
            return;
        };
        errors.push(FieldError::invalid(&at, zone, why));
    }
}
