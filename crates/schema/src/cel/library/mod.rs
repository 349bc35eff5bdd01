//! The functions of expressions: CEL's own, its extensions, and Kubernetes' libraries. A table per theme, with what each
//! takes and gives.

pub(super) mod authorizer;
mod convert;
mod formats;
pub(super) mod jsonpatch;
mod lists;
pub(super) mod net;
mod operators;
mod optional;
pub(super) mod print;
mod quantity;
pub(super) mod regex;
pub(super) mod semver;
mod strings;
pub(super) mod time;
pub(super) mod url;

use super::value::{Meter, Outcome, Value};

/// What a function does with its values; a receiver is the first of them.
pub(super) type Run = for<'a> fn(&mut Meter, &[Value<'a>]) -> Outcome<'a>;

/// A function's name, its signatures, and what it does.
pub(super) struct Row(pub &'static str, pub &'static str, pub Run);

/// All functions.
pub(super) const FUNCTIONS: &[&[Row]] = &[
    operators::ROWS,
    convert::ROWS,
    strings::ROWS,
    lists::ROWS,
    regex::ROWS,
    time::ROWS,
    optional::ROWS,
    net::ROWS,
    url::ROWS,
    quantity::ROWS,
    semver::ROWS,
    formats::ROWS,
    authorizer::ROWS,
    jsonpatch::ROWS,
];
