//! Schedules, as cron writes them.

use super::{Object, has, word};
use windlass_schema::field::{FieldError, Path};

/// The five fields: least, most, and names.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

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
        if let Some(why) = wrong(schedule) {
            errors.push(FieldError::invalid(&at, schedule, why));
        }
    }
    if has(spec, "timeZone") {
        let (zone, at) = (word(spec, "timeZone"), path.child("timeZone"));
        let why = if zone.is_empty() {
            "timeZone must be nil or non-empty string".to_owned()
        } else if zone.eq_ignore_ascii_case("local") {
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned()
        } else if !is_zone(zone) {
            format!("unknown time zone {zone}")
        } else {
            return;
        };
        errors.push(FieldError::invalid(&at, zone, why));
    }
}

/// Whether there is such a zone, written just so.
fn is_zone(zone: &str) -> bool {
    jiff::tz::TimeZone::get(zone).is_ok_and(|found| found.iana_name() == Some(zone))
}

/// What is wrong with a schedule.
fn wrong(schedule: &str) -> Option<String> {
    let schedule = match schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) {
        Some(rest) => rest.split_once(' ').map_or("", |(_, rest)| rest).trim(),
        None => schedule,
    };
    if let Some(word) = schedule.strip_prefix('@') {
        let known = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];
        return (!known.contains(&word) && !word.starts_with("every "))
            .then(|| format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    fields
        .iter()
        .zip(FIELDS)
        .find_map(|(field, bounds)| field.split(',').find_map(|range| wrong_range(range, bounds)))
}

fn wrong_range(range: &str, (least, most, names): (u32, u32, &[&str])) -> Option<String> {
    let parts: Vec<&str> = range.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let read = |text: &str| -> Result<u32, String> {
        let name = names.iter().position(|name| *name == text.to_lowercase());
        if let Some(at) = name.and_then(|at| u32::try_from(at).ok()) {
            return Ok(at + least);
        }
        text.parse::<i64>()
            .map_err(|_| {
                format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
            })
            .and_then(|number| {
                u32::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
            })
    };
    let judged = || -> Result<(), String> {
        let (start, mut end) = match ends.as_slice() {
            ["*" | "?"] => (least, most),
            [one] => {
                let one = read(one)?;
                (one, one)
            }
            [first, last] => (read(first)?, read(last)?),
            _ => return Err(format!("too many hyphens: {range}")),
        };
        match parts.as_slice() {
            [_] => {}
            [_, step] => {
                if read(step)? == 0 {
                    return Err(format!("step of range should be a positive number: {range}"));
                }
                if ends.len() == 1 {
                    end = most;
                }
            }
            _ => return Err(format!("too many slashes: {range}")),
        }
        if start < least {
            return Err(format!("beginning of range ({start}) below minimum ({least}): {range}"));
        }
        if end > most {
            return Err(format!("end of range ({end}) above maximum ({most}): {range}"));
        }
        if start > end {
            return Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
        }
        Ok(())
    };
    judged().err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_cron_does() {
        for good in ["* * * * *", "*/5 1-3 * * MON", "0 0 1 jan,dec *", "@daily", "0 0-23/2 * * *"] {
            assert_eq!(wrong(good), None, "{good}");
        }
        assert!(is_zone("Europe/Berlin") && is_zone("UTC") && is_zone("Etc/GMT+3"));
        assert!(!is_zone("Europe/Atlantis") && !is_zone("europe/berlin") && !is_zone("../etc/passwd"));
        for (bad, why) in [
            ("never", "expected exactly 5 fields, found 1: [never]"),
            ("70 * * * *", "end of range (70) above maximum (59): 70"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
        ] {
            assert_eq!(wrong(bad).as_deref(), Some(why), "{bad}");
        }
    }
}
