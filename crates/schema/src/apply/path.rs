//! Paths into objects: field names, list items by key, by value or by index; their order and their text.

use super::values;
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// One step from a value to a value inside it.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A field of an object.
    Field(Arc<str>),
    /// An item of an associative list, by the values of its key fields, sorted by name.
    Key(Arc<[(String, Value)]>),
    /// An item of a set.
    Value(Arc<Value>),
    /// An item of an atomic list; seen in error messages and in foreign field sets only.
    Index(i64),
}

/// The steps from an object's root to a field.
pub type Path = Vec<PathElement>;

/// Why a text is no path element.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ElementError {
    /// A prefix from the future: skipped, not refused.
    #[error("unknown path element type")]
    UnknownType,
    /// Not even the shape of one.
    #[error("{0}")]
    Malformed(String),
}

impl PathElement {
    /// The field `name`.
    pub fn field(name: &str) -> Self {
        PathElement::Field(name.into())
    }

    /// The list item with these key fields, in any order.
    pub fn key(mut fields: Vec<(String, Value)>) -> Self {
        if fields.len() > 1 {
            fields.sort_by(|a, b| a.0.cmp(&b.0));
        }
        PathElement::Key(fields.into())
    }

    /// The set item `value`.
    pub fn value(value: Value) -> Self {
        PathElement::Value(Arc::new(value))
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }

    /// The element as it is written in FieldsV1, such as `f:spec` or `k:{"name":"a"}`.
    pub fn to_text(&self) -> String {
        match self {
            PathElement::Field(name) => format!("f:{name}"),
            PathElement::Key(fields) => {
                let mut out = String::from("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    values::json_string(name, &mut out);
                    out.push(':');
                    values::json(value, &mut out);
                }
                out.push('}');
                out
            }
            PathElement::Value(value) => {
                let mut out = String::from("v:");
                values::json(value, &mut out);
                out
            }
            PathElement::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads an element as FieldsV1 writes it.
    pub(crate) fn from_text(text: &str) -> Result<Self, ElementError> {
        let malformed = |message: String| Err(ElementError::Malformed(message));
        let Some((kind, rest)) = text.as_bytes().first().map(|kind| (*kind, text.get(2..))) else {
            return malformed("key must be 2 characters long:".into());
        };
        let Some(rest) = rest else { return malformed("key must be 2 characters long:".into()) };
        if text.as_bytes().get(1) != Some(&b':') {
            return malformed(format!("missing colon: {text}"));
        }
        match kind {
            b'f' => Ok(PathElement::field(rest)),
            b'v' => Ok(PathElement::value(first_json(rest)?)),
            b'k' => match first_json(rest)? {
                Value::Object(fields) => Ok(PathElement::Key(fields.into_iter().collect())),
                Value::Null => Ok(PathElement::Key(Arc::new([]))),
                _ => malformed(format!("expected an object: {text}")),
            },
            b'i' => match rest.parse() {
                Ok(index) => Ok(PathElement::Index(index)),
                Err(_) => malformed(format!("invalid index: {text}")),
            },
            _ => Err(ElementError::UnknownType),
        }
    }
}

/// The first JSON value in a text, with numbers as the reference reads them there: all as floats. Integers that a float holds
/// exactly stay integers, which compare the same.
fn first_json(text: &str) -> Result<Value, ElementError> {
    let first = serde_json::Deserializer::from_str(text).into_iter::<Value>().next();
    match first {
        Some(Ok(value)) => Ok(with_float_numbers(value)),
        Some(Err(error)) => Err(ElementError::Malformed(error.to_string())),
        None => Ok(Value::Null),
    }
}

fn with_float_numbers(value: Value) -> Value {
    const EXACT: i64 = 1 << 53;
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(int) if (-EXACT..=EXACT).contains(&int) => Value::Number(number),
            _ => number.as_f64().map(Value::from).unwrap_or(Value::Number(number)),
        },
        Value::Array(items) => items.into_iter().map(with_float_numbers).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, with_float_numbers(v))).collect(),
        other => other,
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => {
                for ((name_a, a), (name_b, b)) in a.iter().zip(b.iter()) {
                    let order = name_a.cmp(name_b).then_with(|| values::compare(a, b));
                    if order.is_ne() {
                        return order;
                    }
                }
                a.len().cmp(&b.len())
            }
            (PathElement::Value(a), PathElement::Value(b)) => values::compare(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                let fields: Vec<_> =
                    fields.iter().map(|(k, v)| format!("{k}={}", values::in_path(v))).collect();
                write!(f, "[{}]", fields.join(","))
            }
            PathElement::Value(value) => write!(f, "[={}]", values::in_path(value)),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// The text of a path, such as `.spec.list[name="a"].x`.
pub fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(fields: &[(&str, Value)]) -> PathElement {
        PathElement::key(fields.iter().map(|(k, v)| (k.to_string(), v.clone())).collect())
    }

    #[test]
    fn elements_read_back_as_they_were_written() {
        for (element, text, shown) in [
            (PathElement::field("spec"), "f:spec", ".spec"),
            (PathElement::field("a:b/c"), "f:a:b/c", ".a:b/c"),
            (
                key(&[("protocol", json!("TCP")), ("port", json!(80))]),
                r#"k:{"port":80,"protocol":"TCP"}"#,
                r#"[port=80,protocol="TCP"]"#,
            ),
            (key(&[("name", json!("a<\"b"))]), r#"k:{"name":"a\u003c\"b"}"#, r#"[name="a<\"b"]"#),
            (PathElement::value(json!("x")), r#"v:"x""#, r#"[="x"]"#),
            (PathElement::value(json!(1.5)), "v:1.5", "[=1.5]"),
            (PathElement::value(json!(true)), "v:true", "[=true]"),
            (PathElement::Index(3), "i:3", "[3]"),
        ] {
            assert_eq!(element.to_text(), text);
            assert_eq!(PathElement::from_text(text).unwrap(), element);
            assert_eq!(element.to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_element_is_told_apart() {
        assert_eq!(PathElement::from_text("x:new"), Err(ElementError::UnknownType));
        for text in ["", "f", "fa", "é", "k:[1]", "k:{", "v:{", "i:x", "fé:"] {
            assert!(matches!(PathElement::from_text(text), Err(ElementError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn fields_come_before_keys_before_values_before_indexes() {
        let sorted = [
            PathElement::field("a"),
            PathElement::field("b"),
            key(&[("a", json!(1))]),
            key(&[("a", json!(1)), ("b", json!(0))]),
            key(&[("a", json!(2))]),
            PathElement::value(json!(10)),
            PathElement::value(json!("a")),
            PathElement::Index(0),
        ];
        assert!(sorted.is_sorted());
    }
}
