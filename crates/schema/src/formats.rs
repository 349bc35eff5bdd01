//! The formats of strings that CRDs may ask for; all others are ignored, as Kubernetes does.

pub(crate) mod duration;
pub(crate) mod net;

pub use duration::go as go_duration;

use crate::names;
use crate::pattern::{self, Pattern};
use crate::schema::{Schema, Type};
use jiff::civil::Date;
use std::sync::LazyLock;

/// One format: its name without dashes, and the check.
type Format = (&'static str, fn(&str) -> bool);

const STRING_FORMATS: &[Format] = &[
    ("bsonobjectid", |text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())),
    ("byte", is_base64),
    ("cidr", net::is_cidr),
    ("creditcard", is_credit_card),
    ("date", is_date),
    ("datetime", is_date_time),
    ("duration", |text| duration::any(text).is_some()),
    ("email", net::is_email),
    ("hexcolor", |text| HEX_COLOR.matches(text)),
    ("hostname", is_hostname),
    ("ipv4", |text| text.contains('.') && net::is_ip(text, true)),
    ("ipv6", |text| text.contains(':') && net::is_ip(text, false)),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("k8slongname", |text| names::subdomain(text).is_empty()),
    ("k8sshortname", |text| names::label(text).is_empty()),
    ("mac", net::is_mac),
    ("password", |_| true),
    ("rgbcolor", |text| RGB_COLOR.matches(text)),
    ("ssn", |text| text.len() == 11 && SSN.matches(text)),
    ("uri", net::is_request_uri),
    ("uuid", |text| UUID.matches(text)),
    ("uuid3", |text| UUID3.matches(text)),
    ("uuid4", |text| UUID4.matches(text)),
    ("uuid5", |text| UUID5.matches(text)),
];

/// The schema's format, if its type knows it.
pub(crate) fn known(schema: &Schema) -> Option<&str> {
    let format = schema.format.as_deref().filter(|format| !format.is_empty())?;
    let known = match schema.kind.filter(|_| !schema.int_or_string) {
        None | Some(Type::String) => of_strings(format),
        Some(Type::Integer) => matches!(format, "int32" | "int64"),
        Some(Type::Number) => matches!(format, "float" | "double"),
        Some(_) => false,
    };
    (known || schema.any_format).then_some(format)
}

fn find(format: &str) -> Option<&'static Format> {
    let name = format.replace('-', "");
    STRING_FORMATS.iter().find(|(known, _)| *known == name)
}

/// Does the format say anything about strings?
pub(crate) fn of_strings(format: &str) -> bool {
    find(format).is_some()
}

/// Has the text the format? A format that nobody knows fits everything.
pub fn matches(format: &str, text: &str) -> bool {
    find(format).is_none_or(|(_, check)| check(text))
}

struct Expression(LazyLock<Pattern>);

impl Expression {
    fn matches(&self, text: &str) -> bool {
        match &*self.0 {
            Pattern::Compiled(regex) => regex.is_match(text),
            Pattern::Broken(_) => false,
        }
    }
}

macro_rules! expressions {
    ($($name:ident = $source:expr;)*) => {
        $(static $name: Expression = Expression(LazyLock::new(|| pattern::compile($source)));)*
    };
}

expressions! {
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$";
    SSN = r"^\d{3}[- ]?\d{2}[- ]?\d{4}$";
    UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    CREDIT_CARD = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$";
    TIME = "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    HOSTNAME = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
}

/// Padded base64; not the empty string.
fn is_base64(text: &str) -> bool {
    let body = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

fn digits(text: &str, kept: impl Fn(u8) -> bool) -> Vec<u8> {
    text.bytes().filter(|&byte| kept(byte)).collect()
}

fn is_credit_card(text: &str) -> bool {
    let digits = digits(text, |byte| byte.is_ascii_digit());
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(position, digit)| {
            let digit = u32::from(digit - b'0');
            if position % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
        })
        .sum();
    sum.is_multiple_of(10) && std::str::from_utf8(&digits).is_ok_and(|digits| CREDIT_CARD.matches(digits))
}

