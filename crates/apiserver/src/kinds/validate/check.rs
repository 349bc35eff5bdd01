//! What a single field can be asked.

use super::invalid;
use crate::kinds::resources::quantity;
use serde_json::{Map, Value};
use std::net::IpAddr;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::names;

/// One question.
pub(super) enum Check {
    /// It must be there, and not empty; with a reason.
    Required(&'static str),
    /// If it is there, it is one of these.
    OneOf(&'static [&'static str]),
    /// Each item is one of these.
    EachOneOf(&'static [&'static str]),
    /// Not below zero.
    NotNegative,
    /// Between these, if it is there.
    Range(i64, i64),
    /// Between these, and zero if it is not there.
    Number(i64, i64),
    /// Above zero, if it is there; with the words for it.
    Positive(&'static str),
    /// A number or the name of a port.
    Port,
    /// What names of some kind look like; what is empty is not asked.
    Named(fn(&str) -> Vec<String>),
    /// The same, and asked even if it is empty.
    MustBe(fn(&str) -> Vec<String>),
    /// The same of each item.
    Each(fn(&str) -> Vec<String>),
    /// Labels: keys and values.
    Labels,
    /// A mode of a file.
    Mode,
    /// An amount that is not below zero.
    Amount,
}

impl Check {
    pub(super) fn judge(&self, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
        let text = value.as_str().unwrap_or_default();
        match self {
            Self::Required(why) => {
                if is_empty(value) {
                    errors.push(FieldError::required(path, *why));
                }
            }
            Self::OneOf(known) => {
                if !value.is_null() && !known.contains(&text) {
                    errors.push(FieldError::not_supported(path, text, known));
                }
            }
            Self::EachOneOf(known) => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    let text = item.as_str().unwrap_or_default();
                    if !known.contains(&text) {
                        errors.push(FieldError::not_supported(&path.index(index), text, known));
                    }
                }
            }
            Self::NotNegative => {
                if let Some(number) = value.as_i64().filter(|number| *number < 0) {
                    errors.push(FieldError::invalid(path, number, NEGATIVE));
                }
            }
            Self::Range(least, most) => {
                if let Some(number) = value.as_i64().filter(|number| !(*least..=*most).contains(number)) {
                    errors.push(FieldError::invalid(path, number, between(*least, *most)));
                }
            }
            Self::Number(least, most) => {
                let number = value.as_i64().unwrap_or(0);
                if !(*least..=*most).contains(&number) {
                    errors.push(FieldError::invalid(path, number, between(*least, *most)));
                }
            }
            Self::Positive(why) => {
                if let Some(number) = value.as_i64().filter(|number| *number <= 0) {
                    errors.push(FieldError::invalid(path, number, *why));
                }
            }
            Self::Port => port(value, path, errors),
            Self::Named(rule) => {
                if !text.is_empty() {
                    invalid(errors, path, text, rule(text));
                }
            }
            Self::MustBe(rule) => invalid(errors, path, text, rule(text)),
            Self::Each(rule) => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    let text = item.as_str().unwrap_or_default();
                    invalid(errors, &path.index(index), text, rule(text));
                }
            }
            Self::Labels => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let value = value.as_str().unwrap_or_default();
                    invalid(errors, path, key.as_str(), names::qualified(key));
                    invalid(errors, path, value, names::label_value(value));
                }
            }
            Self::Mode => {
                if let Some(mode) = value.as_i64().filter(|mode| !(0..=0o777).contains(mode)) {
                    let why = "must be a number between 0 and 0777 (octal), both inclusive";
                    errors.push(FieldError::invalid(path, mode, why));
                }
            }
            Self::Amount => {
                if quantity(value).is_some_and(|quantity| quantity.is_negative()) {
                    errors.push(FieldError::invalid(path, value.clone(), NEGATIVE));
                }
            }
        }
    }
}

pub(super) const NEGATIVE: &str = "must be greater than or equal to 0";

