//! JSON as `encoding/json` reads and writes it.

use crate::value::{IntType, Kind, Value};
use serde_json::Value as Json;

const DEEPEST: usize = 500;

/// Reads a value: numbers become floats.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    check_depth(text)?;
    serde_json::from_str::<Json>(text)
        .map(|json| crate::plain::from_json_floats(&json))
        .map_err(|error| complaint(text, &error))
}

/// The mistake in Go's words: what stands where something else should.
fn complaint(text: &str, error: &serde_json::Error) -> String {
    if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() || error.is_eof() {
        return "unexpected end of JSON input".into();
    }
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let at = line.as_bytes().get(error.column().saturating_sub(1)).copied().unwrap_or(b'\n');
    let why = error.to_string();
    let place = [
        ("trailing characters", "after top-level value"),
        ("expected `,` or `]`", "after array element"),
        ("expected `,` or `}`", "after object key:value pair"),
        ("expected `:`", "after object key"),
        ("key must be a string", "looking for beginning of object key string"),
        ("trailing comma", "looking for beginning of object key string"),
        ("control character", "in string literal"),
        ("invalid escape", "in string escape code"),
        ("invalid number", "in numeric literal"),
    ];
    let place = place
        .iter()
        .find(|(start, _)| why.starts_with(start))
        .map_or("looking for beginning of value", |(_, go)| go);
    format!(
        "invalid character {} {place}",
        crate::go::quote::quote_with(char::from(at).to_string().as_bytes(), '\'', false)
    )
}

/// Refuses what is nested too deeply to be read.
fn check_depth(text: &str) -> Result<(), String> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err("exceeded max depth".into());
        }
    }
    Ok(())
}

/// One line; `html` escapes `<`, `>` and `&`, as Go does unless asked otherwise.
pub(crate) fn write(value: &Value, html: bool) -> Result<String, String> {
    let mut out = String::new();
    put(&mut out, value, html, None, 0)?;
    Ok(out)
}

/// Indented by two spaces.
pub(crate) fn pretty(value: &Value) -> Result<String, String> {
    let mut out = String::new();
    put(&mut out, value, true, Some(0), 0)?;
    Ok(out)
}

fn put(
    out: &mut String,
    value: &Value,
    html: bool,
    indent: Option<usize>,
    depth: usize,
) -> Result<(), String> {
    if depth > DEEPEST {
        return Err("json: unsupported value: encountered a cycle".into());
    }
    match value {
        Value::Nil => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(IntType::Duration, value) | Value::Int(_, value) => out.push_str(&value.to_string()),
        Value::Uint(_, value) => out.push_str(&value.to_string()),
        Value::Float(value) if value.is_finite() => out.push_str(&crate::go::float::json(*value)),
        Value::Float(value) => {
            return Err(format!("json: unsupported value: {}", crate::go::float::format(*value, 'g', None)));
        }
        Value::Complex(..) => return Err("json: unsupported type: complex128".into()),
        Value::Str(text) => string(out, &text.lossy(), html),
        Value::Bytes(bytes) => {
            use base64::Engine;
            string(out, &base64::engine::general_purpose::STANDARD.encode(bytes), html);
        }
        Value::List(list) if list.is_nil() => out.push_str("null"),
        Value::List(list) => {
            out.push('[');
            for (at, item) in list.items().iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                line(out, indent.map(|indent| indent + 1));
                put(out, item, html, indent.map(|indent| indent + 1), depth + 1)?;
            }
            if !list.is_empty() {
                line(out, indent);
            }
            out.push(']');
        }
        Value::Map(map) => entries(out, &map.entries(), html, indent, depth)?,
        Value::Object(object) if object.kind() == Kind::Map => {
            entries(out, &object.entries(), html, indent, depth)?
        }
        Value::Object(object) => put(out, &object.plain(), html, indent, depth + 1)?,
    }
    Ok(())
}

fn entries(
    out: &mut String,
    entries: &[(crate::text::GoStr, Value)],
    html: bool,
    indent: Option<usize>,
    depth: usize,
) -> Result<(), String> {
    out.push('{');
    for (at, (key, value)) in entries.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        line(out, indent.map(|indent| indent + 1));
        string(out, &key.lossy(), html);
        out.push(':');
        if indent.is_some() {
            out.push(' ');
        }
        put(out, value, html, indent.map(|indent| indent + 1), depth + 1)?;
    }
    if !entries.is_empty() {
        line(out, indent);
    }
    out.push('}');
    Ok(())
}

fn line(out: &mut String, indent: Option<usize>) {
    if let Some(indent) = indent {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", indent));
    }
}

fn string(out: &mut String, text: &str, html: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '<' | '>' | '&' if html => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
