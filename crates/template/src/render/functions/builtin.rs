//! Go's own functions: comparison, printing and escaping.

use super::{Context, Row, compare, text};
use crate::go::chars::is_print;
use crate::go::format::sprintf;
use crate::go::print::sprint_all;
use crate::render::exec::Run;
use crate::value::{Kind, Value};

pub(super) const ROWS: &[Row] = &[
    ("eq", "aa*>b", |_, given| compare::eq(given).map(Value::Bool).map_err(Into::into)),
    ("ne", "aa>b", |_, given| compare::eq(given).map(|equal| Value::Bool(!equal)).map_err(Into::into)),
    ("lt", "aa>b", |_, given| compare::lt(given).map(Value::Bool).map_err(Into::into)),
    ("le", "aa>b", |_, given| compare::le(given).map(Value::Bool).map_err(Into::into)),
    ("gt", "aa>b", |_, given| compare::le(given).map(|le| Value::Bool(!le)).map_err(Into::into)),
    ("ge", "aa>b", |_, given| compare::lt(given).map(|lt| Value::Bool(!lt)).map_err(Into::into)),
    ("not", "a>b", |_, given| Ok(Value::Bool(!given.first().is_some_and(Value::truth)))),
    ("len", "a>i", len),
    ("print", "a*>s", |_, given| Ok(Value::str(sprint_all(given)))),
    ("println", "a*>s", println),
    ("printf", "sa*>s", printf),
    ("html", "a*>s", |_, given| Ok(Value::str(html(&escaped(given))))),
    ("js", "a*>s", |_, given| Ok(Value::str(js(&escaped(given))))),
    ("urlquery", "a*>s", |_, given| Ok(Value::str(crate::go::url::query_escape(&escaped(given))))),
];

fn len(_: &Context<'_>, given: &[Value]) -> Run<Value> {
    let length = match given.first() {
        Some(Value::Str(text)) => text.len(),
        Some(Value::Bytes(bytes)) => bytes.len(),
        Some(Value::List(list)) => list.len(),
        Some(Value::Map(map)) => map.len(),
        Some(Value::Object(object)) if matches!(object.kind(), Kind::Map | Kind::Slice) => {
            object.len().unwrap_or(0)
        }
        None | Some(Value::Nil) => return Err("len of nil pointer".into()),
        Some(other) => return Err(format!("len of type {}", other.type_name()).into()),
    };
    Ok(Value::int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn println(_: &Context<'_>, given: &[Value]) -> Run<Value> {
    let mut out = Vec::new();
    for (at, value) in given.iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        out.extend(crate::go::print::sprint(value));
    }
    out.push(b'\n');
    Ok(Value::str(out))
}

fn printf(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let format = text(given, 0);
    // A width fills up with spaces: no more of them than the format has digits for.
    let widths = format.iter().filter(|byte| **byte == b'%').count();
    if format.iter().filter(|byte| byte.is_ascii_digit() || **byte == b'*').count() > 3 {
        context.engine.make(widths * 100_000)?;
    }
    let out = sprintf(format, &given[1..]);
    context.engine.make(out.len())?;
    Ok(Value::str(out))
}

fn escaped(given: &[Value]) -> Vec<u8> {
    match given {
        [Value::Str(text)] => text.to_vec(),
        // A nil on its own is what a template prints for it.
        given => {
            let shown: Vec<Value> = given
                .iter()
                .map(|value| if value.is_nil() { "<no value>".into() } else { value.clone() })
                .collect();
            sprint_all(&shown)
        }
    }
}

fn html(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            byte => out.push(*byte),
        }
    }
    out
}

fn js(bytes: &[u8]) -> String {
    let mut out = String::new();
    for c in crate::text::lossy(bytes).chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' | '>' | '&' | '=' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c if c < ' ' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c if c.is_ascii() || is_print(c) => out.push(c),
            c => out.push_str(&format!("\\u{:04X}", u32::from(c))),
        }
    }
    out
}
