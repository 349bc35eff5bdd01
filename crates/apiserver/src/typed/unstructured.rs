//! What a patched object goes through before it is of its type again: more is let through than from JSON, and what is not
//! is told in other words.

use super::{Structs, Type};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

/// Makes the numbers in `value` fit the struct `definition`, or says what does not fit it.
pub(crate) fn fit(structs: &Structs, definition: &str, value: &mut Value) -> Result<(), String> {
    fit_as(structs, &Type::Struct(definition.to_owned()), value)
}

fn fit_as(structs: &Structs, kind: &Type, value: &mut Value) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    match (kind, value) {
        (Type::Pointer(inner), value) => fit_as(structs, inner, value),
        (Type::Text(_), Value::String(_))
        | (Type::Bool(_), Value::Bool(_))
        | (Type::Float(_), Value::Number(_))
        | (Type::Bytes, Value::String(_)) => Ok(()),
        (Type::Text(_), value @ Value::Number(_)) if !is_float(value) => Err(inconvertible(value, kind)),
        (Type::Int { bits, signed, .. }, Value::Number(number)) => {
            *number = wrap(number, *bits, *signed)
                .ok_or_else(|| inconvertible(&Value::Number(number.clone()), kind))?;
            Ok(())
        }
        (Type::Text(_) | Type::Bool(_) | Type::Int { .. } | Type::Float(_), _) => {
            Err(format!("unrecognized type: {}", kind.go_kind()))
        }
        (Type::List(inner), Value::Array(items)) => {
            items.iter_mut().try_for_each(|item| fit_as(structs, inner, item))
        }
        // Bytes may come as a list of numbers.
        (Type::Bytes, value @ Value::Array(_)) => {
            let byte = Type::Int { bits: 8, signed: false, name: None };
            let mut bytes = Vec::new();
            for item in value.as_array_mut().into_iter().flatten() {
                fit_as(structs, &byte, item)?;
                bytes.push(item.as_u64().and_then(|number| u8::try_from(number).ok()).unwrap_or(0));
            }
            *value = Value::String(STANDARD.encode(bytes));
            Ok(())
        }
        (Type::List(_) | Type::Bytes, other) => Err(format!("cannot restore slice from {}", kind_of(other))),
        (Type::Map(inner), Value::Object(entries)) => {
            entries.values_mut().try_for_each(|entry| fit_as(structs, inner, entry))
        }
        (Type::Map(_), other) => Err(format!("cannot restore map from {}", kind_of(other))),
        (Type::Struct(definition), Value::Object(object)) => {
            let Some(known) = structs.get(definition) else { return Ok(()) };
            // Both are in the order of names, and objects have few of the fields that there are.
            object.iter_mut().try_for_each(|(name, value)| match known.fields.get(name) {
                Some(field) => fit_as(structs, &field.kind, value),
                None => Ok(()),
            })
        }
        (Type::Struct(_), other) => Err(format!("cannot restore struct from: {}", kind_of(other))),
        // It reads itself, and so does not know where it is.
        (Type::IntOrString, value) => {
            let found = match value {
                Value::String(_) | Value::Null => return Ok(()),
                Value::Number(number) if number.as_i64().is_some_and(|it| i32::try_from(it).is_ok()) => {
                    return Ok(());
                }
                Value::Number(number) => format!("number {number}"),
                other => super::shape(other).to_owned(),
            };
            Err(format!("json: cannot unmarshal {found} into Go value of type int32"))
        }
        // These read themselves.
        _ => Ok(()),
    }
}

fn is_float(value: &Value) -> bool {
    value.is_f64()
}

/// Integers wrap, and floats that are whole become integers.
fn wrap(number: &Number, bits: u8, signed: bool) -> Option<Number> {
    let whole = match number.as_i64() {
        Some(whole) => whole,
        None => {
            let float = number.as_f64().filter(|float| float.trunc() == *float)?;
            // Saturates, where Go leaves it to the processor.
            float as i64
        }
    };
    let spare = 64 - u32::from(bits);
    Some(match signed {
        true => (whole << spare >> spare).into(),
        false => ((whole as u64) << spare >> spare).into(),
    })
}

fn inconvertible(value: &Value, kind: &Type) -> String {
    format!("cannot convert {} to {}", kind_of(value), kind.go_name())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::FACTS;
    use serde_json::json;

    fn fitted(mut value: Value) -> Result<Value, String> {
        fit(&FACTS.structs, "io.k8s.api.apps.v1.Deployment", &mut value).map(|()| value)
    }

    #[test]
    fn numbers_are_made_to_fit() {
        assert_eq!(
            fitted(json!({"spec": {"replicas": 99_999_999_999_i64}})),
            Ok(json!({"spec": {"replicas": 1_215_752_191}}))
        );
        assert_eq!(fitted(json!({"spec": {"replicas": 2.0}})), Ok(json!({"spec": {"replicas": 2}})));
    }

    #[test]
    fn what_does_not_fit_is_told_as_the_reference_tells_it() {
        for (value, why) in [
            (json!({"spec": {"replicas": "x"}}), "unrecognized type: int32"),
            (json!({"spec": {"replicas": 1.5}}), "cannot convert float64 to int32"),
            (json!({"spec": {"paused": 1}}), "unrecognized type: bool"),
            (json!({"spec": {"template": 5}}), "cannot restore struct from: int64"),
            (json!({"spec": {"template": {"spec": {"containers": 5}}}}), "cannot restore slice from int64"),
            (json!({"metadata": {"labels": {"a": 5}}}), "cannot convert int64 to string"),
            (json!({"metadata": {"labels": ["a"]}}), "cannot restore map from slice"),
            (json!({"spec": {"strategy": {"type": 5}}}), "cannot convert int64 to v1.DeploymentStrategyType"),
        ] {
            assert_eq!(fitted(value), Err(why.to_owned()));
        }
    }
}
