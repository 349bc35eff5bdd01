//! Sprig's functions on regular expressions.

use super::{Context, Row, integer, lossy};
use crate::render::exec::Run;
use crate::value::{Elem, List, Value};
use regex::Regex;

pub(super) const ROWS: &[Row] = &[
    ("regexMatch", "ss>b", |context, given| {
        Ok(Value::Bool(
            context.engine.pattern(&lossy(given, 0)).is_ok_and(|pattern| pattern.is_match(&lossy(given, 1))),
        ))
    }),
    ("mustRegexMatch", "ss>b", |context, given| {
        Ok(Value::Bool(context.engine.pattern(&lossy(given, 0))?.is_match(&lossy(given, 1))))
    }),
    ("regexFind", "ss>s", |context, given| find(&compiled(context, given)?, given)),
    ("mustRegexFind", "ss>s", |context, given| find(&must(context, given)?, given)),
    ("regexFindAll", "ssi>L", |context, given| find_all(&compiled(context, given)?, given)),
    ("mustRegexFindAll", "ssi>L", |context, given| find_all(&must(context, given)?, given)),
    ("regexReplaceAll", "sss>s", |context, given| replace(context, &compiled(context, given)?, given, false)),
    ("mustRegexReplaceAll", "sss>s", |context, given| replace(context, &must(context, given)?, given, false)),
    ("regexReplaceAllLiteral", "sss>s", |context, given| {
        replace(context, &compiled(context, given)?, given, true)
    }),
    ("mustRegexReplaceAllLiteral", "sss>s", |context, given| {
        replace(context, &must(context, given)?, given, true)
    }),
    ("regexSplit", "ssi>L", |context, given| split(&compiled(context, given)?, given)),
    ("mustRegexSplit", "ssi>L", |context, given| split(&must(context, given)?, given)),
    ("regexQuoteMeta", "s>s", |_, given| {
        let mut out = String::new();
        for c in lossy(given, 0).chars() {
            if r"\.+*?()|[]{}^$".contains(c) {
                out.push('\\');
            }
            out.push(c);
        }
        Ok(out.into())
    }),
];

/// As `regexp.MustCompile`, whose panic names the pattern.
fn compiled(context: &Context<'_>, given: &[Value]) -> Run<Regex> {
    let pattern = lossy(given, 0);
    context.engine.pattern(&pattern).map_err(|error| {
        let quoted = if pattern.contains('`') {
            crate::go::quote::quote(pattern.as_bytes())
        } else {
            format!("`{pattern}`")
        };
        format!("regexp: Compile({quoted}): {error}").into()
    })
}

fn must(context: &Context<'_>, given: &[Value]) -> Run<Regex> {
    Ok(context.engine.pattern(&lossy(given, 0))?)
}

fn find(pattern: &Regex, given: &[Value]) -> Run<Value> {
    Ok(pattern.find(&lossy(given, 1)).map_or("", |found| found.as_str()).into())
}

/// The places of all matches. Go has no empty match right behind another match, and neither has Rust.
fn places(pattern: &Regex, text: &str, most: i64) -> Vec<std::ops::Range<usize>> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    pattern.find_iter(text).take(most).map(|found| found.range()).collect()
}

fn find_all(pattern: &Regex, given: &[Value]) -> Run<Value> {
    let text = lossy(given, 1);
    let found = places(pattern, &text, integer(given, 2));
    if found.is_empty() {
        return Ok(Value::List(List::nil(Elem::Str)));
    }
    Ok(Value::strings(found.into_iter().map(|place| &text[place])))
}

fn replace(context: &Context<'_>, pattern: &Regex, given: &[Value], literal: bool) -> Run<Value> {
    let (text, with) = (lossy(given, 1), lossy(given, 2));
    let mut out = String::new();
    let mut end = 0;
    for found in pattern.captures_iter(&text) {
        let Some(place) = found.get(0).map(|whole| whole.range()) else { continue };
        out.push_str(&text[end..place.start]);
        end = place.end;
        let before = out.len();
        if literal {
            out.push_str(&with);
        } else {
            found.expand(&with, &mut out);
        }
        context.engine.make(out.len() - before)?;
    }
    out.push_str(&text[end..]);
    Ok(out.into())
}

/// `Regexp.Split`
fn split(pattern: &Regex, given: &[Value]) -> Run<Value> {
    let (text, most) = (lossy(given, 1), integer(given, 2));
    if most == 0 {
        return Ok(Value::List(List::nil(Elem::Str)));
    }
    if !lossy(given, 0).is_empty() && text.is_empty() {
        return Ok(Value::strings([""]));
    }
    let mut parts = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for place in places(pattern, &text, most) {
        if most > 0 && i64::try_from(parts.len()).unwrap_or(i64::MAX) == most - 1 {
            break;
        }
        end = place.start;
        if place.end != 0 {
            parts.push(&text[begin..end]);
        }
        begin = place.end;
    }
    if end != text.len() {
        parts.push(&text[begin..]);
    }
    Ok(Value::strings(parts))
}
