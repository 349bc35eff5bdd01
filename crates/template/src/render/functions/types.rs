//! Sprig's functions on types, defaults and emptiness.

use super::compare::deep_equal;
use super::{Row, any, lossy};
use crate::value::{Kind, Value};

pub(super) const ROWS: &[Row] = &[
    ("default", "aa*>a", |_, given| {
        Ok(match given.get(1) {
            Some(value) if !is_empty(value) => value.clone(),
            _ => any(given, 0),
        })
    }),
    ("empty", "a>b", |_, given| Ok(Value::Bool(is_empty(&any(given, 0))))),
    ("coalesce", "a*>a", |_, given| {
        Ok(given.iter().find(|value| !is_empty(value)).cloned().unwrap_or(Value::Nil))
    }),
    ("all", "a*>b", |_, given| Ok(Value::Bool(!given.iter().any(is_empty)))),
    ("any", "a*>b", |_, given| Ok(Value::Bool(given.iter().any(|value| !is_empty(value))))),
    ("typeOf", "a>s", |_, given| Ok(any(given, 0).type_name().into())),
    ("typeIs", "sa>b", |_, given| Ok(Value::Bool(any(given, 1).type_name() == lossy(given, 0)))),
    ("typeIsLike", "sa>b", |_, given| {
        let found = any(given, 1).type_name();
        Ok(Value::Bool(found == lossy(given, 0) || found.strip_prefix('*') == Some(&lossy(given, 0))))
    }),
    ("kindOf", "a>s", |_, given| Ok(any(given, 0).kind().name().into())),
    ("kindIs", "sa>b", |_, given| Ok(Value::Bool(any(given, 1).kind().name() == lossy(given, 0)))),
    ("deepEqual", "aa>b", |_, given| Ok(Value::Bool(deep_equal(&any(given, 0), &any(given, 1), 0)))),
];

/// Sprig's `empty`, which differs from `not` for no value that templates have.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(object) if object.kind() == Kind::Struct => false,
        value => !value.truth(),
    }
}
