//! Semantic versions such as `1.2.3-rc.1+build`.

use super::super::value::{Failure, Meter, Outcome, Value};
use super::Row;
use std::cmp::Ordering;
use std::rc::Rc;

/// A version: three numbers, and what was before its release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    before: Vec<Identifier>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    // Numbers come before words.
    Number(u64),
    Word(String),
}

const COMPARED: &str = ".(quantity, quantity) bool | .(semver, semver) bool";

pub(super) const ROWS: &[Row] = &[
    Row("semver", "(string) semver | (string, bool) semver", |meter, values| {
        let (text, loosely) = given(meter, values)?;
        let parsed = if loosely { Semver::parse_loosely(text) } else { Semver::parse(text) };
        parsed.map(|version| Value::Semver(Rc::new(version))).map_err(Failure::new)
    }),
    Row("isSemver", "(string) bool | (string, bool) bool", |meter, values| {
        let (text, loosely) = given(meter, values)?;
        let parsed = if loosely { Semver::parse_loosely(text) } else { Semver::parse(text) };
        Ok(Value::Bool(parsed.is_ok()))
    }),
    Row("isGreaterThan", COMPARED, |meter, values| Ok(Value::Bool(compared(meter, values)?.is_gt()))),
    Row("isLessThan", COMPARED, |meter, values| Ok(Value::Bool(compared(meter, values)?.is_lt()))),
    Row("compareTo", ".(quantity, quantity) int | .(semver, semver) int", |meter, values| {
        Ok(Value::Int(compared(meter, values)? as i64))
    }),
    Row("major", ".(semver) int", |meter, values| number(meter, values, 0)),
    Row("minor", ".(semver) int", |meter, values| number(meter, values, 1)),
    Row("patch", ".(semver) int", |meter, values| number(meter, values, 2)),
];

fn given<'v>(meter: &mut Meter, values: &'v [Value<'_>]) -> Result<(&'v str, bool), Failure> {
    let (text, loosely) = match values {
        [Value::String(text)] => (text, false),
        [Value::String(text), Value::Bool(loosely)] => (text, *loosely),
        _ => return Err(Failure::no_such_overload()),
    };
    meter.traverse(text.len())?;
    Ok((text, loosely))
}

fn compared(meter: &mut Meter, values: &[Value<'_>]) -> Result<Ordering, Failure> {
    meter.charge(1)?;
    match values {
        [Value::Quantity(one), Value::Quantity(other)] => Ok(one.cmp(other)),
        [Value::Semver(one), Value::Semver(other)] => Ok(one.compare(other)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn number<'a>(meter: &mut Meter, values: &[Value<'a>], place: usize) -> Outcome<'a> {
    meter.charge(1)?;
    match values {
        [Value::Semver(version)] => Ok(Value::Int(version.numbers[place] as i64)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn only(text: &str, fits: fn(u8) -> bool) -> bool {
    text.bytes().all(fits)
}

fn is_word(text: &str) -> bool {
    only(text, |byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl Semver {
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.before.is_empty(), other.before.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.before.cmp(&other.before),
            }
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts.as_slice() else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (*rest, None),
        };
        let (patch, before) = match rest.split_once('-') {
            Some((patch, before)) => (patch, Some(before)),
            None => (rest, None),
        };
        let mut numbers = [0; 3];
        for (number, (name, text)) in
            numbers.iter_mut().zip([("Major", *major), ("Minor", *minor), ("Patch", patch)])
        {
            if text.is_empty() || !only(text, |byte| byte.is_ascii_digit()) {
                let name = name.to_lowercase();
                return Err(format!(
                    "Invalid character(s) found in {name} number {}",
                    crate::go::quote(text)
                ));
            }
            if text.len() > 1 && text.starts_with('0') {
                return Err(format!(
                    "{name} number must not contain leading zeroes {}",
                    crate::go::quote(text)
                ));
            }
            *number = text.parse().map_err(|_| "value out of range".to_owned())?;
        }
        let before = before.map_or(Ok(Vec::new()), |before| before.split('.').map(identifier).collect())?;
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_word(part) {
                return Err(format!(
                    "Invalid character(s) found in build meta data {}",
                    crate::go::quote(part)
                ));
            }
        }
        Ok(Self { numbers, before })
    }

    /// `v1.02` is `1.2.0`.
    fn parse_loosely(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text
            .splitn(3, '.')
            .map(|part| {
                let short = part.trim_start_matches('0');
                match part.len() > 1 {
                    true if short.starts_with(|c: char| c.is_ascii_digit()) => short.to_owned(),
                    true => format!("0{short}"),
                    false => part.to_owned(),
                }
            })
            .collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
        Self::parse(&parts.join("."))
    }
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if only(text, |byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            let quoted = crate::go::quote(text);
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {quoted}"));
        }
        return text.parse().map(Identifier::Number).map_err(|_| "value out of range".to_owned());
    }
    if is_word(text) {
        return Ok(Identifier::Word(text.to_owned()));
    }
    Err(format!("Invalid character(s) found in prerelease {}", crate::go::quote(text)))
}
