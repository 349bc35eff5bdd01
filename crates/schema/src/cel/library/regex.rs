//! Regular expressions. One that is a constant is compiled once.

use super::super::value::{Failure, Meter, Outcome, Text, Value};
use super::Row;
use crate::pattern::{self, Pattern};
use ::regex::Regex;
use std::sync::OnceLock;

pub(super) const ROWS: &[Row] = &[
    Row("matches", "(string, string) bool | .(string, string) bool", |meter, values| {
        run(meter, "matches", values, None)
    }),
    Row("find", ".(string, string) string", |meter, values| run(meter, "find", values, None)),
    Row(
        "findAll",
        ".(string, string) list(string) | .(string, string, int) list(string)",
        |meter, values| run(meter, "findAll", values, None),
    ),
];

/// Has the function a regular expression as its second value?
pub(in super::super) fn takes(function: &str) -> bool {
    matches!(function, "matches" | "find" | "findAll")
}

pub(in super::super) fn run<'a>(
    meter: &mut Meter,
    function: &str,
    values: &[Value<'a>],
    constant: Option<&OnceLock<Pattern>>,
) -> Outcome<'a> {
    let [Value::String(text), Value::String(source), rest @ ..] = values else {
        return Err(Failure::no_such_overload());
    };
    let length = (text.len() as u64 + 1).div_ceil(10);
    meter.charge(length.saturating_mul((source.len() as u64).div_ceil(4)))?;
    meter.work(text.len() as u64 / 4)?;
    let compiled;
    let pattern = match constant {
        Some(constant) => constant.get_or_init(|| pattern::compile(source)),
        None => {
            // To compile one takes far longer than to use it.
            meter.work(1000 + source.len() as u64 * 100)?;
            compiled = pattern::compile(source);
            &compiled
        }
    };
    match pattern {
        Pattern::Compiled(regex) => apply(meter, function, regex, text, rest),
        Pattern::Broken(why) => Err(Failure::new(why.clone())),
    }
}

fn apply<'a>(
    meter: &mut Meter,
    function: &str,
    regex: &Regex,
    text: &str,
    rest: &[Value<'a>],
) -> Outcome<'a> {
    match (function, rest) {
        ("matches", []) => Ok(Value::Bool(regex.is_match(text))),
        ("find", []) => Ok(Value::text(regex.find(text).map_or("", |found| found.as_str()))),
        ("findAll", [] | [Value::Int(_)]) => {
            let most = match rest {
                [Value::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let mut found = Vec::new();
            for part in regex.find_iter(text).take(most) {
                // The search for each may look through all that is left.
                meter.work(1 + (text.len() - part.end()) as u64 / 4)?;
                found.push(Value::String(Text::Owned(part.as_str().into())));
            }
            Ok(Value::list(found))
        }
        _ => Err(Failure::no_such_overload()),
    }
}
