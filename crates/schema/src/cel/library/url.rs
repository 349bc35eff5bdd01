//! URLs, absolute or with an absolute path.

use super::super::value::{Entries, Failure, Key, Meter, Outcome, Text, Value};
use super::Row;
use crate::formats::net::is_request_uri;
use std::rc::Rc;

/// The parts of an address, as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

pub(super) const ROWS: &[Row] = &[
    Row("url", "(string) url", |meter, values| match values {
        [Value::String(text)] => {
            meter.traverse(text.len())?;
            parse(text).map(|url| Value::Url(Rc::new(url))).ok_or_else(|| {
                let why = format!("parse {}: invalid URI for request", crate::go::quote(text));
                Failure::new(format!("URL parse error during conversion from string: {why}"))
            })
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row("isURL", "(string) bool", |meter, values| match values {
        [Value::String(text)] => {
            meter.traverse(text.len())?;
            Ok(Value::Bool(parse(text).is_some()))
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row("getScheme", ".(url) string", |meter, values| of(meter, values, |url| url.scheme.clone())),
    Row("getHost", ".(url) string", |meter, values| of(meter, values, |url| url.host.clone())),
    Row("getHostname", ".(url) string", |meter, values| of(meter, values, |url| url.name_and_port().0)),
    Row("getPort", ".(url) string", |meter, values| of(meter, values, |url| url.name_and_port().1)),
    Row("getEscapedPath", ".(url) string", |meter, values| of(meter, values, |url| url.path.clone())),
    Row("getQuery", ".(url) map(string, list(string))", |meter, values| match values {
        [Value::Url(url)] => {
            meter.charge(1)?;
            meter.work(url.query.len() as u64 * 4)?;
            Ok(Value::Map(Rc::new(query(&url.query))))
        }
        _ => Err(Failure::no_such_overload()),
    }),
];

fn of<'a>(meter: &mut Meter, values: &[Value<'a>], read: fn(&Url) -> String) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Url(url)] => Ok(Value::text(read(url))),
        _ => Err(Failure::no_such_overload()),
    }
}

fn parse(text: &str) -> Option<Url> {
    if !is_request_uri(text) {
        return None;
    }
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if !text.starts_with('/') && !scheme.contains(['/', '?']) => {
            (scheme.to_ascii_lowercase(), rest)
        }
        _ => (String::new(), text),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    // Without a scheme two slashes begin a path like any other.
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) if !scheme.is_empty() => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        _ => ("", rest),
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // What follows the scheme without a slash is opaque, and no path.
    let path = if path.starts_with('/') || path.is_empty() { path } else { "" };
    Some(Url { scheme, host: host.to_owned(), path: path.to_owned(), query: query.to_owned() })
}

impl Url {
    fn name_and_port(&self) -> (String, String) {
        if let Some((name, rest)) = self.host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            return (name.to_owned(), rest.strip_prefix(':').unwrap_or_default().to_owned());
        }
        let (name, port) = self.host.rsplit_once(':').unwrap_or((&self.host, ""));
        (name.to_owned(), port.to_owned())
    }
}

fn query<'a>(text: &str) -> Entries<'a> {
    let mut all: std::collections::BTreeMap<String, Vec<Value<'a>>> = std::collections::BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Some(name), Some(value)) = (unescape(name), unescape(value)) {
            all.entry(name).or_default().push(Value::text(value));
        }
    }
    let owned = |name: String| Key::String(Text::Owned(name.into()));
    all.into_iter().map(|(name, values)| (owned(name), Value::list(values))).collect()
}

fn unescape(text: &str) -> Option<String> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'+' => b' ',
            b'%' => {
                let digit = |octet: Option<u8>| char::from(octet?).to_digit(16);
                u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&octets).into_owned())
}
