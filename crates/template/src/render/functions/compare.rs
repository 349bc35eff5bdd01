//! `eq` and its kin, and `deepEqual`.

use crate::go::print::show;
use crate::value::{Kind, Value};

#[derive(PartialEq, Clone, Copy)]
enum Basic {
    Bool,
    Complex,
    Int,
    Float,
    Str,
    Uint,
    Other,
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Complex(..) => Basic::Complex,
        Value::Int(..) => Basic::Int,
        Value::Float(_) => Basic::Float,
        Value::Str(_) => Basic::Str,
        Value::Uint(..) => Basic::Uint,
        _ => Basic::Other,
    }
}

/// Is the first equal to one of the others?
#[allow(clippy::float_cmp)] // as Go compares them
pub(super) fn eq(given: &[Value]) -> Result<bool, String> {
    let Some((first, others)) = given.split_first() else {
        return Err("missing argument for comparison".into());
    };
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    for other in others {
        let equal = match (first, other) {
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
            (Value::Int(_, a), Value::Int(_, b)) => a == b,
            (Value::Uint(_, a), Value::Uint(_, b)) => a == b,
            (Value::Int(_, int), Value::Uint(_, uint)) | (Value::Uint(_, uint), Value::Int(_, int)) => {
                u64::try_from(*int).is_ok_and(|int| int == *uint)
            }
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a == b,
            (a, b) if basic(a) != basic(b) => {
                if !a.is_nil() && !b.is_nil() {
                    return Err(format!(
                        "incompatible types for comparison: {} and {}",
                        a.type_name(),
                        b.type_name()
                    ));
                }
                false
            }
            (a, b) => other_equal(a, b)?,
        };
        if equal {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Nils, and what is neither a number nor a text.
fn other_equal(a: &Value, b: &Value) -> Result<bool, String> {
    let same_kind = a.kind() == b.kind() || a.is_nil() || b.is_nil();
    if !same_kind {
        return Err(format!(
            "non-comparable types {}: {}, {}: {}",
            show(a),
            a.type_name(),
            b.type_name(),
            show(b)
        ));
    }
    let nil = |value: &Value| match value {
        Value::Nil => true,
        Value::List(list) => list.is_nil(),
        _ => false,
    };
    if nil(a) || nil(b) {
        return Ok(nil(a) == nil(b));
    }
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.kind() != Kind::Map => {
            Ok(a.type_name() == b.type_name() && a.equals(&**b))
        }
        _ => Err(format!("non-comparable type {}: {}", show(b), b.type_name())),
    }
}

/// Is the first less than the second?
pub(super) fn lt(given: &[Value]) -> Result<bool, String> {
    const BAD: &str = "invalid type for comparison";
    let [a, b] = given else { return Err("missing argument for comparison".into()) };
    if basic(a) == Basic::Other || basic(b) == Basic::Other {
        return Err(BAD.into());
    }
    match (a, b) {
        (Value::Int(_, a), Value::Int(_, b)) => Ok(a < b),
        (Value::Uint(_, a), Value::Uint(_, b)) => Ok(a < b),
        (Value::Int(_, a), Value::Uint(_, b)) => Ok(u64::try_from(*a).map_or(true, |a| a < *b)),
        (Value::Uint(_, a), Value::Int(_, b)) => Ok(u64::try_from(*b).is_ok_and(|b| *a < b)),
        (Value::Float(a), Value::Float(b)) => Ok(a < b),
        (Value::Str(a), Value::Str(b)) => Ok(a < b),
        (a, b) if basic(a) == basic(b) => Err(BAD.into()),
        (a, b) => Err(format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name())),
    }
}

/// Is it less or equal?
pub(super) fn le(given: &[Value]) -> Result<bool, String> {
    Ok(lt(given)? || eq(given)?)
}

/// `reflect.DeepEqual`
#[allow(clippy::float_cmp)]
pub(super) fn deep_equal(a: &Value, b: &Value, depth: usize) -> bool {
    if depth > 200 {
        return false;
    }
    match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(s, a), Value::Int(t, b)) => s == t && a == b,
        (Value::Uint(s, a), Value::Uint(t, b)) => s == t && a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            a.elem() == b.elem()
                && a.is_nil() == b.is_nil()
                && a.len() == b.len()
                && (a.same(b) || a.items().iter().zip(b.items()).all(|(a, b)| deep_equal(a, b, depth + 1)))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.map_type() == b.map_type()
                && a.len() == b.len()
                && (a.same(b)
                    || a.entries().iter().all(|(key, value)| {
                        b.get(key).is_some_and(|other| deep_equal(value, &other, depth + 1))
                    }))
        }
        (Value::Object(a), Value::Object(b)) => a.type_name() == b.type_name() && a.equals(&**b),
        _ => false,
    }
}
