//! Values as text: in messages, for `string()`, and for `format()`.

use super::super::value::{Failure, Meter, Value};
use jiff::Timestamp;
use jiff::tz::Offset;

/// A value as error messages show it.
pub(in super::super) fn shown(value: &Value<'_>) -> String {
    plain(value).unwrap_or_else(|| value.type_name().to_owned())
}

/// What `string()` makes of a value; none where it makes nothing.
pub(super) fn plain(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::String(text) => text.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => double(*number),
        Value::Timestamp(time) => timestamp(*time),
        Value::Duration(nanoseconds) => seconds(*nanoseconds),
        Value::Bytes(octets) => String::from_utf8_lossy(octets).into_owned(),
        Value::Type(name) => (*name).to_owned(),
        Value::Ip(address) => address.to_string(),
        Value::Cidr(network) => network.to_string(),
        _ => return None,
    })
}

/// `%g` of Go, in its shortest form.
fn double(number: f64) -> String {
    crate::go::float(number)
}

fn timestamp(time: Timestamp) -> String {
    let utc = Offset::UTC.to_datetime(time);
    let fraction = time.subsec_nanosecond();
    let whole = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        utc.year(),
        utc.month(),
        utc.day(),
        utc.hour(),
        utc.minute(),
        utc.second()
    );
    if fraction == 0 {
        return format!("{whole}Z");
    }
    format!("{whole}.{}Z", format!("{fraction:09}").trim_end_matches('0'))
}

/// A duration in seconds, such as `1.5s`.
fn seconds(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let magnitude = nanoseconds.unsigned_abs();
    let (whole, rest) = (magnitude / 1_000_000_000, magnitude % 1_000_000_000);
    if rest == 0 {
        return format!("{sign}{whole}s");
    }
    format!("{sign}{whole}.{}s", format!("{rest:09}").trim_end_matches('0'))
}

/// Quoted as CEL quotes it: only what has an escape of its own.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// `'%d of %s'.format([1, 'a'])`
pub(super) fn format(meter: &mut Meter, pattern: &str, list: &Value<'_>) -> Result<String, Failure> {
    meter.traverse(pattern.len())?;
    let arguments = list.items(meter)?;
    let mut arguments = arguments.iter().enumerate();
    let mut out = String::new();
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if rest.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut precision = None;
        if rest.next_if_eq(&'.').is_some() {
            let mut digits = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let number = digits.parse::<usize>().ok().filter(|number| *number <= 1000);
            precision = Some(number.ok_or_else(|| {
                Failure::new("error while parsing precision: could not convert precision to integer")
            })?);
        }
        let verb = rest.next().ok_or_else(|| Failure::new("unexpected end of format string"))?;
        if !"sdfebxXo".contains(verb) {
            let why = format!("could not parse formatting clause: unrecognized formatting clause \"{verb}\"");
            return Err(Failure::new(why));
        }
        let (_, argument) = arguments.next().ok_or_else(|| Failure::new("index 0 out of range"))?;
        let before = out.len();
        clause(meter, verb, precision.unwrap_or(6), argument, &mut out)?;
        meter.traverse(out.len() - before)?;
    }
    Ok(out)
}

