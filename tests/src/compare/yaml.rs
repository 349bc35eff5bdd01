//! JSON values as block YAML, with strings unquoted where a careless author leaves the quotes out.

use serde_json::Value;

/// The value as a YAML document.
pub fn document(value: &Value) -> String {
    let mut out = String::new();
    node(value, 0, &mut out);
    out
}

fn node(value: &Value, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, field) in fields {
                out.push_str(&format!("{pad}{}:", scalar(name)));
                inner(field, indent, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&format!("{pad}-"));
                inner(item, indent, out);
            }
        }
        other => out.push_str(&format!("{pad}{other}\n")),
    }
}

fn inner(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            node(value, indent + 2, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            node(value, indent + 2, out);
        }
        Value::String(text) => out.push_str(&format!(" {}\n", scalar(text))),
        other => out.push_str(&format!(" {other}\n")),
    }
}

/// Words stay bare; everything else is quoted as JSON does.
fn scalar(text: &str) -> String {
    let bare = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "/.- ".contains(letter));
    if bare { text.to_owned() } else { Value::String(text.to_owned()).to_string() }
}
