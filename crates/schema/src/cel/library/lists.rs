//! Lists and sets.

use super::super::equal::{compare, equal};
use super::super::evaluate::contains;
use super::super::value::{Failure, Key, Meter, Outcome, Value};
use super::{Row, operators};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::rc::Rc;

const COMPARED: &str = ".(list(int)) bool | .(list(uint)) bool | .(list(double)) bool | .(list(bool)) bool | \
                        .(list(duration)) bool | .(list(timestamp)) bool | .(list(string)) bool | .(list(bytes)) bool";
const CHOSEN: &str = ".(list(int)) int | .(list(uint)) uint | .(list(double)) double | .(list(bool)) bool | \
                      .(list(duration)) duration | .(list(timestamp)) timestamp | .(list(string)) string | \
                      .(list(bytes)) bytes";
const SORTED: &str = ".(list(int)) list(int) | .(list(uint)) list(uint) | .(list(double)) list(double) | \
                      .(list(bool)) list(bool) | .(list(duration)) list(duration) | \
                      .(list(timestamp)) list(timestamp) | .(list(string)) list(string) | .(list(bytes)) list(bytes)";

pub(super) const ROWS: &[Row] = &[
    Row("isSorted", COMPARED, |meter, values| {
        let items = items(meter, values)?;
        for pair in items.windows(2) {
            if compare(&pair[0], &pair[1])? == Some(Ordering::Greater) {
                return Ok(Value::Bool(false));
            }
        }
        Ok(Value::Bool(true))
    }),
    Row(
        "sum",
        ".(list(int)) int | .(list(uint)) uint | .(list(double)) double | .(list(duration)) duration",
        |meter, values| {
            let items = items(meter, values)?;
            let Some((first, rest)) = items.split_first() else { return Ok(Value::Int(0)) };
            let mut total = first.clone();
            for item in rest {
                total = operators::add(meter, &[total, item.clone()])?;
            }
            Ok(total)
        },
    ),
    Row("min", CHOSEN, |meter, values| choose(meter, values, "min", Ordering::Greater)),
    Row("max", CHOSEN, |meter, values| choose(meter, values, "max", Ordering::Less)),
    Row("sort", SORTED, |meter, values| {
        let mut items = (*items(meter, values)?).clone();
        meter.charge(items.len() as u64)?;
        let mut failed = None;
        items.sort_by(|one, other| match compare(one, other) {
            Ok(order) => order.unwrap_or(Ordering::Equal),
            Err(failure) => {
                failed.get_or_insert(failure);
                Ordering::Equal
            }
        });
        failed.map_or(Ok(Value::list(items)), Err)
    }),
    Row("slice", ".(list(A), int, int) list(A)", |meter, values| match values {
        [list, Value::Int(from), Value::Int(to)] => slice(meter, list, *from, *to),
        _ => Err(Failure::no_such_overload()),
    }),
    Row("flatten", ".(list(list(A))) list(A) | .(list(dyn), int) list(dyn)", |meter, values| {
        let (list, depth) = match values {
            [list] => (list, 1),
            [list, Value::Int(depth)] => (list, *depth),
            _ => return Err(Failure::no_such_overload()),
        };
        if depth < 0 {
            return Err(Failure::new("level must be non-negative"));
        }
        let mut flat = Vec::new();
        flatten(meter, list, depth, &mut flat)?;
        Ok(Value::list(flat))
    }),
    Row("lists.range", "(int) list(int)", |meter, values| match values {
        [Value::Int(end)] => {
            meter.charge(u64::try_from(*end).unwrap_or(0))?;
            Ok(Value::list((0..*end).map(Value::Int).collect()))
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row("distinct", ".(list(A)) list(A)", |meter, values| {
        let items = items(meter, values)?;
        let mut known = BTreeSet::new();
        let mut kept: Vec<Value<'_>> = Vec::new();
        for item in items.iter() {
            match Key::of(item) {
                Some(key) => {
                    if known.insert(key) {
                        kept.push(item.clone());
                    }
                }
                None => {
                    let mut seen = false;
                    for other in &kept {
                        seen = seen || equal(other, item, meter)?;
                    }
                    if !seen {
                        kept.push(item.clone());
                    }
                }
            }
        }
        Ok(Value::list(kept))
    }),
    Row("reverse", ".(list(A)) list(A)", |meter, values| {
        Ok(Value::list(items(meter, values)?.iter().rev().cloned().collect()))
    }),
    Row("first", ".(list(A)) optional(A)", |meter, values| {
        Ok(Value::Optional(items(meter, values)?.first().cloned().map(Rc::new)))
    }),
    Row("last", ".(list(A)) optional(A)", |meter, values| {
        Ok(Value::Optional(items(meter, values)?.last().cloned().map(Rc::new)))
    }),
    Row("sets.contains", "(list(A), list(A)) bool", |meter, values| match values {
        [one, other] => Ok(Value::Bool(within(meter, other, one)?)),
        _ => Err(Failure::no_such_overload()),
    }),
    Row("sets.equivalent", "(list(A), list(A)) bool", |meter, values| match values {
        [one, other] => Ok(Value::Bool(within(meter, other, one)? && within(meter, one, other)?)),
        _ => Err(Failure::no_such_overload()),
    }),
    Row("sets.intersects", "(list(A), list(A)) bool", |meter, values| match values {
        [one, other] => {
            meter.charge((one.size() as u64).saturating_mul(other.size() as u64))?;
            for item in one.items(meter)?.iter() {
                if contains(item, other, meter)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        _ => Err(Failure::no_such_overload()),
    }),
];

fn items<'a>(meter: &mut Meter, values: &[Value<'a>]) -> Result<Rc<Vec<Value<'a>>>, Failure> {
    let [list] = values else { return Err(Failure::no_such_overload()) };
    let items = list.items(meter)?;
    meter.charge(items.len() as u64)?;
    Ok(items)
}

fn choose<'a>(meter: &mut Meter, values: &[Value<'a>], name: &str, worse: Ordering) -> Outcome<'a> {
    let items = items(meter, values)?;
    let mut chosen: Option<&Value<'a>> = None;
    for item in items.iter() {
        chosen = match chosen {
            Some(before) if compare(before, item)? != Some(worse) => Some(before),
            _ => Some(item),
        };
    }
    chosen.cloned().ok_or_else(|| Failure::new(format!("{name} called on empty list")))
}

