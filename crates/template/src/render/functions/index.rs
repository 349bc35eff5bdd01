//! Go's functions that see how a value is held: `index`, and the slice of a collection.

use super::{Context, Reflect};
use crate::render::exec::{Held, Run};
use crate::value::{Elem, Kind, MapType, UintType, Value};

pub(super) const ROWS: &[(&str, &str, Reflect)] = &[("index", "rr*>r", index), ("slice", "rr*>r", slice)];

/// The place in something of that length.
pub(super) fn place(index: &Value, capacity: usize) -> Result<usize, String> {
    let at = match index {
        Value::Int(_, at) => *at,
        Value::Uint(_, at) => i64::try_from(*at).unwrap_or(-1),
        Value::Nil => return Err("cannot index slice/array with nil".into()),
        other => return Err(format!("cannot index slice/array with type {}", other.type_name())),
    };
    usize::try_from(at).ok().filter(|at| *at <= capacity).ok_or_else(|| format!("index out of range: {at}"))
}

fn index(_: &Context<'_>, arguments: &[Held]) -> Run<Held> {
    let Some((item, indexes)) = arguments.split_first() else { return Err("index of untyped nil".into()) };
    if item.value.is_nil() {
        return Err("index of untyped nil".into());
    }
    let mut item = item.clone();
    for index in indexes {
        let index = &index.value;
        if item.value.is_nil() {
            return Err("index of nil pointer".into());
        }
        let outside = || "reflect: slice index out of range".to_owned();
        item = match &item.value {
            Value::List(list) => {
                let at = place(index, list.len())?;
                let value = list.items().get(at).cloned().ok_or_else(outside)?;
                Held { value, interface: list.elem() == Elem::Any }
            }
            Value::Str(text) => {
                let at = place(index, text.len())?;
                let byte = text.get(at).ok_or("reflect: string index out of range")?;
                Held::plain(Value::Uint(UintType::Uint8, u64::from(*byte)))
            }
            Value::Bytes(bytes) => {
                let at = place(index, bytes.len())?;
                let byte = bytes.get(at).ok_or_else(outside)?;
                Held::plain(Value::Uint(UintType::Uint8, u64::from(*byte)))
            }
            Value::Map(map) => {
                let key = key(index)?;
                let interface = map.map_type() != MapType::Str;
                match map.get(&key) {
                    Some(value) => Held { value, interface },
                    None if interface => Held::interface(Value::Nil),
                    None => Held::plain("".into()),
                }
            }
            Value::Object(object) if object.kind() == Kind::Map => {
                let key = key(index)?;
                let found = object.entries().into_iter().find(|(name, _)| **name == *key);
                Held::plain(found.map_or_else(|| Value::Bytes([].into()), |(_, value)| value))
            }
            Value::Object(object) if object.kind() == Kind::Slice => {
                let entries = object.entries();
                let at = place(index, entries.len())?;
                Held::plain(entries.into_iter().nth(at).ok_or_else(outside)?.1)
            }
            other => {
                // What a pointer points to is what cannot be indexed.
                let name = other.type_name();
                return Err(format!("can't index item of type {}", name.trim_start_matches('*')).into());
            }
        };
    }
    Ok(item)
}

fn key(index: &Value) -> Result<crate::text::GoStr, String> {
    match index {
        Value::Str(key) => Ok(key.clone()),
        Value::Nil => Err("value is nil; should be of type string".into()),
        other => Err(format!("value has type {}; should be string", other.type_name())),
    }
}

/// Go's own `slice`. Sprig has one of the same name, for lists only, which replaces it.
fn slice(_: &Context<'_>, arguments: &[Held]) -> Run<Held> {
    let Some((item, indexes)) = arguments.split_first() else { return Err("slice of untyped nil".into()) };
    if item.value.is_nil() {
        return Err("slice of untyped nil".into());
    }
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()).into());
    }
    let (length, capacity) = match &item.value {
        Value::Str(_) if indexes.len() == 3 => return Err("cannot 3-index slice a string".into()),
        Value::Str(text) => (text.len(), text.len()),
        Value::List(list) => (list.len(), list.capacity()),
        Value::Bytes(bytes) => (bytes.len(), bytes.len()),
        other => return Err(format!("can't slice item of type {}", other.type_name()).into()),
    };
    let mut bounds = [0, length, capacity];
    for (at, index) in indexes.iter().enumerate() {
        bounds[at] = place(&index.value, capacity)?;
    }
    let [from, to, end] = bounds;
    if from > to {
        return Err(format!("invalid slice index: {from} > {to}").into());
    }
    if indexes.len() == 3 && to > end {
        return Err(format!("invalid slice index: {to} > {end}").into());
    }
    Ok(Held::plain(match &item.value {
        Value::Str(text) => Value::str(&text[from..to]),
        Value::Bytes(bytes) => Value::Bytes(bytes[from..to].into()),
        Value::List(list) => Value::List(list.part(from, to)),
        _ => Value::Nil,
    }))
}
