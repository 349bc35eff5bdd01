//! Named formats, and the errors of strings that do not match.

use super::super::value::{Failure, Value};
use super::Row;
use crate::formats::matches;
use crate::names::{self, NameRule};

type Check = fn(&str) -> Vec<String>;

/// A format's name, and the check.
const FORMATS: [(&str, Check); 13] = [
    ("dns1123Label", names::label),
    ("dns1123Subdomain", names::subdomain),
    ("dns1035Label", names::label_1035),
    ("qualifiedName", names::qualified),
    ("dns1123LabelPrefix", |text| NameRule::Label.check_prefix(text)),
    ("dns1123SubdomainPrefix", |text| NameRule::Subdomain.check_prefix(text)),
    ("dns1035LabelPrefix", |text| NameRule::Label1035.check_prefix(text)),
    ("labelValue", names::label_value),
    ("uri", |text| {
        let why = || format!("parse {}: invalid URI for request", crate::go::quote(text));
        wrong(matches("uri", text), &why())
    }),
    ("uuid", |text| wrong(matches("uuid", text), "does not match the UUID format")),
    ("byte", |text| wrong(matches("byte", text), "invalid base64")),
    ("date", |text| wrong(matches("date", text), "invalid date")),
    ("datetime", |text| wrong(matches("datetime", text), "invalid datetime")),
];

fn wrong(fits: bool, why: &str) -> Vec<String> {
    if fits { Vec::new() } else { vec![why.to_owned()] }
}

/// A function that gives one format.
macro_rules! constant {
    ($function:literal, $name:literal) => {
        Row($function, "() format", |meter, _| {
            meter.charge(1)?;
            Ok(Value::Format($name))
        })
    };
}

pub(super) const ROWS: &[Row] = &[
    constant!("format.dns1123Label", "dns1123Label"),
    constant!("format.dns1123Subdomain", "dns1123Subdomain"),
    constant!("format.dns1035Label", "dns1035Label"),
    constant!("format.qualifiedName", "qualifiedName"),
    constant!("format.dns1123LabelPrefix", "dns1123LabelPrefix"),
    constant!("format.dns1123SubdomainPrefix", "dns1123SubdomainPrefix"),
    constant!("format.dns1035LabelPrefix", "dns1035LabelPrefix"),
    constant!("format.labelValue", "labelValue"),
    constant!("format.uri", "uri"),
    constant!("format.uuid", "uuid"),
    constant!("format.byte", "byte"),
    constant!("format.date", "date"),
    constant!("format.datetime", "datetime"),
    Row("format.named", "(string) optional(format)", |meter, values| match values {
        [Value::String(name)] => {
            meter.charge(1)?;
            let known = FORMATS.iter().find(|(known, _)| *known == &**name);
            Ok(known.map_or(Value::Optional(None), |(name, _)| Value::Format(name).some()))
        }
        _ => Err(Failure::no_such_overload()),
    }),
    Row("validate", ".(format, string) optional(list(string))", |meter, values| match values {
        [Value::Format(name), Value::String(text)] => {
            meter.traverse(text.len().saturating_mul(4))?;
            let found = FORMATS.iter().find(|(known, _)| known == name).map(|(_, check)| check(text));
            let found = found.unwrap_or_default();
            Ok(match found.is_empty() {
                true => Value::Optional(None),
                false => Value::list(found.into_iter().map(Value::text).collect()).some(),
            })
        }
        _ => Err(Failure::no_such_overload()),
    }),
];
