//! Keys as JSON pointers have them. Only expressions that make patches know it.

use super::super::value::{Failure, Value};
use super::Row;

/// What it is called.
pub(in super::super) const ESCAPE_KEY: &str = "jsonpatch.escapeKey";

pub(super) const ROWS: &[Row] = &[Row(ESCAPE_KEY, "(string) string", |meter, values| match values {
    [Value::String(key)] => {
        meter.charge(1)?;
        meter.work(key.len() as u64)?;
        Ok(Value::text(key.replace('~', "~0").replace('/', "~1")))
    }
    _ => Err(Failure::no_such_overload()),
})];
