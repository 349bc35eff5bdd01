//! CEL's functions on resource quantities.

use super::super::value::{Failure, Meter, Outcome, Value};
use super::Row;
use crate::quantity::Quantity;
use std::cmp::Ordering;
use std::rc::Rc;

pub(super) const ROWS: &[Row] = &[
    Row("quantity", "(string) quantity", |meter, values| match values {
        [Value::String(text)] => {
            meter.traverse(text.len())?;
            text.parse().map(wrap).map_err(|why: crate::ParseQuantityError| Failure::new(why.to_string()))
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row("isQuantity", "(string) bool", |meter, values| match values {
        [Value::String(text)] => {
            meter.traverse(text.len())?;
            Ok(Value::Bool(text.parse::<Quantity>().is_ok()))
        }
        _ => Err(Failure::no_such_overload()),
    }),
    // Declared without a receiver, so that it is called as `sign(quantity)`.
    Row("sign", "(quantity) int", |meter, values| {
        of(meter, values, |quantity| {
            Ok(Value::Int(match quantity.sign() {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            }))
        })
    }),
    Row("isInteger", ".(quantity) bool", |meter, values| {
        of(meter, values, |quantity| Ok(Value::Bool(quantity.go_as_int64().is_some())))
    }),
    Row("asInteger", ".(quantity) int", |meter, values| {
        of(meter, values, |quantity| {
            let integer = quantity.go_as_int64().map(Value::Int);
            integer.ok_or_else(|| Failure::new("cannot convert value to integer"))
        })
    }),
    Row("asApproximateFloat", ".(quantity) double", |meter, values| {
        of(meter, values, |quantity| Ok(Value::Double(quantity.as_approximate_f64())))
    }),
    Row("add", ".(quantity, quantity) quantity | .(quantity, int) quantity", |meter, values| {
        combine(meter, values, |one, other| one + other)
    }),
    Row("sub", ".(quantity, quantity) quantity | .(quantity, int) quantity", |meter, values| {
        combine(meter, values, |one, other| one - other)
    }),
];

fn wrap<'a>(quantity: Quantity) -> Value<'a> {
    Value::Quantity(Rc::new(quantity))
}

fn of<'a>(meter: &mut Meter, values: &[Value<'a>], read: fn(&Quantity) -> Outcome<'static>) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Quantity(quantity)] => read(quantity),
        _ => Err(Failure::no_such_overload()),
    }
}

fn combine<'a>(
    meter: &mut Meter,
    values: &[Value<'a>],
    operate: fn(Quantity, &Quantity) -> Quantity,
) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Quantity(one), Value::Quantity(other)] => Ok(wrap(operate(one.as_ref().clone(), other))),
        [Value::Quantity(one), Value::Int(other)] => {
            Ok(wrap(operate(one.as_ref().clone(), &Quantity::from(*other))))
        }
        _ => Err(Failure::no_such_overload()),
    }
}
