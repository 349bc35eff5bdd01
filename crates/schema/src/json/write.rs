//! JSON serializer: compact, keys sorted, characters escaped and floats printed as Go does.

use crate::go;
use serde_json::{Number, Value};
use std::io::Write;

/// Compact JSON.
pub fn write(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    append(value, &mut out);
    out
}

/// Compact JSON as text.
pub fn to_string(value: &Value) -> String {
    String::from_utf8(write(value)).expect("only whole strings and ASCII are written")
}

/// Compact JSON, added to what is there.
pub fn append(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => append_number(number, out),
        Value::String(text) => append_text(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                append(item, out);
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            out.push(b'{');
            for (index, (key, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                append_text(key, out);
                out.push(b':');
                append(field, out);
            }
            out.push(b'}');
        }
    }
}

/// A number, added to what is there.
pub fn append_number(number: &Number, out: &mut Vec<u8>) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => out.extend_from_slice(go::json_float(float).as_bytes()),
        // Writing to a Vec cannot fail.
        None => drop(write!(out, "{number}")),
    }
}

/// A string in quotes, added to what is there.
pub fn append_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x08 => b"\\b",
            0x0c => b"\\f",
            // Go guards against JSON that ends up inside HTML.
            b'<' => b"\\u003c",
            b'>' => b"\\u003e",
            b'&' => b"\\u0026",
            0xe2 if bytes[at..].starts_with("\u{2028}".as_bytes()) => b"\\u2028",
            0xe2 if bytes[at..].starts_with("\u{2029}".as_bytes()) => b"\\u2029",
            0..0x20 => b"",
            _ => continue,
        };
        out.extend_from_slice(&bytes[done..at]);
        out.extend_from_slice(escape);
        if escape.is_empty() {
            drop(write!(out, "\\u{byte:04x}"));
        }
        done = at + if byte == 0xe2 { 3 } else { 1 };
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_as_go_writes_them() {
        for (value, text) in [
            (json!(1.0), "1"),
            (json!(1e21), "1e+21"),
            (json!(1e20), "100000000000000000000"),
            (json!(1e-7), "1e-7"),
            (json!(1.5e-10), "1.5e-10"),
            (json!(0.000001), "0.000001"),
            (json!(-0.0), "-0"),
            (json!(0.1), "0.1"),
            (json!(1.7976931348623157e308), "1.7976931348623157e+308"),
            (json!(i64::MIN), "-9223372036854775808"),
            (json!("a<b>&\u{2028}\u{1}\u{8}é"), r#""a\u003cb\u003e\u0026\u2028\u0001\bé""#),
            (json!({"b": [1, null, true], "a": {}}), r#"{"a":{},"b":[1,null,true]}"#),
        ] {
            assert_eq!(to_string(&value), text);
        }
    }
}
