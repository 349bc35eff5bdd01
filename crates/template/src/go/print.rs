//! `fmt.Sprint` and one `%` directive on one value.

use super::padding::Flags;
use super::quote::{quote_with, unicode};
use crate::value::{IntType, Kind, Value};

/// Deeper values are cut off, as a map may hold itself.
const DEEPEST: usize = 200;
/// More is not printed of one value: it could hold itself many times on every level.
const MOST: usize = 64 << 20;

/// `fmt.Sprint` of one value.
pub(crate) fn sprint(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    directive(&mut out, &Flags::default(), 'v', value, 0);
    out
}

/// `fmt.Sprint`: with spaces between what are no strings.
pub(crate) fn sprint_all(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let texts = |value: &Value| matches!(value, Value::Str(_));
        if at > 0 && !texts(value) && !texts(&values[at - 1]) {
            out.push(b' ');
        }
        directive(&mut out, &Flags::default(), 'v', value, 0);
    }
    out
}

/// `%v`, as text.
pub(crate) fn show(value: &Value) -> String {
    String::from_utf8_lossy(&sprint(value)).into_owned()
}

pub(super) fn directive(out: &mut Vec<u8>, flags: &Flags, verb: char, value: &Value, depth: usize) {
    if depth > DEEPEST || out.len() > MOST {
        out.extend_from_slice(b"...");
        return;
    }
    if verb == 'T' {
        return flags.pad(out, value.type_name().as_bytes());
    }
    if value.is_nil() {
        return match verb {
            'v' => flags.pad(out, b"<nil>"),
            _ => bad(out, verb, value),
        };
    }
    // What has a method String is printed by it, where a string could be.
    if !flags.sharp_v
        && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
        && let Some(text) = stringer(value)
    {
        return string(out, flags, verb, text.as_bytes(), value);
    }
    match value {
        Value::Nil => {}
        Value::Bool(truth) => match verb {
            't' | 'v' => flags.pad(out, if *truth { b"true" } else { b"false" }),
            _ => bad(out, verb, value),
        },
        Value::Int(_, number) => integer(out, flags, verb, number.unsigned_abs(), *number < 0, value),
        Value::Uint(_, number) => {
            if flags.sharp_v && verb == 'v' {
                let flags = Flags { sharp: true, ..*flags };
                return flags.integer(out, *number, false, 'x');
            }
            integer(out, flags, verb, *number, false, value);
        }
        Value::Float(number) => float(out, flags, verb, *number, value),
        Value::Complex(real, imaginary) => match verb {
            'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E' => {
                out.push(b'(');
                float(out, flags, verb, *real, value);
                float(out, &Flags { plus: true, ..*flags }, verb, *imaginary, value);
                out.extend_from_slice(b"i)");
            }
            _ => bad(out, verb, value),
        },
        Value::Str(text) => string(out, flags, verb, text, value),
        Value::Bytes(bytes) => match verb {
            'v' | 'd' => {
                let numbers: Vec<Value> = bytes
                    .iter()
                    .map(|byte| Value::Uint(crate::value::UintType::Uint8, u64::from(*byte)))
                    .collect();
                items(out, flags, verb, &numbers, "[]byte", depth);
            }
            _ => string(out, flags, verb, bytes, value),
        },
        Value::List(list) => {
            if flags.sharp_v && list.is_nil() {
                out.extend_from_slice(format!("{}(nil)", value.type_name()).as_bytes());
                return;
            }
            items(out, flags, verb, list.items(), &value.type_name(), depth);
        }
        Value::Map(map) => entries(out, flags, verb, &map.entries(), &value.type_name(), depth),
        Value::Object(object) if object.kind() == Kind::Map => {
            entries(out, flags, verb, &object.entries(), &value.type_name(), depth);
        }
        Value::Object(object) => {
            if object.kind() == Kind::Pointer && depth == 0 {
                out.push(b'&');
            }
            if flags.sharp_v {
                out.extend_from_slice(object.type_name().as_bytes());
            }
            out.push(b'{');
            for (at, (name, field)) in object.fields().iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(if flags.sharp_v { b", " } else { b" " });
                }
                if flags.plus_v || flags.sharp_v {
                    out.extend_from_slice(format!("{name}:").as_bytes());
                }
                directive(out, flags, verb, field, depth + 1);
            }
            out.push(b'}');
        }
    }
}

/// What `String` or `Error` answer.
pub(crate) fn stringer(value: &Value) -> Option<String> {
    match value {
        Value::Object(object) => object.text(),
        Value::Int(IntType::Duration, nanoseconds) => Some(crate::go::time::duration(*nanoseconds)),
        Value::Int(IntType::Month, month) => Some(crate::go::time::month(*month)),
        Value::Int(IntType::Weekday, day) => Some(crate::go::time::weekday(*day)),
        _ => None,
    }
}

/// `%!d(string=a)`
fn bad(out: &mut Vec<u8>, verb: char, value: &Value) {
    out.extend_from_slice(format!("%!{verb}(").as_bytes());
    if value.is_nil() {
        out.extend_from_slice(b"<nil>");
    } else {
        out.extend_from_slice(value.type_name().as_bytes());
        out.push(b'=');
        directive(out, &Flags::default(), 'v', value, 0);
    }
    out.push(b')');
}

