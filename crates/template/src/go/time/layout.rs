//! Layouts: how a time is written, shown by example.

use jiff::Zoned;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The parts of a layout, longest first where one begins with another.
const PARTS: [&str; 38] = [
    "January",
    "Jan",
    "Monday",
    "Mon",
    "MST",
    "2006",
    "-07:00:00",
    "-07:00",
    "-070000",
    "-0700",
    "-07",
    "Z07:00:00",
    "Z07:00",
    "Z070000",
    "Z0700",
    "Z07",
    "002",
    "01",
    "02",
    "03",
    "04",
    "05",
    "06",
    "15",
    "PM",
    "pm",
    "__2",
    "_2006",
    "_2",
    "1",
    "2",
    "3",
    "4",
    "5",
    ".0",
    ",0",
    ".9",
    ",9",
];

enum Part<'a> {
    Known(&'static str),
    /// `.000` or `.999`
    Fraction(&'a str),
}

/// The next part, what stands before it, and what follows.
fn next(layout: &str) -> Option<(&str, Part<'_>, &str)> {
    for at in 0..layout.len() {
        let Some(rest) = layout.get(at..) else { continue };
        for part in PARTS {
            if !rest.starts_with(part) {
                continue;
            }
            let after = &rest[part.len()..];
            match part {
                "Jan" | "Mon" if after.starts_with(|c: char| c.is_ascii_lowercase()) => continue,
                "_2006" => return Some((&layout[..=at], Part::Known("2006"), after)),
                ".0" | ",0" | ".9" | ",9" => {
                    let digit = part.as_bytes()[1];
                    let run = 1 + rest[1..].bytes().take_while(|byte| *byte == digit).count();
                    if rest[run..].starts_with(|c: char| c.is_ascii_digit()) {
                        continue;
                    }
                    return Some((&layout[..at], Part::Fraction(&rest[..run]), &rest[run..]));
                }
                part => return Some((&layout[..at], Part::Known(part), after)),
            }
        }
    }
    None
}

/// `Time.Format`
pub(crate) fn format(time: &Zoned, mut layout: &str) -> String {
    let mut out = String::new();
    while let Some((before, part, after)) = next(layout) {
        out.push_str(before);
        layout = after;
        match part {
            Part::Known(part) => known(&mut out, time, part),
            Part::Fraction(part) => {
                let digits = format!("{:09}", time.subsec_nanosecond());
                let cut = &digits[..(part.len() - 1).min(9)];
                if part[1..].starts_with('9') {
                    let cut = cut.trim_end_matches('0');
                    if !cut.is_empty() {
                        out.push_str(&part[..1]);
                        out.push_str(cut);
                    }
                } else {
                    out.push_str(&part[..1]);
                    out.push_str(cut);
                }
            }
        }
    }
    out.push_str(layout);
    out
}

fn known(out: &mut String, time: &Zoned, part: &str) {
    let hour12 = match time.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    let month = usize::try_from(time.month()).unwrap_or(1);
    let day_of_week = usize::try_from(time.weekday().to_sunday_zero_offset()).unwrap_or(0);
    let text = match part {
        "January" => MONTHS[month - 1].to_owned(),
        "Jan" => MONTHS[month - 1][..3].to_owned(),
        "1" => time.month().to_string(),
        "01" => format!("{:02}", time.month()),
        "Monday" => DAYS[day_of_week].to_owned(),
        "Mon" => DAYS[day_of_week][..3].to_owned(),
        "2" => time.day().to_string(),
        "_2" => format!("{:2}", time.day()),
        "02" => format!("{:02}", time.day()),
        "__2" => format!("{:3}", time.day_of_year()),
        "002" => format!("{:03}", time.day_of_year()),
        "2006" => format!("{:04}", time.year()),
        "06" => format!("{:02}", time.year().rem_euclid(100)),
        "15" => format!("{:02}", time.hour()),
        "3" => hour12.to_string(),
        "03" => format!("{hour12:02}"),
        "4" => time.minute().to_string(),
        "04" => format!("{:02}", time.minute()),
        "5" => time.second().to_string(),
        "05" => format!("{:02}", time.second()),
        "PM" => if time.hour() >= 12 { "PM" } else { "AM" }.to_owned(),
        "pm" => if time.hour() >= 12 { "pm" } else { "am" }.to_owned(),
        "MST" => abbreviation(time),
        zone => offset(time.offset(), zone),
    };
    out.push_str(&text);
}

fn abbreviation(time: &Zoned) -> String {
    let info = time.time_zone().to_offset_info(time.timestamp());
    let name = info.abbreviation();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return name.to_owned();
    }
    offset(time.offset(), if time.offset().seconds() % 3600 == 0 { "-07" } else { "-0700" })
}

