//! Sprig's functions on strings.

use super::{Context, Row, any, integer, lossy, text};
use crate::go::chars;
use crate::go::print::{sprint, stringer};
use crate::go::quote::quote;
use crate::render::exec::Run;
use crate::text::GoStr;
use crate::value::{Map, MapType, Value};

pub(super) const ROWS: &[Row] = &[
    ("hello", ">s", |_, _| Ok("Hello!".into())),
    ("trunc", "is>s", |_, given| Ok(trunc(integer(given, 0), text(given, 1)))),
    ("trim", "s>s", |_, given| Ok(lossy(given, 0).trim_matches(chars::is_space).into())),
    ("upper", "s>s", |_, given| Ok(mapped(&lossy(given, 0), chars::upper))),
    ("lower", "s>s", |_, given| Ok(mapped(&lossy(given, 0), chars::lower))),
    ("repeat", "is>s", repeat),
    ("trimall", "ss>s", trim_all),
    ("trimAll", "ss>s", trim_all),
    ("trimSuffix", "ss>s", |_, given| {
        Ok(Value::str(text(given, 1).strip_suffix(text(given, 0)).unwrap_or(text(given, 1))))
    }),
    ("trimPrefix", "ss>s", |_, given| {
        Ok(Value::str(text(given, 1).strip_prefix(text(given, 0)).unwrap_or(text(given, 1))))
    }),
    ("contains", "ss>b", |_, given| Ok(Value::Bool(find(text(given, 1), text(given, 0)).is_some()))),
    ("hasPrefix", "ss>b", |_, given| Ok(Value::Bool(text(given, 1).starts_with(text(given, 0))))),
    ("hasSuffix", "ss>b", |_, given| Ok(Value::Bool(text(given, 1).ends_with(text(given, 0))))),
    ("quote", "a*>s", |_, given| {
        let all = given.iter().filter(|value| !value.is_nil()).map(|value| quote(&string(value)));
        Ok(all.collect::<Vec<_>>().join(" ").into())
    }),
    ("squote", "a*>s", |_, given| {
        let all =
            given.iter().filter(|value| !value.is_nil()).map(|value| [b"'", &*sprint(value), b"'"].concat());
        Ok(Value::str(all.collect::<Vec<_>>().join(&b' ')))
    }),
    ("cat", "a*>s", |_, given| {
        let all = given.iter().filter(|value| !value.is_nil()).map(sprint);
        Ok(Value::str(all.collect::<Vec<_>>().join(&b' ')))
    }),
    ("indent", "is>s", |context, given| indent(context, given).map(Value::str)),
    ("nindent", "is>s", |context, given| {
        let mut out = vec![b'\n'];
        out.extend(indent(context, given)?);
        Ok(Value::str(out))
    }),
    ("replace", "sss>s", |context, given| {
        replace(context, text(given, 2), text(given, 0), text(given, 1)).map(Value::str)
    }),
    ("plural", "ssi>s", |_, given| Ok(Value::str(text(given, usize::from(integer(given, 2) != 1))))),
    ("toString", "a>s", |_, given| Ok(Value::Str(string(&any(given, 0))))),
    ("toStrings", "a>L", |_, given| Ok(Value::strings(strings(&any(given, 0))))),
    ("join", "sa>s", |_, given| {
        let all = strings(&any(given, 1));
        Ok(Value::str(all.iter().map(|text| &**text).collect::<Vec<&[u8]>>().join(text(given, 0))))
    }),
    ("split", "ss>x", |_, given| Ok(numbered(split(text(given, 1), text(given, 0), -1)))),
    ("splitList", "ss>L", |_, given| Ok(Value::strings(split(text(given, 1), text(given, 0), -1)))),
    ("splitn", "sis>x", |_, given| Ok(numbered(split(text(given, 2), text(given, 0), integer(given, 1))))),
    ("substr", "iis>s", substring),
    ("ternary", "aab>a", |_, given| {
        Ok(if matches!(given.get(2), Some(Value::Bool(true))) { any(given, 0) } else { any(given, 1) })
    }),
];

/// `strval`: what a string, an error, a Stringer or anything else is as text.
pub(super) fn string(value: &Value) -> GoStr {
    match value {
        Value::Str(text) => text.clone(),
        Value::Bytes(bytes) => GoStr::from(&**bytes),
        value => match stringer(value) {
            Some(text) => text.into(),
            None => sprint(value).into(),
        },
    }
}

/// `strslice`
pub(super) fn strings(value: &Value) -> Vec<GoStr> {
    match super::lists::elements(value) {
        Some(items) => items.iter().filter(|item| !item.is_nil()).map(string).collect(),
        None if value.is_nil() => Vec::new(),
        None => vec![string(value)],
    }
}

