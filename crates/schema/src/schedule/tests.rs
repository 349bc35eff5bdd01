//! Schedules as robfig/cron v3 reads and follows them.

use super::*;

fn after(schedule: &str, place: &str, after: &str, times: usize) -> Vec<String> {
    let schedule = Schedule::parse(schedule, &time_zone(place).unwrap()).unwrap();
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
fn a_day_field_with_a_step_is_restricted() {
    // The fifth is a Monday: every other day, or Mondays.
    let days = after("0 0 */2 * mon", "UTC", "2026-01-03T00:00:00Z", 3);
    assert_eq!(days, ["2026-01-05T00:00:00Z", "2026-01-07T00:00:00Z", "2026-01-09T00:00:00Z"]);
    let days = after("0 0 */2 * mon", "UTC", "2026-01-11T00:00:00Z", 2);
    assert_eq!(days, ["2026-01-12T00:00:00Z", "2026-01-13T00:00:00Z"], "the twelfth is a Monday");
    let days = after("0 0 */1 * mon", "UTC", "2026-01-05T00:00:00Z", 1);
    assert_eq!(days, ["2026-01-12T00:00:00Z"], "a step of one restricts nothing");
}

#[test]
fn what_never_comes_is_none() {
    for never in ["0 0 31 2 *", ", * * * *", "0 0 30 feb ?"] {
        assert!(after(never, "UTC", "2026-01-01T00:00:00Z", 1).is_empty(), "{never}");
    }
    assert!(after("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1).is_empty(), "2104 is too far");
}

#[test]
fn what_is_no_schedule_is_an_error_in_the_words_of_the_api() {
    for (text, why) in [
        ("", "empty spec string"),
        ("never", "expected exactly 5 fields, found 1: [never]"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("70 * * * *", "end of range (70) above maximum (59): 70"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
        ("1- * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
        ("* * * * mon/tue", "failed to parse int from tue: strconv.Atoi: parsing \"tue\": invalid syntax"),
        ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every", "unrecognized descriptor: @every"),
        ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
        ("@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""),
        ("@every 5d", "failed to parse duration @every 5d: time: unknown unit \"d\" in duration \"5d\""),
        ("TZ=Nowhere/Land * * * * *", "provided bad location Nowhere/Land: unknown time zone Nowhere/Land"),
        ("TZ=UTC", "expected exactly 5 fields, found 0: []"),
    ] {
        assert_eq!(text.parse::<Schedule>().map_err(|why| why.to_string()).unwrap_err(), why, "{text:?}");
    }
    for good in [
        "* * * * *",
        "*/5 1-3 * * MON",
        "0 0 1 jan,dec *",
        "@daily",
        "0 0-23/2 * * *",
        "*-5 * ? * +1",
        "@every -1h",
    ] {
        assert!(good.parse::<Schedule>().is_ok(), "{good}");
    }
}

#[test]
fn time_zones_are_written_just_so() {
    assert!(["Europe/Berlin", "UTC", "Etc/GMT+3"].iter().all(|name| time_zone(name).is_some()));
    assert!(
        ["Europe/Atlantis", "europe/berlin", "../etc/passwd", ""]
            .iter()
            .all(|name| time_zone(name).is_none())
    );
}
