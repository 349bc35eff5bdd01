//! JSON values as Go sees them: equality and order across number types, and Go's ways of printing them.

use crate::go;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt::Write;

/// A number as Go's decoder keeps it: 64-bit integers apart from everything else.
enum GoNumber {
    Int(i64),
    Float(f64),
}

fn go_number(number: &Number) -> GoNumber {
    match number.as_i64() {
        Some(int) => GoNumber::Int(int),
        None => GoNumber::Float(number.as_f64().unwrap_or(f64::MAX)),
    }
}

/// Order of two numbers: exact between integers, as floats otherwise.
fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    let (a, b) = match (go_number(a), go_number(b)) {
        (GoNumber::Int(a), GoNumber::Int(b)) => return a.cmp(&b),
        (GoNumber::Int(a), GoNumber::Float(b)) => (a as f64, b),
        (GoNumber::Float(a), GoNumber::Int(b)) => (a, b as f64),
        (GoNumber::Float(a), GoNumber::Float(b)) => (a, b),
    };
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Whether two values are the same, where `1` and `1.0` are.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ka, a), (kb, b))| ka == kb && equal(a, b))
        }
        _ => a == b,
    }
}

/// Kinds sort before each other: numbers, strings, booleans, lists, maps, null.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// The total order of values inside field sets.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let different = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            different.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            // At the first key that only one side has, the side that has it comes first.
            for ((key_a, a), (key_b, b)) in a.iter().zip(b) {
                let order = key_a.cmp(key_b).then_with(|| compare(a, b));
                if order.is_ne() {
                    return order;
                }
            }
            a.len().cmp(&b.len())
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// A string as Go's JSON encoder writes it, which escapes `<`, `>` and `&` too.
pub(crate) fn json_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\x1f' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// A value as Go's JSON encoder writes it.
pub(crate) fn json(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => json_string(text, out),
        Value::Number(number) => match go_number(number) {
            GoNumber::Int(int) => {
                let _ = write!(out, "{int}");
            }
            GoNumber::Float(float) => out.push_str(&go::json_float(float)),
        },
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json_string(name, out);
                out.push(':');
                json(value, out);
            }
            out.push('}');
        }
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Null => out.push_str("null"),
    }
}

/// How a value shows inside a path, such as `"a"` in `[name="a"]`.
pub(crate) fn in_path(value: &Value) -> String {
    match value {
        Value::String(text) => go::quote(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(in_path).collect::<Vec<_>>().join(","))
        }
        Value::Object(fields) => fields.iter().map(|(k, v)| format!("{k}={}", in_path(v))).collect(),
        _ => plain(value),
    }
}

/// `%v`: the plain text of a value.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(b) => b.to_string(),
        Value::Number(number) => match go_number(number) {
            GoNumber::Int(int) => int.to_string(),
            GoNumber::Float(float) => go::float(float),
        },
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// `%#v`: a value as Go source.
pub(crate) fn as_source(value: &Value) -> String {
    match value {
        Value::String(text) => go::quote(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(as_source).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(k, v)| format!("{}:{}", go::quote(k), as_source(v))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        Value::Null => "interface {}(nil)".into(),
        _ => plain(value),
    }
}

/// `%T`: the Go type that a value decodes to.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_compare_across_types_and_kinds_have_an_order() {
        assert!(equal(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!equal(&json!(1), &json!("1")));
        let sorted =
            [json!(-2), json!(0.5), json!(3), json!("a"), json!(false), json!([]), json!({}), json!(null)];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn values_print_as_go_prints_them() {
        let mut out = String::new();
        json(&json!({"a<": 1.0, "b": [1e-7, 1e21, true, null, "x\u{1}"]}), &mut out);
        assert_eq!(out, r#"{"a\u003c":1,"b":[1e-7,1e+21,true,null,"x\u0001"]}"#);
        assert_eq!(plain(&json!({"a": [1, "b", 1e-5], "c": null})), "map[a:[1 b 1e-05] c:<nil>]");
        assert_eq!(
            as_source(&json!({"a": ["x", 2]})),
            r#"map[string]interface {}{"a":[]interface {}{"x", 2}}"#
        );
    }
}