fn isbn_digits(text: &str) -> Vec<u8> {
    digits(text, |byte| !byte.is_ascii_whitespace() && byte != b'-')
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    if digits.len() != 10 {
        return false;
    }
    let mut sum = 0;
    for (position, digit) in digits.iter().enumerate() {
        let value = match digit {
            b'0'..=b'9' => u32::from(digit - b'0'),
            b'X' if position == 9 => 10,
            _ => return false,
        };
        sum += (position as u32 + 1) * value;
    }
    sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weighted = |(position, digit): (usize, &u8)| u32::from(digit - b'0') * [1, 3][position % 2];
    digits.iter().enumerate().map(weighted).sum::<u32>().is_multiple_of(10)
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(position, byte)| match position {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shaped {
        return false;
    }
    let (year, month, day) = (text[..4].parse(), text[5..7].parse(), text[8..].parse());
    matches!((year, month, day), (Ok(year), Ok(month), Ok(day)) if Date::new(year, month, day).is_ok())
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    parts.next().is_some_and(is_date) && parts.next().is_some_and(|time| TIME.matches(time))
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && HOSTNAME.matches(text) && text.split('.').all(|part| part.len() <= 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_what_go_accepts() {
        for (format, good, bad) in [
            ("date", vec!["2020-02-29"], vec!["", "2021-02-29", "2020-2-1", "x"]),
            (
                "date-time",
                vec!["2020-01-01T00:00:00Z", "2020-01-01t00:00:00.5+01:00"],
                vec!["2020-01-01", "2020-01-01T24:00:00Z", "2020-01-01T00:00:00"],
            ),
            (
                "duration",
                vec!["1h", "1.5h30m", "0", "2 weeks", "-1s", "22 ns"],
                vec!["", "x", "1", "1 x", "h"],
            ),
            ("ipv4", vec!["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"], vec!["", "1.2.3", "256.1.1.1", "::1"]),
            ("ipv6", vec!["::1", "fe80::1", "::ffff:1.2.3.4"], vec!["1.2.3.4", "::g", "fe80::1%eth0"]),
            (
                "cidr",
                vec!["10.0.0.0/8", "::/0", "010.0.0.0/8"],
                vec!["10.0.0.0", "10.0.0.0/33", "::/129", "x/1"],
            ),
            (
                "mac",
                vec!["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-ab"],
                vec!["", "01:23", "zz:23:45:67:89:ab"],
            ),
            (
                "uuid",
                vec!["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
                vec!["", "123"],
            ),
            ("byte", vec!["YQ==", "YWI=", "YWJj"], vec!["", "YQ", "Y===", "YQ==YQ=="]),
            ("email", vec!["a@b", "a.b@c.d", "N <a@b.c>", "\"x y\"@b"], vec!["", "a", "a@", "@b", "a b@c"]),
            ("hostname", vec!["a", "a.bc", "1a.example"], vec!["", "a..b", "-a", "a_b"]),
            ("uri", vec!["http://a/b", "/x", "mailto:a"], vec!["", "x", "a b", "http://a b/"]),
            ("isbn", vec!["0321751043", "978-0321751041"], vec!["", "0321751044"]),
            ("creditcard", vec!["4111 1111 1111 1111"], vec!["", "4111111111111112"]),
            ("ssn", vec!["111-11-1111"], vec!["111111111", ""]),
            ("hexcolor", vec!["#FFF", "ffffff"], vec!["#FF"]),
            ("rgbcolor", vec!["rgb(1, 2,3)"], vec!["rgb(256,1,1)"]),
            ("k8s-short-name", vec!["a-b"], vec!["a.b", "A"]),
            ("k8s-long-name", vec!["a.b"], vec!["A", ""]),
            ("bsonobjectid", vec!["507f1f77bcf86cd799439011"], vec!["507f"]),
            ("password", vec!["", "x"], vec![]),
            ("nobody-knows", vec!["", "x"], vec![]),
        ] {
            for text in good {
                assert!(matches(format, text), "{format} {text:?}");
            }
            for text in bad {
                assert!(!matches(format, text), "{format} {text:?}");
            }
        }
    }
}