fn slice<'a>(meter: &mut Meter, list: &Value<'a>, from: i64, to: i64) -> Outcome<'a> {
    let items = list.items(meter)?;
    let length = items.len();
    let wrong = |why: String| Err(Failure::new(why));
    if from < 0 || to < 0 {
        return wrong(format!("cannot slice({from}, {to}), negative indexes not supported"));
    }
    if from > to {
        return wrong(format!(
            "cannot slice({from}, {to}), start index must be less than or equal to end index"
        ));
    }
    let (start, end) =
        (usize::try_from(from).unwrap_or(usize::MAX), usize::try_from(to).unwrap_or(usize::MAX));
    match items.get(start..end) {
        Some(part) => {
            meter.charge(part.len() as u64)?;
            Ok(Value::list(part.to_vec()))
        }
        None => wrong(format!("cannot slice({from}, {to}), list is length {length}")),
    }
}

fn flatten<'a>(
    meter: &mut Meter,
    list: &Value<'a>,
    depth: i64,
    flat: &mut Vec<Value<'a>>,
) -> Result<(), Failure> {
    for item in list.items(meter)?.iter() {
        meter.charge(1)?;
        match item {
            // Lists nest no deeper than the expression or the data that made them.
            Value::List(_) | Value::Items(_) if depth > 0 => flatten(meter, item, depth - 1, flat)?,
            other => flat.push(other.clone()),
        }
    }
    Ok(())
}

/// Is each of the first in the second?
fn within<'a>(meter: &mut Meter, one: &Value<'a>, other: &Value<'a>) -> Result<bool, Failure> {
    meter.charge((one.size() as u64).saturating_mul(other.size() as u64))?;
    for item in one.items(meter)?.iter() {
        if !contains(item, other, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}
