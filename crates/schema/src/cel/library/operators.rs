//! Operators: arithmetic that fails where it overflows, comparison, membership and indices.

use super::super::equal::{compare, equal};
use super::super::evaluate::contains;
use super::super::value::{Failure, Key, Meter, Outcome, Value};
use super::{Row, time};
use std::cmp::Ordering;
use std::rc::Rc;

const ORDERED: &str = "(bool, bool) bool | (int, int) bool | (int, double) bool | (int, uint) bool | (uint, uint) bool | \
                       (uint, double) bool | (uint, int) bool | (double, double) bool | (double, int) bool | \
                       (double, uint) bool | (string, string) bool | (bytes, bytes) bool | \
                       (timestamp, timestamp) bool | (duration, duration) bool";

pub(super) const ROWS: &[Row] = &[
    Row("_?_:_", "(bool, A, A) A", |_, _| Err(Failure::no_such_overload())),
    Row("!_", "(bool) bool", |meter, values| {
        meter.charge(1)?;
        match values {
            [Value::Bool(truth)] => Ok(Value::Bool(!truth)),
            _ => Err(Failure::no_such_overload()),
        }
    }),
    Row("-_", "(double) double | (int) int", |meter, values| {
        meter.charge(1)?;
        match values {
            [Value::Int(number)] => number.checked_neg().map(Value::Int).ok_or_else(|| overflow("integer")),
            [Value::Double(number)] => Ok(Value::Double(-number)),
            _ => Err(Failure::no_such_overload()),
        }
    }),
    Row("_==_", "(A, A) bool", |meter, values| same(meter, values).map(Value::Bool)),
    Row("_!=_", "(A, A) bool", |meter, values| same(meter, values).map(|same| Value::Bool(!same))),
    Row("_<_", ORDERED, |meter, values| ordered(meter, values, Ordering::is_lt)),
    Row("_<=_", ORDERED, |meter, values| ordered(meter, values, Ordering::is_le)),
    Row("_>_", ORDERED, |meter, values| ordered(meter, values, Ordering::is_gt)),
    Row("_>=_", ORDERED, |meter, values| ordered(meter, values, Ordering::is_ge)),
    Row(
        "_+_",
        "(bytes, bytes) bytes | (double, double) double | (duration, duration) duration | \
         (duration, timestamp) timestamp | (timestamp, duration) timestamp | (int, int) int | \
         (list(A), list(A)) list(A) | (string, string) string | (uint, uint) uint",
        add,
    ),
    Row(
        "_-_",
        "(double, double) double | (duration, duration) duration | (int, int) int | \
         (timestamp, duration) timestamp | (timestamp, timestamp) duration | (uint, uint) uint",
        subtract,
    ),
    Row("_*_", "(double, double) double | (int, int) int | (uint, uint) uint", multiply),
    Row("_/_", "(double, double) double | (int, int) int | (uint, uint) uint", divide),
    Row("_%_", "(int, int) int | (uint, uint) uint", modulo),
    Row("@in", "(A, list(A)) bool | (A, map(A, B)) bool", |meter, values| match values {
        [value, container] => {
            let size =
                if matches!(container, Value::List(_) | Value::Items(_)) { container.size() } else { 1 };
            meter.charge(size as u64)?;
            contains(value, container, meter).map(Value::Bool)
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row(
        "_[_]",
        "(list(A), int) A | (map(A, B), A) B | (optional(list(A)), int) optional(A) | \
         (optional(map(A, B)), A) optional(B)",
        |meter, values| {
            meter.charge(1)?;
            let (container, key, optional) = unwrap(values)?;
            match (container, optional) {
                (None, _) => Ok(Value::Optional(None)),
                (Some(container), true) => Ok(Value::Optional(index(&container, key)?.ok().map(Rc::new))),
                (Some(container), false) => index(&container, key)?,
            }
        },
    ),
    Row(
        "_[?_]",
        "(list(A), int) optional(A) | (map(A, B), A) optional(B) | (optional(list(A)), int) optional(A) | \
         (optional(map(A, B)), A) optional(B)",
        |meter, values| {
            meter.charge(1)?;
            let (container, key, _) = unwrap(values)?;
            match container {
                None => Ok(Value::Optional(None)),
                Some(container) => Ok(Value::Optional(index(&container, key)?.ok().map(Rc::new))),
            }
        },
    ),
    Row(
        "size",
        "(bytes) int | .(bytes) int | (list(A)) int | .(list(A)) int | (map(A, B)) int | .(map(A, B)) int | \
         (string) int | .(string) int",
        |meter, values| {
            meter.charge(1)?;
            let size = match values {
                [Value::String(text)] => {
                    meter.work(text.len() as u64 / 16)?;
                    text.chars().count()
                }
                [Value::Object(object)] => object.size(meter)?,
                [value @ (Value::Bytes(_) | Value::List(_) | Value::Items(_) | Value::Map(_))] => {
                    value.size()
                }
                _ => return Err(Failure::no_such_overload()),
            };
            Ok(Value::Int(size as i64))
        },
    ),
];

fn overflow(what: &str) -> Failure {
    Failure::new(format!("{what} overflow"))
}

fn same(meter: &mut Meter, values: &[Value<'_>]) -> Result<bool, Failure> {
    let [one, other] = values else { return Err(Failure::no_such_overload()) };
    meter.traverse(one.size().min(other.size()))?;
    equal(one, other, meter)
}

fn ordered<'a>(meter: &mut Meter, values: &[Value<'a>], fits: fn(Ordering) -> bool) -> Outcome<'a> {
    let [one, other] = values else { return Err(Failure::no_such_overload()) };
    meter.traverse(one.size().min(other.size()))?;
    match compare(one, other)? {
        Some(order) => Ok(Value::Bool(fits(order))),
        None => Err(Failure::new("NaN values cannot be ordered")),
    }
}

pub(super) fn add<'a>(meter: &mut Meter, values: &[Value<'a>]) -> Outcome<'a> {
    let [one, other] = values else { return Err(Failure::no_such_overload()) };
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            meter.traverse(one.len() + other.len())?;
            Ok(Value::text(format!("{}{}", &**one, &**other)))
        }
        (Value::Bytes(one), Value::Bytes(other)) => {
            meter.traverse(one.len() + other.len())?;
            Ok(Value::Bytes([&**one, &**other].concat().into()))
        }
        (Value::List(_) | Value::Items(_), Value::List(_) | Value::Items(_)) => join(meter, one, other),
        _ => {
            meter.charge(1)?;
            sum(one, other)
        }
    }
}

