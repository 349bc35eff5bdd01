//! Optional values.

use super::super::value::{Failure, Value};
use super::Row;

pub(super) const ROWS: &[Row] = &[
    Row("optional.of", "(A) optional(A)", |meter, values| {
        meter.charge(1)?;
        values.first().cloned().map(Value::some).ok_or_else(Failure::no_such_overload)
    }),
    Row("optional.ofNonZeroValue", "(A) optional(A)", |meter, values| {
        meter.charge(1)?;
        let value = values.first().cloned().ok_or_else(Failure::no_such_overload)?;
        Ok(if is_zero(&value) { Value::Optional(None) } else { value.some() })
    }),
    Row("optional.none", "() optional(A)", |meter, _| {
        meter.charge(1)?;
        Ok(Value::Optional(None))
    }),
    Row("optional.unwrap", "(list(optional(A))) list(A)", |meter, values| match values {
        [list] => {
            let items = list.items(meter)?;
            meter.charge(items.len() as u64)?;
            let kept = items.iter().filter_map(|item| match item {
                Value::Optional(Some(value)) => Some((**value).clone()),
                _ => None,
            });
            Ok(Value::list(kept.collect()))
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row("value", ".(optional(A)) A", |meter, values| {
        meter.charge(1)?;
        match values {
            [Value::Optional(Some(value))] => Ok((**value).clone()),
            [Value::Optional(None)] => Err(Failure::new("optional.none() dereference")),
            _ => Err(Failure::no_such_overload()),
        }
    }),
    Row("hasValue", ".(optional(A)) bool", |meter, values| {
        meter.charge(1)?;
        match values {
            [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
            _ => Err(Failure::no_such_overload()),
        }
    }),
    // Both are evaluated where they are called: the second is asked for only if there is need.
    Row("or", ".(optional(A), optional(A)) optional(A)", |_, _| Err(Failure::no_such_overload())),
    Row("orValue", ".(optional(A), A) A", |_, _| Err(Failure::no_such_overload())),
];

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Int(number) => *number == 0,
        Value::Uint(number) => *number == 0,
        Value::Double(number) => *number == 0.0,
        Value::Duration(nanoseconds) => *nanoseconds == 0,
        Value::String(_)
        | Value::Bytes(_)
        | Value::List(_)
        | Value::Items(_)
        | Value::Map(_)
        | Value::Object(_) => value.size() == 0,
        Value::Optional(inner) => inner.is_none(),
        _ => false,
    }
}
