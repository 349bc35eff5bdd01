//! Simple paths into a schema, such as `.spec.list['a.b']`: `fieldPath` of rules, and `selectableFields`.

use crate::schema::{Additional, Schema};

/// Where a path leads.
#[derive(Debug)]
pub struct Found<'a> {
    /// As errors write it.
    pub path: String,
    /// The schema there.
    pub schema: &'a Schema,
}

/// Why a path leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub String);

/// Follows a path, in which keys in brackets may be allowed.
///
/// # Errors
/// If it is no path, or no field is there.
pub fn find<'a>(path: &str, schema: &'a Schema, brackets: bool) -> Result<Found<'a>, Refused> {
    let refused = |why: &str| Refused(why.to_owned());
    let ended = || refused("unexpected end of JSON path");
    let tokens = tokens(path);
    let mut tokens = tokens.into_iter();
    let mut found = Found { path: String::new(), schema };
    while let Some(token) = tokens.next() {
        match token {
            "[" => {
                if !brackets {
                    return Err(refused("array notation is not allowed"));
                }
                let key = tokens.next().ok_or_else(ended)?;
                let quoted = key.len() >= 2 && key.starts_with('\'') && key.ends_with('\'');
                if !quoted {
                    return Err(Refused(format!("expected single quoted string but got {key}")));
                }
                found = found.enter(&unescape(&key[1..key.len() - 1])?)?;
                match tokens.next() {
                    None => return Err(ended()),
                    Some("]") => {}
                    Some(other) => return Err(Refused(format!("expected ] but got {other}"))),
                }
            }
            "." => found = found.enter(tokens.next().ok_or_else(ended)?)?,
            other => return Err(Refused(format!("expected [ or . but got: {other}"))),
        }
    }
    Ok(found)
}

/// Dots, brackets, and what is between them; quotes hide both.
fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => {
                let mut before = '\'';
                let close = rest.char_indices().skip(1).find(|(_, c)| {
                    let closes = *c == '\'' && before != '\\';
                    before = *c;
                    closes
                });
                close.map_or(rest.len(), |(at, _)| at + 1)
            }
            '.' | '[' | ']' => 1,
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, tail) = rest.split_at(length);
        tokens.push(token);
        rest = tail;
    }
    tokens
}

fn unescape(text: &str) -> Result<String, Refused> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        let Some(escaped) = characters.next() else {
            plain.push(c);
            break;
        };
        plain.push(match escaped {
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '\'' => '\'',
            '\\' => '\\',
            other => return Err(Refused(format!("invalid string literal: invalid escape char \\{other}"))),
        });
    }
    Ok(plain)
}

impl<'a> Found<'a> {
    fn enter(self, name: &str) -> Result<Found<'a>, Refused> {
        let nowhere = || Refused("does not refer to a valid field".to_owned());
        if !self.schema.properties.is_empty() {
            let schema = self.schema.properties.get(name).ok_or_else(nowhere)?;
            let dot = if self.path.is_empty() { "" } else { "." };
            return Ok(Found { path: format!("{}{dot}{name}", self.path), schema });
        }
        match &self.schema.additional {
            Some(Additional::Schema(schema)) => Ok(Found { path: format!("{}[{name}]", self.path), schema }),
            _ => Err(nowhere()),
        }
    }
}
