//! Go's times and durations: layouts, zones and their texts.

mod duration;
mod layout;
mod object;

pub(crate) use duration::{duration, parse as parse_duration};
pub(crate) use layout::{format, parse};
pub(crate) use object::{Time, call_duration, duration_method};

/// `time.Month.String`
pub(crate) fn month(number: i64) -> String {
    match usize::try_from(number).ok().filter(|number| (1..=12).contains(number)) {
        Some(number) => layout::MONTHS[number - 1].into(),
        None => format!("%!Month({number})"),
    }
}

/// `time.Weekday.String`
pub(crate) fn weekday(number: i64) -> String {
    match usize::try_from(number).ok().filter(|number| *number < 7) {
        Some(number) => layout::DAYS[number].into(),
        None => format!("%!Weekday({number})"),
    }
}

/// The quotes of Go's package time, which escapes all but printable ASCII byte by byte.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..=b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}
