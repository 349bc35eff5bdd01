//! Strings: what is in them, parts of them, and how they are put together. Positions count characters.

use super::super::equal::equal;
use super::super::value::{Failure, Meter, Outcome, Text, Value};
use super::{Row, print};

pub(super) const ROWS: &[Row] = &[
    Row("contains", ".(string, string) bool", |meter, values| {
        let (text, part) = two(values)?;
        meter.charge((text.len() as u64).div_ceil(10).saturating_mul((part.len() as u64).div_ceil(10)))?;
        meter.work(text.len() as u64 / 16)?;
        Ok(Value::Bool(text.contains(part)))
    }),
    Row("startsWith", ".(string, string) bool", |meter, values| {
        let (text, part) = two(values)?;
        meter.traverse(part.len())?;
        Ok(Value::Bool(text.starts_with(part)))
    }),
    Row("endsWith", ".(string, string) bool", |meter, values| {
        let (text, part) = two(values)?;
        meter.traverse(part.len())?;
        Ok(Value::Bool(text.ends_with(part)))
    }),
    Row("charAt", ".(string, int) string", |meter, values| match values {
        [Value::String(text), Value::Int(place)] => {
            traverse(meter, text)?;
            let length = text.chars().count();
            match usize::try_from(*place).ok().filter(|place| *place <= length) {
                Some(place) => Ok(Value::text(text.chars().nth(place).map_or(String::new(), String::from))),
                None => Err(Failure::new(format!("index out of range: {place}"))),
            }
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row(
        "indexOf",
        ".(string, string) int | .(string, string, int) int | .(list(A), A) int",
        |meter, values| match values {
            [Value::String(text), Value::String(part)] => index_of(meter, text, part, 0),
            [Value::String(text), Value::String(part), Value::Int(from)] => {
                index_of(meter, text, part, *from)
            }
            [list, item] => place_in(meter, list, item, false),
            _ => Err(Failure::no_such_overload()),
        },
    ),
    Row(
        "lastIndexOf",
        ".(string, string) int | .(string, string, int) int | .(list(A), A) int",
        |meter, values| match values {
            [Value::String(text), Value::String(part)] => last_index_of(meter, text, part, None),
            [Value::String(text), Value::String(part), Value::Int(from)] => {
                last_index_of(meter, text, part, Some(*from))
            }
            [list, item] => place_in(meter, list, item, true),
            _ => Err(Failure::no_such_overload()),
        },
    ),
    Row("lowerAscii", ".(string) string", |meter, values| {
        let text = one(values)?;
        traverse(meter, text)?;
        Ok(Value::text(text.to_ascii_lowercase()))
    }),
    Row("upperAscii", ".(string) string", |meter, values| {
        let text = one(values)?;
        traverse(meter, text)?;
        Ok(Value::text(text.to_ascii_uppercase()))
    }),
    Row("trim", ".(string) string", |meter, values| {
        let text = one(values)?;
        traverse(meter, text)?;
        Ok(Value::text(text.trim_matches(is_space)))
    }),
    Row(
        "replace",
        ".(string, string, string) string | .(string, string, string, int) string",
        |meter, values| match values {
            [Value::String(text), Value::String(old), Value::String(new)] => {
                replace(meter, text, old, new, -1)
            }
            [Value::String(text), Value::String(old), Value::String(new), Value::Int(most)] => {
                replace(meter, text, old, new, *most)
            }
            _ => Err(Failure::no_such_overload()),
        },
    ),
    Row("split", ".(string, string) list(string) | .(string, string, int) list(string)", |meter, values| {
        match values {
            [Value::String(text), Value::String(by)] => split(meter, text, by, -1),
            [Value::String(text), Value::String(by), Value::Int(most)] => split(meter, text, by, *most),
            _ => Err(Failure::no_such_overload()),
        }
    }),
    Row("substring", ".(string, int) string | .(string, int, int) string", |meter, values| match values {
        [Value::String(text), Value::Int(from)] => substring(meter, text, *from, None),
        [Value::String(text), Value::Int(from), Value::Int(to)] => substring(meter, text, *from, Some(*to)),
        _ => Err(Failure::no_such_overload()),
    }),
    Row("join", ".(list(string)) string | .(list(string), string) string", |meter, values| match values {
        [list] => join(meter, list, ""),
        [list, Value::String(by)] => join(meter, list, by),
        _ => Err(Failure::no_such_overload()),
    }),
    Row("strings.quote", "(string) string", |meter, values| {
        let text = one(values)?;
        traverse(meter, text)?;
        Ok(Value::text(print::quote(text)))
    }),
    Row("format", ".(string, list(dyn)) string", |meter, values| match values {
        [Value::String(format), list] => print::format(meter, format, list).map(Value::text),
        _ => Err(Failure::no_such_overload()),
    }),
];

fn is_space(c: char) -> bool {
    c.is_whitespace()
}

fn one<'v>(values: &'v [Value<'_>]) -> Result<&'v str, Failure> {
    match values {
        [Value::String(text)] => Ok(text),
        _ => Err(Failure::no_such_overload()),
    }
}

fn two<'v>(values: &'v [Value<'_>]) -> Result<(&'v str, &'v str), Failure> {
    match values {
        [Value::String(one), Value::String(other)] => Ok((one, other)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn traverse(meter: &mut Meter, text: &str) -> Result<(), Failure> {
    meter.work(text.len() as u64 / 4)?;
    meter.traverse(text.len())
}

/// The byte at which the character of that number begins.
fn byte_of(text: &str, place: usize) -> Option<usize> {
    let mut starts = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    starts.nth(place)
}

fn index_of<'a>(meter: &mut Meter, text: &str, part: &str, from: i64) -> Outcome<'a> {
    traverse(meter, text)?;
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    let start = usize::try_from(from).map_err(|_| Failure::new(format!("index out of range: {from}")))?;
    let found = byte_of(text, start).and_then(|byte| {
        let found = text[byte..].find(part)?;
        i64::try_from(start + text[byte..byte + found].chars().count()).ok()
    });
    Ok(Value::Int(found.unwrap_or(-1)))
}

fn last_index_of<'a>(meter: &mut Meter, text: &str, part: &str, from: Option<i64>) -> Outcome<'a> {
    traverse(meter, text)?;
    let length = text.chars().count();
    if part.is_empty() {
        return Ok(Value::Int(from.unwrap_or(length as i64)));
    }
    let last = match from {
        None if length == 0 => return Ok(Value::Int(-1)),
        None => length - 1,
        Some(from) => {
            usize::try_from(from).map_err(|_| Failure::new(format!("index out of range: {from}")))?
        }
    };
    if last >= length {
        return Ok(Value::Int(-1));
    }
    // A match may begin at the last place, so it may reach beyond it.
    let end = byte_of(text, last.saturating_add(part.chars().count())).unwrap_or(text.len());
    let found = text[..end].rfind(part).map(|byte| text[..byte].chars().count() as i64);
    Ok(Value::Int(found.unwrap_or(-1)))
}

fn place_in<'a>(meter: &mut Meter, list: &Value<'a>, item: &Value<'a>, last: bool) -> Outcome<'a> {
    let items = list.items(meter)?;
    meter.charge(items.len() as u64)?;
    let mut found = -1;
    for (place, candidate) in items.iter().enumerate() {
        if equal(candidate, item, meter)? {
            found = place as i64;
            if !last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn replace<'a>(meter: &mut Meter, text: &str, old: &str, new: &str, most: i64) -> Outcome<'a> {
    traverse(meter, text)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let places = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() }.min(most);
    // What it would make is paid for before it is made.
    meter.traverse(text.len().saturating_add(places.saturating_mul(new.len())))?;
    Ok(Value::text(text.replacen(old, new, most)))
}

fn split<'a>(meter: &mut Meter, text: &str, by: &str, most: i64) -> Outcome<'a> {
    traverse(meter, text)?;
    meter.work(text.len() as u64)?;
    let owned = |part: &str| Value::String(Text::Owned(part.into()));
    let parts: Vec<Value<'a>> = match usize::try_from(most) {
        Ok(0) => Vec::new(),
        Ok(most) if by.is_empty() => {
            let cut = byte_of(text, most - 1).unwrap_or(text.len());
            let mut parts: Vec<_> = text[..cut].chars().map(|c| Value::text(c.to_string())).collect();
            parts.extend((cut < text.len()).then(|| owned(&text[cut..])));
            parts
        }
        Ok(most) => text.splitn(most, by).map(owned).collect(),
        Err(_) if by.is_empty() => text.chars().map(|c| Value::text(c.to_string())).collect(),
        Err(_) => text.split(by).map(owned).collect(),
    };
    Ok(Value::list(parts))
}

fn substring<'a>(meter: &mut Meter, text: &str, from: i64, to: Option<i64>) -> Outcome<'a> {
    traverse(meter, text)?;
    let length = text.chars().count();
    let end = to.unwrap_or(length as i64);
    if to.is_some() && from > end {
        return Err(Failure::new(format!("invalid substring range. start: {from}, end: {end}")));
    }
    let byte = |place: i64| {
        let found = usize::try_from(place).ok().and_then(|place| byte_of(text, place));
        found.ok_or_else(|| Failure::new(format!("index out of range: {place}")))
    };
    let (start, end) = (byte(from)?, byte(end)?);
    Ok(Value::text(&text[start..end]))
}

fn join<'a>(meter: &mut Meter, list: &Value<'a>, by: &str) -> Outcome<'a> {
    let items = list.items(meter)?;
    let mut length = items.len().saturating_mul(by.len());
    for item in items.iter() {
        match item {
            Value::String(text) => length = length.saturating_add(text.len()),
            other => return Err(Failure::new(format!("join: invalid input: {}", print::shown(other)))),
        }
    }
    meter.charge(items.len() as u64)?;
    meter.traverse(length)?;
    let mut joined = String::with_capacity(length);
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            joined.push_str(by);
        }
        if let Value::String(text) = item {
            joined.push_str(text);
        }
    }
    Ok(Value::text(joined))
}
