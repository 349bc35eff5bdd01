//! TOML as BurntSushi's encoder writes it, and as it is read.

use crate::value::{Elem, List, Value};

/// `fromToml`
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| format!("toml: {}", error.message()))?;
    Ok(from(&toml::Value::Table(table)))
}

fn from(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(value) => Value::int64(*value),
        toml::Value::Float(value) => Value::Float(*value),
        toml::Value::Boolean(value) => Value::Bool(*value),
        toml::Value::Datetime(time) => {
            let text = time.to_string();
            match text.parse::<jiff::Timestamp>() {
                Ok(timestamp) => crate::go::time::Time::at(timestamp).value(),
                Err(_) => text.into(),
            }
        }
        toml::Value::Array(items) => {
            let tables = !items.is_empty() && items.iter().all(toml::Value::is_table);
            let elem = if tables { Elem::Map } else { Elem::Any };
            Value::List(List::new(elem, items.iter().map(from).collect()))
        }
        toml::Value::Table(table) => Value::map(table.iter().map(|(key, value)| (key.as_str(), from(value)))),
    }
}

/// `toToml`: what it cannot write becomes the error's text, as in Helm.
pub(crate) fn write(value: &Value) -> Result<String, String> {
    let mut out = String::new();
    if is_tables(value) {
        return Err("toml: top-level values must be Go maps or structs".into());
    }
    if !is_table(value) {
        if value.is_nil() {
            return Err("toml: cannot encode a nil value".into());
        }
        inline(&mut out, value, 0)?;
        return Ok(out);
    }
    table(&mut out, &[], value, 0)?;
    Ok(out)
}

fn is_table(value: &Value) -> bool {
    matches!(value, Value::Map(_))
}

fn is_tables(value: &Value) -> bool {
    matches!(value, Value::List(list) if !list.is_empty() && list.items().iter().all(is_table))
}

fn table(out: &mut String, path: &[String], value: &Value, depth: usize) -> Result<(), String> {
    if depth > 100 {
        return Err("toml: the value is nested too deeply".into());
    }
    let Value::Map(map) = value else { return Ok(()) };
    let entries = map.entries();
    let indent = "  ".repeat(path.len());
    for (key, value) in &entries {
        if is_table(value) || is_tables(value) || value.is_nil() {
            continue;
        }
        out.push_str(&indent);
        out.push_str(&name(&key.lossy()));
        out.push_str(" = ");
        inline(out, value, 0)?;
        out.push('\n');
    }
    for (key, value) in &entries {
        let mut path = path.to_vec();
        path.push(name(&key.lossy()));
        let header = path.join(".");
        let indent = "  ".repeat(path.len() - 1);
        match value {
            value if is_table(value) => {
                if path.len() == 1 && !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(&format!("{indent}[{header}]\n"));
                table(out, &path, value, depth + 1)?;
            }
            Value::List(list) if is_tables(value) => {
                for item in list.items() {
                    if !out.is_empty() {
                        out.push('\n');
                    }
                    out.push_str(&format!("{indent}[[{header}]]\n"));
                    table(out, &path, item, depth + 1)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn name(key: &str) -> String {
    let bare = !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if bare { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            c if c < ' ' || c == '\x7f' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn inline(out: &mut String, value: &Value, depth: usize) -> Result<(), String> {
    if depth > 100 {
        return Err("toml: the value is nested too deeply".into());
    }
    match value {
        Value::Bool(value) => out.push_str(&value.to_string()),
        Value::Int(_, value) => out.push_str(&value.to_string()),
        Value::Uint(_, value) => out.push_str(&value.to_string()),
        Value::Float(value) if value.is_nan() => out.push_str("nan"),
        Value::Float(value) if value.is_infinite() => {
            out.push_str(if *value > 0.0 { "+inf" } else { "-inf" })
        }
        Value::Float(value) => {
            let text = crate::go::float::format(*value, 'g', None);
            out.push_str(&text);
            if !text.contains(['.', 'e']) {
                out.push_str(".0");
            }
        }
        Value::Str(text) => out.push_str(&quoted(&text.lossy())),
        Value::List(list) => {
            out.push('[');
            for (at, item) in list.items().iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                if item.is_nil() {
                    return Err("toml: cannot encode array with nil element".into());
                }
                inline(out, item, depth + 1)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (at, (key, value)) in map.entries().iter().filter(|(_, value)| !value.is_nil()).enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                out.push_str(&name(&key.lossy()));
                out.push_str(" = ");
                inline(out, value, depth + 1)?;
            }
            out.push('}');
        }
        other => return Err(format!("unsupported type for key '': {}", other.type_name())),
    }
    Ok(())
}