fn sum<'a>(one: &Value<'a>, other: &Value<'a>) -> Outcome<'a> {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => {
            one.checked_add(*other).map(Value::Int).ok_or_else(|| overflow("integer"))
        }
        (Value::Uint(one), Value::Uint(other)) => {
            one.checked_add(*other).map(Value::Uint).ok_or_else(|| overflow("unsigned integer"))
        }
        (Value::Double(one), Value::Double(other)) => Ok(Value::Double(one + other)),
        (Value::Duration(one), Value::Duration(other)) => {
            one.checked_add(*other).map(Value::Duration).ok_or_else(|| overflow("duration"))
        }
        (Value::Timestamp(time), Value::Duration(by)) | (Value::Duration(by), Value::Timestamp(time)) => {
            time::shift(*time, i128::from(*by)).map(Value::Timestamp)
        }
        _ => Err(Failure::no_such_overload()),
    }
}

/// Lists joined; a set takes what it has not, and a list of type map replaces what has the same keys.
fn join<'a>(meter: &mut Meter, one: &Value<'a>, other: &Value<'a>) -> Outcome<'a> {
    meter.charge(1)?;
    meter.work((one.size() + other.size()) as u64)?;
    let mut joined = (*one.items(meter)?).clone();
    let added = other.items(meter)?;
    match (one, other) {
        (Value::Items(mine), _) if mine.is_set() => {
            let mut known: std::collections::BTreeSet<_> = joined.iter().filter_map(Key::of).collect();
            joined.extend(
                added.iter().filter(|item| Key::of(item).is_none_or(|key| known.insert(key))).cloned(),
            );
        }
        (Value::Items(mine), Value::Items(theirs)) if mine.keys().is_some() => {
            let keys = mine.keys().unwrap_or_default();
            let places: std::collections::BTreeMap<_, _> = mine
                .list
                .iter()
                .enumerate()
                .map(|(place, item)| (super::super::data::item_key(item, keys), place))
                .collect();
            for (item, json) in added.iter().zip(theirs.list) {
                match places.get(&super::super::data::item_key(json, keys)) {
                    Some(place) => joined[*place] = item.clone(),
                    None => joined.push(item.clone()),
                }
            }
        }
        _ => joined.extend(added.iter().cloned()),
    }
    Ok(Value::list(joined))
}