fn integer(out: &mut Vec<u8>, flags: &Flags, verb: char, magnitude: u64, negative: bool, value: &Value) {
    match verb {
        'v' | 'd' => flags.integer(out, magnitude, negative, 'd'),
        'b' | 'o' | 'O' | 'x' | 'X' => flags.integer(out, magnitude, negative, verb),
        'c' | 'q' | 'U' => {
            let c = u32::try_from(magnitude).ok().filter(|_| !negative).and_then(char::from_u32);
            let shown = c.unwrap_or('\u{fffd}');
            match verb {
                'c' => flags.pad(out, shown.to_string().as_bytes()),
                'q' => flags.pad(out, quote_with(shown.to_string().as_bytes(), '\'', flags.plus).as_bytes()),
                _ => {
                    let text = match c {
                        Some(c) if flags.sharp => unicode(c),
                        _ => format!("U+{magnitude:04X}"),
                    };
                    Flags { zero: false, ..*flags }.pad(out, text.as_bytes());
                }
            }
        }
        _ => bad(out, verb, value),
    }
}

fn float(out: &mut Vec<u8>, flags: &Flags, verb: char, number: f64, value: &Value) {
    match verb {
        'v' => flags.float(out, number, 'g', None),
        'g' | 'G' => flags.float(out, number, verb, None),
        'e' | 'E' | 'f' => flags.float(out, number, verb, Some(6)),
        'F' => flags.float(out, number, 'f', Some(6)),
        _ => bad(out, verb, value),
    }
}

fn string(out: &mut Vec<u8>, flags: &Flags, verb: char, text: &[u8], value: &Value) {
    let cut = |text: &[u8]| -> Vec<u8> {
        let Some(precision) = flags.precision else { return text.to_vec() };
        let mut out = Vec::new();
        let mut left = precision;
        for chunk in text.utf8_chunks() {
            for c in chunk.valid().chars().take(left) {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            left = left.saturating_sub(chunk.valid().chars().count());
            out.extend(chunk.invalid().iter().take(left));
            left = left.saturating_sub(chunk.invalid().len());
        }
        out
    };
    match verb {
        'v' if flags.sharp_v => flags.pad(out, quote_with(text, '"', false).as_bytes()),
        'v' | 's' => flags.pad(out, &cut(text)),
        'q' => {
            let text = cut(text);
            let raw = flags.sharp
                && std::str::from_utf8(&text).is_ok_and(|text| {
                    text.chars().all(|c| c != '`' && c != '\u{feff}' && (c == '\t' || !c.is_control()))
                });
            if raw {
                let mut quoted = vec![b'`'];
                quoted.extend_from_slice(&text);
                quoted.push(b'`');
                return flags.pad(out, &quoted);
            }
            flags.pad(out, quote_with(&text, '"', flags.plus).as_bytes());
        }
        'x' | 'X' => {
            let text = &text[..flags.precision.unwrap_or(text.len()).min(text.len())];
            let mut hex = String::new();
            for (at, byte) in text.iter().enumerate() {
                if at > 0 && flags.space {
                    hex.push(' ');
                }
                if flags.sharp && (at == 0 || flags.space) {
                    hex.push_str(if verb == 'x' { "0x" } else { "0X" });
                }
                hex.push_str(&if verb == 'x' { format!("{byte:02x}") } else { format!("{byte:02X}") });
            }
            flags.pad(out, hex.as_bytes());
        }
        _ => bad(out, verb, value),
    }
}

fn items(out: &mut Vec<u8>, flags: &Flags, verb: char, items: &[Value], name: &str, depth: usize) {
    let (open, between, close): (String, &[u8], u8) =
        if flags.sharp_v { (format!("{name}{{"), b", ", b'}') } else { ("[".into(), b" ", b']') };
    out.extend_from_slice(open.as_bytes());
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(between);
        }
        element(out, flags, verb, item, depth);
    }
    out.push(close);
}

fn entries(
    out: &mut Vec<u8>,
    flags: &Flags,
    verb: char,
    entries: &[(crate::text::GoStr, Value)],
    name: &str,
    depth: usize,
) {
    if flags.sharp_v {
        out.extend_from_slice(name.as_bytes());
        out.push(b'{');
    } else {
        out.extend_from_slice(b"map[");
    }
    for (at, (key, value)) in entries.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(if flags.sharp_v { b", " } else { b" " });
        }
        string(out, flags, verb, key, &Value::Str(key.clone()));
        out.push(b':');
        element(out, flags, verb, value, depth);
    }
    out.push(if flags.sharp_v { b'}' } else { b']' });
}

/// Inside of something, a nil is printed whatever the verb is.
fn element(out: &mut Vec<u8>, flags: &Flags, verb: char, value: &Value, depth: usize) {
    if value.is_nil() {
        return flags.pad(out, if flags.sharp_v { b"interface {}(nil)" } else { b"<nil>" });
    }
    directive(out, flags, verb, value, depth + 1);
}