pub(super) fn between(least: i64, most: i64) -> String {
    format!("must be between {least} and {most}, inclusive")
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// A port by number or by name.
pub(super) fn port(value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    match value {
        Value::String(name) => invalid(errors, path, name.as_str(), port_name(name)),
        other => Check::Number(1, 65535).judge(other, path, errors),
    }
}

/// The names of ports.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 15 {
        wrong.push("must be no more than 15 characters".to_owned());
    }
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        || name.is_empty()
    {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// Addresses of either family.
pub(super) fn address(text: &str) -> Vec<String> {
    match text.parse::<IpAddr>() {
        Ok(_) => Vec::new(),
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    }
}

/// Addresses that something outside the machine can have.
pub(super) fn outer_address(text: &str) -> Vec<String> {
    let Ok(address) = text.parse::<IpAddr>() else { return self::address(text) };
    let address = address.to_canonical();
    let mut wrong = Vec::new();
    let mut say = |when: bool, what: &str| {
        if when {
            wrong.push(what.to_owned());
        }
    };
    say(address.is_unspecified(), &format!("may not be unspecified ({text})"));
    say(address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    let (local, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] == 0xff02),
    };
    say(local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    say(multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    wrong
}

/// Networks of either family.
pub(super) fn network(text: &str) -> Vec<String> {
    let parsed = text.split_once('/').and_then(|(address, bits)| {
        let address: IpAddr = address.parse().ok()?;
        let bits: u8 = bits.parse().ok()?;
        (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some(())
    });
    match parsed {
        Some(()) => Vec::new(),
        None => vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()],
    }
}

/// `example.com/name`.
pub(super) fn domain_path(text: &str) -> Vec<String> {
    let Some((domain, path)) =
        text.split_once('/').filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        return vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()];
    };
    let mut wrong = names::subdomain(domain);
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:%".contains(&byte);
    if !path.bytes().all(is_path) {
        wrong.push(
            "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')".to_owned(),
        );
    }
    wrong
}

/// Names of drivers of storage.
pub(super) fn driver(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 bytes".to_owned());
    }
    wrong.extend(names::subdomain(&text.to_lowercase()));
    wrong
}

/// A percentage, or nothing to object to in a number.
pub(super) fn percentage(value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    match value {
        Value::String(text) if !is_percent(text) => {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                       regex used for validation is '[0-9]+%')";
            errors.push(FieldError::invalid(path, text.as_str(), why));
        }
        Value::Number(_) => Check::NotNegative.judge(value, path, errors),
        _ => {}
    }
}

/// Not more than all.
pub(super) fn not_above_all(value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(text) = value.as_str().filter(|text| is_percent(text))
        && text.trim_end_matches('%').parse::<u32>().map_or(true, |share| share > 100)
    {
        errors.push(FieldError::invalid(path, text, "must not be greater than 100%"));
    }
}

fn is_percent(text: &str) -> bool {
    let digits = text.strip_suffix('%').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// A path within something else.
pub(super) fn relative(text: &str, path: &Path, errors: &mut Vec<FieldError>) {
    if text.starts_with('/') {
        errors.push(FieldError::invalid(path, text, "must be a relative path"));
    }
    no_way_back(text, path, errors);
}

/// A path that does not go back.
pub(super) fn no_way_back(text: &str, path: &Path, errors: &mut Vec<FieldError>) {
    if text.split('/').any(|step| step == "..") {
        errors.push(FieldError::invalid(path, text, "must not contain '..'"));
    }
}

/// A struct as Go shows it: these fields in this order, those that are not there as null.
pub(super) fn in_go(object: &Map<String, Value>, fields: &[(&str, &str)]) -> String {
    let shown = fields.iter().map(|(go, field)| {
        let value = object.get(*field).map_or_else(|| "null".to_owned(), ToString::to_string);
        format!("\"{go}\":{value}")
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}
