//! Functions by their names, with what they take and give, read from a table of signatures.
//!
//! A signature is `(string, int) bool`, or `.(string, int) bool` where the first is a receiver. Capital letters stand for
//! any type; alternatives are separated by `|`.

use super::library::{FUNCTIONS, Row, Run};
use super::types::{self, Type};
use std::collections::HashMap;
use std::sync::LazyLock;

/// One way to call a function.
#[derive(Debug, Clone)]
pub(super) struct Overload {
    pub member: bool,
    pub takes: Vec<Type>,
    pub gives: Type,
    /// How many types in it are free.
    pub free: usize,
}

/// A function: how it may be called, and what it does.
pub(super) struct Function {
    pub overloads: Vec<Overload>,
    pub run: Run,
}

static ALL: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| {
    let mut all: HashMap<&'static str, Function> = HashMap::new();
    for Row(name, signatures, run) in FUNCTIONS.iter().flat_map(|rows| rows.iter()) {
        let overloads = signatures.split('|').filter_map(read).collect();
        let known = all.insert(name, Function { overloads, run: *run });
        debug_assert!(known.is_none(), "{name} is there twice");
    }
    all
});

/// The function of that name.
pub(super) fn function(name: &str) -> Option<&'static Function> {
    ALL.get(name)
}

fn read(signature: &str) -> Option<Overload> {
    let signature = signature.trim();
    let (member, rest) = match signature.strip_prefix('.') {
        Some(rest) => (true, rest),
        None => (false, signature),
    };
    let mut reader = Reader { rest: rest.strip_prefix('(')?, letters: Vec::new() };
    let mut takes = Vec::new();
    loop {
        reader.rest = reader.rest.trim_start_matches([' ', ',']);
        if let Some(rest) = reader.rest.strip_prefix(')') {
            reader.rest = rest.trim_start();
            break;
        }
        takes.push(reader.one()?);
    }
    let gives = reader.one()?;
    Some(Overload { member, takes, gives, free: reader.letters.len() })
}

struct Reader<'a> {
    rest: &'a str,
    letters: Vec<char>,
}

impl Reader<'_> {
    fn one(&mut self) -> Option<Type> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(match word {
            "list" => Type::List(self.inner()?.into()),
            "optional" => Type::Optional(self.inner()?.into()),
            "type" => Type::Type(Some(self.inner()?.into())),
            "map" => {
                self.rest = self.rest.strip_prefix('(')?;
                let key = self.one()?;
                self.rest = self.rest.trim_start_matches([' ', ',']);
                let value = self.one()?;
                self.rest = self.rest.strip_prefix(')')?;
                Type::Map(key.into(), value.into())
            }
            "url" => Type::Opaque(types::URL),
            "ip" => Type::Opaque(types::IP),
            "cidr" => Type::Opaque(types::CIDR),
            "quantity" => Type::Opaque(types::QUANTITY),
            "semver" => Type::Opaque(types::SEMVER),
            "format" => Type::Opaque(types::FORMAT),
            "authorizer" => Type::Opaque(types::AUTHORIZER),
            "pathcheck" => Type::Opaque(types::PATH_CHECK),
            "groupcheck" => Type::Opaque(types::GROUP_CHECK),
            "resourcecheck" => Type::Opaque(types::RESOURCE_CHECK),
            "decision" => Type::Opaque(types::DECISION),
            word if word.len() == 1 => {
                let letter = word.chars().next()?;
                let known = self.letters.iter().position(|known| *known == letter);
                Type::Free(known.unwrap_or_else(|| {
                    self.letters.push(letter);
                    self.letters.len() - 1
                }))
            }
            word => Type::named(word)?,
        })
    }

    fn inner(&mut self) -> Option<Type> {
        self.rest = self.rest.strip_prefix('(')?;
        let inner = self.one()?;
        self.rest = self.rest.strip_prefix(')')?;
        Some(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_can_be_read() {
        for Row(name, signatures, _) in FUNCTIONS.iter().flat_map(|rows| rows.iter()) {
            for signature in signatures.split('|') {
                assert!(read(signature).is_some(), "{name}: {signature}");
            }
        }
    }
}
