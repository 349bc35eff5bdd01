//! Field selectors: `metadata.name=a,status.phase!=Running`.

use super::SelectorError;
use std::fmt;

/// One term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field's path.
    pub field: String,
    /// `=` or `==`; otherwise `!=`.
    pub equals: bool,
    /// What it is compared with.
    pub value: String,
}

/// A field selector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<FieldRequirement>);

impl Fields {
    /// Reads a selector. Commas, equal signs and backslashes in values are escaped with a backslash.
    pub fn parse(selector: &str) -> Result<Self, SelectorError> {
        let mut terms = split_terms(selector);
        terms.sort_unstable();
        let terms = terms.into_iter().filter(|term| !term.is_empty());
        terms.map(|term| parse_term(selector, term)).collect::<Result<_, _>>().map(Self)
    }

    /// The same selector with other names for the fields, or why one of them has none.
    pub fn renamed<E>(mut self, name: impl Fn(&str) -> Result<&str, E>) -> Result<Self, E> {
        for term in &mut self.0 {
            let known = name(&term.field)?;
            if known != term.field {
                term.field = known.to_owned();
            }
        }
        Ok(self)
    }

    /// The terms, which all must hold.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.0
    }

    /// Does it select everything?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that a field must have, if the selector fixes it.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|term| term.equals && term.field == field).map(|term| term.value.as_str())
    }

    /// Do the fields fit? What is absent counts as empty.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|term| (get(&term.field).unwrap_or_default() == term.value) == term.equals)
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, FieldRequirement { field, equals, value }) in self.0.iter().enumerate() {
            let separator = if index > 0 { "," } else { "" };
            let operator = if *equals { "=" } else { "!=" };
            write!(out, "{separator}{field}{operator}{}", escape(value))?;
        }
        Ok(())
    }
}

fn split_terms(selector: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, c) in selector.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&selector[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&selector[start..]);
    terms
}

fn parse_term(selector: &str, term: &str) -> Result<FieldRequirement, SelectorError> {
    let operator = term.char_indices().find_map(|(at, _)| {
        let operator = ["!=", "==", "="].into_iter().find(|operator| term[at..].starts_with(operator))?;
        Some((at, operator))
    });
    let Some((at, operator)) = operator else {
        return Err(SelectorError(format!("invalid selector: '{selector}'; can't understand '{term}'")));
    };
    let value = unescape(&term[at + operator.len()..])?;
    Ok(FieldRequirement { field: term[..at].to_owned(), equals: operator != "!=", value })
}

fn unescape(text: &str) -> Result<String, SelectorError> {
    let invalid = |sequence: &str| {
        SelectorError(format!("invalid field selector: invalid escape sequence: {sequence}"))
    };
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                Some(other) => return Err(invalid(&format!("\\{other}"))),
                None => return Err(invalid("\\")),
            },
            ',' | '=' => {
                // Go prints the character's number.
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                )));
            }
            c => value.push(c),
        }
    }
    Ok(value)
}

fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_selectors_read_and_print() {
        for (text, printed) in [
            ("", ""),
            ("b=1,a!=2,,c==3", "a!=2,b=1,c=3"),
            (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
            ("metadata.name=", "metadata.name="),
        ] {
            assert_eq!(Fields::parse(text).unwrap().to_string(), printed);
        }
        for (text, error) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
            (r"a=\", r"invalid field selector: invalid escape sequence: \"),
        ] {
            assert_eq!(Fields::parse(text).unwrap_err().to_string(), error);
        }
        let selector = Fields::parse("a=1,b!=2").unwrap();
        assert!(selector.matches(|field| (field == "a").then_some("1")));
        assert!(!selector.matches(|_| Some("2")));
        assert_eq!((selector.exact("a"), selector.exact("b")), (Some("1"), None));
    }
}