fn offset(offset: Offset, layout: &str) -> String {
    let seconds = offset.seconds();
    if layout.starts_with('Z') && seconds == 0 {
        return "Z".into();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let all = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    match &layout[1..] {
        "07" => format!("{sign}{hours:02}"),
        "0700" => format!("{sign}{hours:02}{minutes:02}"),
        "07:00" => format!("{sign}{hours:02}:{minutes:02}"),
        "070000" => format!("{sign}{hours:02}{minutes:02}{seconds:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// `time.Parse`, for times of which all parts are numbers or names.
pub(crate) fn parse(layout: &str, text: &str) -> Result<Zoned, String> {
    let quote = super::quote;
    let (whole_layout, whole) = (layout, text);
    let (mut layout, mut rest) = (layout, text);
    let (mut year, mut month, mut day, mut day_of_year) = (0_i16, 0_i8, 0_i8, 0_i16);
    let (mut hour, mut minute, mut second, mut nanosecond) = (0_i8, 0_i8, 0_i8, 0_i32);
    let (mut afternoon, mut zone) = (None, None);
    let range = |what: &str| format!("parsing time {}: {what} out of range", quote(whole));
    loop {
        let Some((before, part, after)) = next(layout) else {
            if rest == layout {
                break;
            }
            if let Some(extra) = rest.strip_prefix(layout) {
                return Err(format!("parsing time {}: extra text: {}", quote(whole), quote(extra)));
            }
            return Err(cannot(whole_layout, whole, rest, layout));
        };
        rest = rest.strip_prefix(before).ok_or_else(|| cannot(whole_layout, whole, rest, before))?;
        layout = after;
        let part_text = match &part {
            Part::Known(part) => *part,
            Part::Fraction(text) => text,
        };
        let wrong = || cannot(whole_layout, whole, rest, part_text);
        match part {
            Part::Fraction(fraction) => {
                let optional = fraction[1..].starts_with('9');
                if optional && !rest.starts_with(['.', ',']) {
                    continue;
                }
                let digits =
                    rest.get(1..).map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
                let wanted = if optional { digits } else { fraction.len() - 1 };
                if !rest.starts_with(['.', ',']) || digits < wanted || wanted == 0 || wanted > 9 {
                    return Err(wrong());
                }
                nanosecond = format!("{:0<9}", &rest[1..=wanted]).parse().map_err(|_| wrong())?;
                rest = &rest[wanted + 1..];
            }
            Part::Known(part) => match part {
                "January" | "Jan" => {
                    let cut = if part == "Jan" { 3 } else { 9 };
                    let found = MONTHS.iter().position(|name| starts(rest, &name[..cut.min(name.len())]));
                    let at = found.ok_or_else(wrong)?;
                    rest = &rest[cut.min(MONTHS[at].len())..];
                    month = i8::try_from(at + 1).map_err(|_| wrong())?;
                }
                "Monday" | "Mon" => {
                    let cut = if part == "Mon" { 3 } else { 9 };
                    let found = DAYS.iter().find(|name| starts(rest, &name[..cut.min(name.len())]));
                    let name = found.ok_or_else(wrong)?;
                    rest = &rest[cut.min(name.len())..];
                }
                "PM" | "pm" => {
                    let mark = rest.get(..2).ok_or_else(wrong)?;
                    afternoon = match mark {
                        "PM" | "pm" => Some(true),
                        "AM" | "am" => Some(false),
                        _ => return Err(wrong()),
                    };
                    rest = &rest[2..];
                }
                "MST" => {
                    if let Some(after) = rest.strip_prefix("UTC") {
                        rest = after;
                        zone = Some(Offset::UTC);
                    } else {
                        let length = rest.bytes().take_while(u8::is_ascii_uppercase).count();
                        if !(3..=5).contains(&length) {
                            return Err(wrong());
                        }
                        rest = &rest[length..];
                        zone = zone.or(Some(Offset::UTC));
                    }
                }
                part if part.starts_with(['Z', '-']) => {
                    if part.starts_with('Z') && rest.starts_with('Z') {
                        rest = &rest[1..];
                        zone = Some(Offset::UTC);
                    } else {
                        let taken = rest.get(..part.len()).ok_or_else(wrong)?;
                        zone = Some(read_offset(taken, part).ok_or_else(wrong)?);
                        rest = &rest[part.len()..];
                    }
                }
                part => {
                    let (least, most) = match part {
                        "2006" => (4, 4),
                        "002" => (3, 3),
                        "1" | "2" | "3" | "4" | "5" | "_2" | "__2" => (1, 2),
                        _ => (2, 2),
                    };
                    if part.starts_with('_') {
                        rest = rest.strip_prefix(' ').unwrap_or(rest);
                    }
                    if part == "15" && rest.bytes().take_while(u8::is_ascii_digit).count() < 2 {
                        return Err(wrong());
                    }
                    let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
                    if digits < least {
                        return Err(wrong());
                    }
                    let number: i16 = rest[..digits].parse().map_err(|_| wrong())?;
                    rest = &rest[digits..];
                    let small = i8::try_from(number).unwrap_or(-1);
                    match part {
                        "2006" => year = number,
                        "06" => year = number + if number >= 69 { 1900 } else { 2000 },
                        "1" | "01" if (1..=12).contains(&number) => month = small,
                        "1" | "01" => return Err(range("month")),
                        "002" | "__2" => day_of_year = number,
                        "2" | "_2" | "02" => day = small,
                        "15" if number < 24 => hour = small,
                        "3" | "03" if number <= 12 => hour = small,
                        "15" | "3" | "03" => return Err(range("hour")),
                        "4" | "04" if number < 60 => minute = small,
                        "4" | "04" => return Err(range("minute")),
                        _ if number < 60 => {
                            second = small;
                            // Seconds may have a fraction that the layout does not show.
                            if let Some(fraction) = rest.strip_prefix(['.', ',']) {
                                let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
                                let shown = matches!(next(layout), Some(("", Part::Fraction(_), _)));
                                if digits > 0 && !shown {
                                    nanosecond =
                                        format!("{:0<9}", &fraction[..digits.min(9)]).parse().unwrap_or(0);
                                    rest = &fraction[digits..];
                                }
                            }
                        }
                        _ => return Err(range("second")),
                    }
                }
            },
        }
    }
    match afternoon {
        Some(true) if hour < 12 => hour += 12,
        Some(false) if hour == 12 => hour = 0,
        _ => {}
    }
    if day_of_year > 0 && month == 0 {
        let date = jiff::civil::date(year, 1, 1).checked_add(jiff::Span::new().days(day_of_year - 1));
        let date = date.map_err(|_| range("day-of-year"))?;
        (month, day) = (date.month(), date.day());
    }
    let (month, day) =
        (month.max(1), if day == 0 && !whole_layout.contains('2') { 1 } else { day.max(i8::from(day == 0)) });
    let time = DateTime::new(year, month, day, hour, minute, second, nanosecond).map_err(|_| range("day"))?;
    let zone = zone.map_or(TimeZone::UTC, TimeZone::fixed);
    time.to_zoned(zone).map_err(|_| range("year"))
}

fn starts(text: &str, name: &str) -> bool {
    text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

fn cannot(layout: &str, text: &str, rest: &str, part: &str) -> String {
    let quote = super::quote;
    format!(
        "parsing time {} as {}: cannot parse {} as {}",
        quote(text),
        quote(layout),
        quote(rest),
        quote(part)
    )
}

fn read_offset(text: &str, layout: &str) -> Option<Offset> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    if text.find(':') != layout.find(':') {
        return None;
    }
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize| digits.get(from..from + 2).map_or(Some(0), |part| part.parse::<i32>().ok());
    let seconds = part(0)? * 3600 + part(2)? * 60 + part(4)?;
    Offset::from_seconds(sign * seconds).ok()
}
