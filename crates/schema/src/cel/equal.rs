//! Equality and order of values.

use super::data::{by_key, item_key};
use super::value::{Failure, Key, Meter, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Are both the same? Numbers are compared across their types; what has other types is different.
pub(super) fn equal(one: &Value<'_>, other: &Value<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    meter.work(1)?;
    Ok(match (one, other) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::String(one), Value::String(other)) => {
            meter.work(one.len().min(other.len()) as u64 / 16)?;
            one == other
        }
        (Value::Bytes(one), Value::Bytes(other)) => one == other,
        (Value::Type(one), Value::Type(other)) => one == other,
        (Value::Ip(one), Value::Ip(other)) => one == other,
        (Value::Cidr(one), Value::Cidr(other)) => one == other,
        (Value::Url(one), Value::Url(other)) => one == other,
        (Value::Quantity(one), Value::Quantity(other)) => one == other,
        (Value::Semver(one), Value::Semver(other)) => one == other,
        (Value::Format(one), Value::Format(other)) => one == other,
        (Value::Unknown(one), Value::Unknown(other)) => {
            meter.work(one.to_string().len() as u64)?;
            one == other
        }
        (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Optional(Some(one)), Value::Optional(Some(other))) => equal(one, other, meter)?,
        (Value::List(_) | Value::Items(_), Value::List(_) | Value::Items(_)) => lists(one, other, meter)?,
        (Value::Map(_) | Value::Object(_), Value::Map(_) | Value::Object(_)) => maps(one, other, meter)?,
        (Value::Made(one), Value::Made(other)) => {
            if one.name != other.name || one.fields.len() != other.fields.len() {
                return Ok(false);
            }
            for (name, value) in &one.fields {
                match other.get(name) {
                    Some(other) if equal(value, other, meter)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        _ => compare(one, other).ok().flatten() == Some(Ordering::Equal),
    })
}

fn lists(one: &Value<'_>, other: &Value<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    if one.size() != other.size() {
        return Ok(false);
    }
    if let (Value::Items(one), Value::Items(other)) = (one, other)
        && let (Some(keys), Some(schema)) = (one.keys(), &one.schema.items)
    {
        meter.work(one.list.len() as u64 * 4)?;
        let known = by_key(one.list, keys);
        for item in other.list {
            let Some(found) = known.get(&item_key(item, keys)) else { return Ok(false) };
            let (found, item) = (super::data::value(found, schema)?, super::data::value(item, schema)?);
            if !equal(&found, &item, meter)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let set = matches!(one, Value::Items(items) if items.is_set());
    let (one, other) = (one.items(meter)?, other.items(meter)?);
    if set {
        let known: BTreeSet<Option<Key<'_>>> = one.iter().map(Key::of).collect();
        return Ok(!known.contains(&None) && other.iter().all(|item| known.contains(&Key::of(item))));
    }
    for (one, other) in one.iter().zip(other.iter()) {
        if !equal(one, other, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps(one: &Value<'_>, other: &Value<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    if one.size() != other.size() {
        return Ok(false);
    }
    if let (Value::Object(one), Value::Object(other)) = (one, other) {
        for (name, json) in one.fields {
            let Some(theirs) = other.fields.get(name) else { return Ok(false) };
            meter.work(1)?;
            let same = match (one.schema_of(name), other.schema_of(name)) {
                _ if json.is_null() || theirs.is_null() => json == theirs,
                (Some(schema), Some(theirs_schema)) => {
                    let ours = super::data::value(json, schema)?;
                    equal(&ours, &super::data::value(theirs, theirs_schema)?, meter)?
                }
                // A field that is not declared is compared as it is.
                _ => {
                    meter.work(64)?;
                    json == theirs
                }
            };
            if !same {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let (one, other) = (one.entries(meter)?, other.entries(meter)?);
    for (key, value) in one.iter() {
        let Some(theirs) = other.get(key) else { return Ok(false) };
        if !equal(value, theirs, meter)? {
            return Ok(false);
        }
    }
    Ok(one.len() == other.len())
}

/// Which comes first; none where a number is none. Values that have no order are an error.
pub(super) fn compare(one: &Value<'_>, other: &Value<'_>) -> Result<Option<Ordering>, Failure> {
    Ok(match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(other)),
        (Value::Uint(one), Value::Uint(other)) => Some(one.cmp(other)),
        (Value::Int(one), Value::Uint(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Value::Uint(one), Value::Int(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Value::Double(one), Value::Double(other)) => one.partial_cmp(other),
        (Value::Double(one), Value::Int(other)) => float_to(*one, (*other).into()),
        (Value::Double(one), Value::Uint(other)) => float_to(*one, (*other).into()),
        (Value::Int(one), Value::Double(other)) => float_to(*other, (*one).into()).map(Ordering::reverse),
        (Value::Uint(one), Value::Double(other)) => float_to(*other, (*one).into()).map(Ordering::reverse),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        (Value::Bytes(one), Value::Bytes(other)) => Some(one.cmp(other)),
        (Value::Timestamp(one), Value::Timestamp(other)) => Some(one.cmp(other)),
        (Value::Duration(one), Value::Duration(other)) => Some(one.cmp(other)),
        _ => return Err(Failure::no_such_overload()),
    })
}

/// A float beside a whole number, exactly.
fn float_to(float: f64, whole: i128) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.abs() >= 1e30 {
        return Some(if float > 0.0 { Ordering::Greater } else { Ordering::Less });
    }
    let floor = float.floor();
    let order = (floor as i128).cmp(&whole);
    Some(if order == Ordering::Equal && float > floor { Ordering::Greater } else { order })
}