fn mapped(text: &str, map: fn(char) -> char) -> Value {
    text.chars().map(map).collect::<String>().into()
}

fn trunc(count: i64, text: &[u8]) -> Value {
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if count < 0 && length + count > 0 {
        return Value::str(&text[usize::try_from(length + count).unwrap_or(0)..]);
    }
    match usize::try_from(count) {
        Ok(count) if count < text.len() => Value::str(&text[..count]),
        _ => Value::str(text),
    }
}

fn repeat(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let text = text(given, 1);
    let count = usize::try_from(integer(given, 0)).map_err(|_| "strings: negative Repeat count")?;
    let bytes = count.checked_mul(text.len()).ok_or("strings: Repeat output length overflow")?;
    context.engine.make(bytes)?;
    Ok(Value::str(text.repeat(if text.is_empty() { 0 } else { count })))
}

fn trim_all(_: &Context<'_>, given: &[Value]) -> Run<Value> {
    let set = lossy(given, 0);
    Ok(lossy(given, 1).trim_matches(|c| set.contains(c)).into())
}

fn indent(context: &Context<'_>, given: &[Value]) -> Run<Vec<u8>> {
    let text = text(given, 1);
    let count = usize::try_from(integer(given, 0)).map_err(|_| "strings: negative Repeat count")?;
    let lines = 1 + text.iter().filter(|byte| **byte == b'\n').count();
    context.engine.make(count.saturating_mul(lines).saturating_add(text.len()))?;
    let pad = vec![b' '; count];
    let mut out = pad.clone();
    for byte in text {
        out.push(*byte);
        if *byte == b'\n' {
            out.extend_from_slice(&pad);
        }
    }
    Ok(out)
}

pub(super) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    if let (Ok(text), Ok(part)) = (std::str::from_utf8(text), std::str::from_utf8(part)) {
        return text.find(part);
    }
    text.windows(part.len()).position(|window| window == part)
}

/// `strings.Split` and `strings.SplitN`.
pub(super) fn split(text: &[u8], separator: &[u8], count: i64) -> Vec<GoStr> {
    if count == 0 {
        return Vec::new();
    }
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut rest = text;
    if separator.is_empty() {
        while !rest.is_empty() && parts.len() + 1 < most {
            let size = rest
                .utf8_chunks()
                .next()
                .and_then(|chunk| chunk.valid().chars().next())
                .map_or(1, char::len_utf8);
            parts.push(GoStr::from(&rest[..size]));
            rest = &rest[size..];
        }
        if !rest.is_empty() {
            parts.push(rest.into());
        }
        return parts;
    }
    while parts.len() + 1 < most {
        let Some(at) = find(rest, separator) else { break };
        parts.push(GoStr::from(&rest[..at]));
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest.into());
    parts
}

fn numbered(parts: Vec<GoStr>) -> Value {
    let entries = parts.into_iter().enumerate();
    Value::Map(Map::new(
        MapType::Str,
        entries.map(|(at, part)| (GoStr::from(format!("_{at}")), Value::Str(part))).collect(),
    ))
}

pub(super) fn replace(context: &Context<'_>, text: &[u8], old: &[u8], new: &[u8]) -> Run<Vec<u8>> {
    let parts = split(text, old, -1);
    context.engine.make(text.len().saturating_add(parts.len().saturating_mul(new.len())))?;
    let mut out = Vec::with_capacity(text.len());
    if old.is_empty() {
        // Before each character, and at the end.
        for part in parts {
            out.extend_from_slice(new);
            out.extend_from_slice(&part);
        }
        out.extend_from_slice(new);
        return Ok(out);
    }
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(new);
        }
        out.extend_from_slice(part);
    }
    Ok(out)
}

fn substring(_: &Context<'_>, given: &[Value]) -> Run<Value> {
    let (start, end, text) = (integer(given, 0), integer(given, 1), text(given, 2));
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let (from, to) = if start < 0 {
        (0, end)
    } else if end < 0 || end > length {
        (start, length)
    } else {
        (start, end)
    };
    let outside = |what: String| format!("runtime error: slice bounds out of range {what}");
    if start < 0 && (to < 0 || to > length) {
        return Err(if to < 0 {
            outside(format!("[:{to}]"))
        } else {
            outside(format!("[:{to}] with length {length}"))
        }
        .into());
    }
    if from > to {
        return Err(outside(format!("[{from}:{to}]")).into());
    }
    let at = |place: i64| usize::try_from(place).unwrap_or(0);
    Ok(Value::str(&text[at(from)..at(to)]))
}