fn clause(
    meter: &mut Meter,
    verb: char,
    precision: usize,
    value: &Value<'_>,
    out: &mut String,
) -> Result<(), Failure> {
    let wrong = |what: &str| {
        Err(Failure::new(format!("error during formatting: {what}, was given {}", value.type_name())))
    };
    match (verb, value) {
        ('s', _) => return text(meter, value, false, out),
        ('d', Value::Int(number)) => out.push_str(&number.to_string()),
        ('d', Value::Uint(number)) => out.push_str(&number.to_string()),
        ('d', _) => return wrong("decimal clause can only be used on integers"),
        ('f', Value::Double(number)) if number.is_finite() => out.push_str(&format!("{number:.precision$}")),
        ('f', Value::Double(number)) => out.push_str(&double(*number)),
        ('f', _) => return wrong("fixed-point clause can only be used on doubles"),
        ('e', Value::Double(number)) => out.push_str(&scientific(*number, precision)),
        ('e', _) => return wrong("scientific clause can only be used on doubles"),
        ('b', Value::Int(number)) => out.push_str(&in_base(*number, 2)),
        ('b', Value::Uint(number)) => out.push_str(&format!("{number:b}")),
        ('b', Value::Bool(truth)) => out.push(if *truth { '1' } else { '0' }),
        ('b', _) => return wrong("only integers and bools can be formatted as binary"),
        ('o', Value::Int(number)) => out.push_str(&in_base(*number, 8)),
        ('o', Value::Uint(number)) => out.push_str(&format!("{number:o}")),
        ('o', _) => return wrong("octal clause can only be used on integers"),
        ('x' | 'X', _) => {
            let hex = match value {
                Value::Int(number) => in_base(*number, 16),
                Value::Uint(number) => format!("{number:x}"),
                Value::String(text) => hexadecimal(text.as_bytes(), meter)?,
                Value::Bytes(octets) => hexadecimal(octets, meter)?,
                _ => return wrong("only integers, byte buffers, and strings can be formatted as hex"),
            };
            out.push_str(&if verb == 'X' { hex.to_uppercase() } else { hex });
        }
        _ => return Err(Failure::no_such_overload()),
    }
    Ok(())
}

fn hexadecimal(octets: &[u8], meter: &mut Meter) -> Result<String, Failure> {
    meter.work(octets.len() as u64)?;
    Ok(octets.iter().map(|octet| format!("{octet:02x}")).collect())
}

fn in_base(number: i64, base: u32) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let magnitude = number.unsigned_abs();
    match base {
        2 => format!("{sign}{magnitude:b}"),
        8 => format!("{sign}{magnitude:o}"),
        _ => format!("{sign}{magnitude:x}"),
    }
}

fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// A value in a text; inside of lists and maps as an expression would spell it.
fn text(meter: &mut Meter, value: &Value<'_>, inside: bool, out: &mut String) -> Result<(), Failure> {
    meter.work(1 + value.size() as u64)?;
    match value {
        Value::List(_) | Value::Items(_) => {
            out.push('[');
            for (place, item) in value.items(meter)?.iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                text(meter, item, true, out)?;
            }
            out.push(']');
        }
        Value::Map(_) | Value::Object(_) => {
            let mut pairs = Vec::new();
            for (key, value) in value.entries(meter)?.iter() {
                let (mut name, mut shown) = (String::new(), String::new());
                text(meter, &key.value(), true, &mut name)?;
                text(meter, value, true, &mut shown)?;
                pairs.push(format!("{name}:{shown}"));
            }
            pairs.sort();
            out.push('{');
            out.push_str(&pairs.join(", "));
            out.push('}');
        }
        Value::Null => out.push_str("null"),
        Value::String(text) if inside => out.push_str(&crate::go::quote(text)),
        Value::Bytes(octets) if inside => {
            out.push('b');
            out.push_str(&crate::go::quote(&String::from_utf8_lossy(octets)));
        }
        Value::Double(number) if inside && number.is_finite() => out.push_str(&format!("{number:.6}")),
        Value::Double(number) if inside => out.push_str(&format!("\"{}\"", double(*number))),
        Value::Timestamp(_) | Value::Duration(_) if inside => {
            let name = if matches!(value, Value::Timestamp(_)) { "timestamp" } else { "duration" };
            out.push_str(&format!("{name}(\"{}\")", shown(value)));
        }
        Value::Ip(_) | Value::Cidr(_) => {
            return Err(Failure::new(format!(
                "error during formatting: no formatting function for {}",
                value.type_name()
            )));
        }
        other => match plain(other) {
            Some(plain) => out.push_str(&plain),
            None => {
                return Err(Failure::new(format!(
                    "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, \
                     maps, lists, types, durations, and timestamps, was given {}",
                    other.type_name()
                )));
            }
        },
    }
    Ok(())
}