fn subtract<'a>(meter: &mut Meter, values: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Int(one), Value::Int(other)] => {
            one.checked_sub(*other).map(Value::Int).ok_or_else(|| overflow("integer"))
        }
        [Value::Uint(one), Value::Uint(other)] => {
            one.checked_sub(*other).map(Value::Uint).ok_or_else(|| overflow("unsigned integer"))
        }
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(one - other)),
        [Value::Duration(one), Value::Duration(other)] => {
            one.checked_sub(*other).map(Value::Duration).ok_or_else(|| overflow("duration"))
        }
        [Value::Timestamp(one), Value::Duration(by)] => {
            time::shift(*one, -i128::from(*by)).map(Value::Timestamp)
        }
        [Value::Timestamp(one), Value::Timestamp(other)] => {
            let between = one.as_nanosecond() - other.as_nanosecond();
            i64::try_from(between).map(Value::Duration).map_err(|_| overflow("timestamp"))
        }
        _ => Err(Failure::no_such_overload()),
    }
}

fn multiply<'a>(meter: &mut Meter, values: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Int(one), Value::Int(other)] => {
            one.checked_mul(*other).map(Value::Int).ok_or_else(|| overflow("integer"))
        }
        [Value::Uint(one), Value::Uint(other)] => {
            one.checked_mul(*other).map(Value::Uint).ok_or_else(|| overflow("unsigned integer"))
        }
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(one * other)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn divide<'a>(meter: &mut Meter, values: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Failure::new("division by zero"))
        }
        [Value::Int(one), Value::Int(other)] => {
            one.checked_div(*other).map(Value::Int).ok_or_else(|| overflow("integer"))
        }
        [Value::Uint(one), Value::Uint(other)] => Ok(Value::Uint(one / other)),
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(one / other)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn modulo<'a>(meter: &mut Meter, values: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Failure::new("modulus by zero"))
        }
        [Value::Int(one), Value::Int(other)] => {
            one.checked_rem(*other).map(Value::Int).ok_or_else(|| overflow("integer"))
        }
        [Value::Uint(one), Value::Uint(other)] => Ok(Value::Uint(one % other)),
        _ => Err(Failure::no_such_overload()),
    }
}

/// The container, without the optional around it; the key; and whether there was one.
fn unwrap<'v, 'a>(values: &'v [Value<'a>]) -> Result<(Option<Value<'a>>, &'v Value<'a>, bool), Failure> {
    match values {
        [Value::Optional(None), key] => Ok((None, key, true)),
        [Value::Optional(Some(inner)), key] => Ok((Some((**inner).clone()), key, true)),
        [container, key] => Ok((Some(container.clone()), key, false)),
        _ => Err(Failure::no_such_overload()),
    }
}

/// What is at the place. The outer error is of the types, the inner one of the place.
fn index<'a>(container: &Value<'a>, key: &Value<'a>) -> Result<Outcome<'a>, Failure> {
    let shown = |key: &Value<'_>| super::print::shown(key);
    match container {
        Value::List(_) | Value::Items(_) => {
            let place = match key {
                Value::Int(place) => *place,
                Value::Uint(place) => i64::try_from(*place).unwrap_or(i64::MAX),
                Value::Double(place) if place.fract() == 0.0 => *place as i64,
                _ => return Err(Failure::no_such_overload()),
            };
            let found = usize::try_from(place).ok().filter(|place| *place < container.size());
            Ok(match (found, container) {
                (Some(found), Value::Items(items)) => return Ok(items.get(found)),
                (Some(found), Value::List(items)) => Ok(items[found].clone()),
                _ => Err(Failure::new(format!("index out of bounds: {place}"))),
            })
        }
        Value::Map(entries) => {
            let found = Key::of(key).and_then(|key| entries.get(&key).cloned());
            Ok(found.ok_or_else(|| Failure::new(format!("no such key: {}", shown(key)))))
        }
        Value::Object(object) => match key {
            Value::String(name) => {
                let found = object.find(name)?;
                Ok(found.ok_or_else(|| Failure::new(format!("no such key: {}", shown(key)))))
            }
            _ => Err(Failure::no_such_overload()),
        },
        _ => Err(Failure::no_such_overload()),
    }
}
