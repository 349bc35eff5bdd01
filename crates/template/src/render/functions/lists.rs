//! Sprig's functions on lists.

use super::cast::int;
use super::compare::deep_equal;
use super::strings::{string, strings};
use super::{Context, Row, any, integer};
use crate::render::exec::Run;
use crate::value::{Elem, Kind, List, Value};

pub(super) const ROWS: &[Row] = &[
    ("list", "a*>l", |_, given| Ok(Value::list(given.to_vec()))),
    ("tuple", "a*>l", |_, given| Ok(Value::list(given.to_vec()))),
    ("append", "aa>l", push),
    ("push", "aa>l", push),
    ("mustAppend", "aa>l", push),
    ("mustPush", "aa>l", push),
    ("prepend", "aa>l", prepend),
    ("mustPrepend", "aa>l", prepend),
    ("first", "a>a", first),
    ("mustFirst", "a>a", first),
    ("last", "a>a", last),
    ("mustLast", "a>a", last),
    ("rest", "a>l", rest),
    ("mustRest", "a>l", rest),
    ("initial", "a>l", initial),
    ("mustInitial", "a>l", initial),
    ("reverse", "a>l", reverse),
    ("mustReverse", "a>l", reverse),
    ("compact", "a>l", compact),
    ("mustCompact", "a>l", compact),
    ("uniq", "a>l", uniq),
    ("mustUniq", "a>l", uniq),
    ("without", "aa*>l", without),
    ("mustWithout", "aa*>l", without),
    ("has", "aa>b", has),
    ("mustHas", "aa>b", has),
    ("slice", "aa*>a", slice),
    ("mustSlice", "aa*>a", slice),
    ("concat", "a*>a", concat),
    ("chunk", "ia>x", chunk),
    ("mustChunk", "ia>x", chunk),
    ("sortAlpha", "a>L", |_, given| {
        let value = any(given, 0);
        if elements(&value).is_none() {
            return Ok(Value::strings([string(&value)]));
        }
        let mut all = strings(&value);
        all.sort();
        Ok(Value::strings(all))
    }),
];

/// The elements of what is a slice.
pub(super) fn elements(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::List(list) => Some(list.items().to_vec()),
        Value::Bytes(bytes) => Some(
            bytes.iter().map(|byte| Value::Uint(crate::value::UintType::Uint8, u64::from(*byte))).collect(),
        ),
        Value::Object(object) if object.kind() == Kind::Slice => {
            Some(object.entries().into_iter().map(|(_, value)| value).collect())
        }
        _ => None,
    }
}

fn given_list(context: &Context<'_>, value: &Value, refused: &str) -> Run<Vec<Value>> {
    if value.is_nil() {
        // `reflect.TypeOf(nil).Kind()` is what Go calls here.
        return Err("runtime error: invalid memory address or nil pointer dereference".into());
    }
    match elements(value) {
        Some(items) => {
            context.engine.make(items.len().saturating_mul(std::mem::size_of::<Value>()))?;
            Ok(items)
        }
        None => Err(format!("{refused} {}", value.kind().name()).into()),
    }
}

fn push(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let mut items = given_list(context, &given[0], "Cannot push on type")?;
    items.push(any(given, 1));
    Ok(Value::list(items))
}

fn prepend(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let mut items = given_list(context, &given[0], "Cannot prepend on type")?;
    items.insert(0, any(given, 1));
    Ok(Value::list(items))
}

fn first(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    Ok(given_list(context, &given[0], "Cannot find first on type")?.into_iter().next().unwrap_or(Value::Nil))
}

fn last(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    Ok(given_list(context, &given[0], "Cannot find last on type")?.pop().unwrap_or(Value::Nil))
}

fn rest(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let mut items = given_list(context, &given[0], "Cannot find rest on type")?;
    if items.is_empty() {
        return Ok(Value::List(List::nil(Elem::Any)));
    }
    items.remove(0);
    Ok(Value::list(items))
}

fn initial(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let mut items = given_list(context, &given[0], "Cannot find initial on type")?;
    if items.pop().is_none() {
        return Ok(Value::List(List::nil(Elem::Any)));
    }
    Ok(Value::list(items))
}

fn reverse(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let mut items = given_list(context, &given[0], "Cannot find reverse on type")?;
    items.reverse();
    Ok(Value::list(items))
}

fn compact(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let mut items = given_list(context, &given[0], "Cannot compact on type")?;
    items.retain(|item| !super::types::is_empty(item));
    Ok(Value::list(items))
}

fn uniq(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for item in given_list(context, &given[0], "Cannot find uniq on type")? {
        context.engine.step(0)?;
        if !kept.iter().any(|other| deep_equal(other, &item, 0)) {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn without(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let mut items = given_list(context, &given[0], "Cannot find without on type")?;
    items.retain(|item| !given[1..].iter().any(|omitted| deep_equal(omitted, item, 0)));
    Ok(Value::list(items))
}

fn has(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    if given[1].is_nil() {
        return Ok(Value::Bool(false));
    }
    let items = given_list(context, &given[1], "Cannot find has on type")?;
    Ok(Value::Bool(items.iter().any(|item| deep_equal(&given[0], item, 0))))
}

fn slice(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let items = given_list(context, &given[0], "list should be type of slice or array but")?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let start = given.get(1).map_or(0, int);
    let end = given.get(2).map_or(length, int);
    let capacity = match &given[0] {
        Value::List(list) => list.capacity(),
        _ => items.len(),
    };
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(from), Ok(to)) if from <= to && to <= capacity => Ok(match &given[0] {
            Value::List(list) => Value::List(list.part(from, to)),
            Value::Bytes(bytes) => Value::Bytes(bytes[from..to].into()),
            _ => Value::list(items[from..to].to_vec()),
        }),
        _ => Err("reflect.Value.Slice: slice index out of bounds".into()),
    }
}

fn concat(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let mut all = Vec::new();
    for list in given {
        if !list.is_nil() && elements(list).is_none() {
            return Err(format!("Cannot concat type {} as list", list.kind().name()).into());
        }
        all.append(&mut given_list(context, list, "")?);
    }
    Ok(if all.is_empty() { Value::List(List::nil(Elem::Any)) } else { Value::list(all) })
}

fn chunk(context: &Context<'_>, given: &[Value]) -> Run<Value> {
    let items = given_list(context, &given[1], "Cannot chunk type")?;
    let size = integer(given, 0);
    let make = |parts: Vec<Value>| Ok(Value::List(List::new(Elem::List, parts)));
    if items.is_empty() && size > 0 {
        return make(Vec::new());
    }
    match usize::try_from(size) {
        Ok(size) if size > 0 => make(items.chunks(size).map(|part| Value::list(part.to_vec())).collect()),
        Ok(_) => Err("runtime error: makeslice: len out of range".into()),
        Err(_) if items.len() <= 1 => make(Vec::new()),
        Err(_) => make(Vec::new()),
    }
}
