//! Label selectors: `app=web,tier in (a,b),!legacy,weight>3`.

use super::SelectorError;
use crate::field::{self, FieldError, Path};
use crate::names;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum LabelOperator {
    Equals,
    DoubleEquals,
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// One term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRequirement {
    /// The label's key.
    pub key: String,
    /// How it is compared.
    pub operator: LabelOperator,
    /// What it is compared with, sorted.
    pub values: Vec<String>,
}

/// A label selector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(Vec<LabelRequirement>);

impl Labels {
    /// Reads a selector.
    pub fn parse(selector: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser { tokens: lex(selector), at: 0 };
        let mut requirements = parser.requirements()?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self(requirements))
    }

    /// Reads a `LabelSelector` as objects have it; what is absent or null selects everything. None if it cannot be read.
    pub fn from_json(selector: &Value) -> Option<Self> {
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let values = vec![value.as_str()?.to_owned()];
            requirements.push(LabelRequirement { key: key.clone(), operator: LabelOperator::Equals, values });
        }
        for term in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let operator = match term.get("operator")?.as_str()? {
                "In" => LabelOperator::In,
                "NotIn" => LabelOperator::NotIn,
                "Exists" => LabelOperator::Exists,
                "DoesNotExist" => LabelOperator::DoesNotExist,
                _ => return None,
            };
            let given = term.get("values").and_then(Value::as_array).into_iter().flatten();
            let mut values: Vec<String> =
                given.map(|value| value.as_str().map(str::to_owned)).collect::<Option<_>>()?;
            values.sort();
            requirements.push(LabelRequirement {
                key: term.get("key")?.as_str()?.to_owned(),
                operator,
                values,
            });
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Some(Self(requirements))
    }

    /// The terms, which all must hold.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.0
    }

    /// Does it select everything?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Do the labels fit?
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(get(&requirement.key)))
    }
}

impl LabelRequirement {
    fn matches(&self, label: Option<&str>) -> bool {
        use LabelOperator as Op;
        let listed = |label: &str| self.values.iter().any(|value| value == label);
        let compared = |compare: fn(&i64, &i64) -> bool| {
            let wanted = self.values.first().and_then(|value| value.parse().ok());
            label.and_then(|label| label.parse().ok()).zip(wanted).is_some_and(|(a, b)| compare(&a, &b))
        };
        match self.operator {
            Op::Equals | Op::DoubleEquals | Op::In => label.is_some_and(listed),
            Op::NotEquals | Op::NotIn => !label.is_some_and(listed),
            Op::Exists => label.is_some(),
            Op::DoesNotExist => label.is_none(),
            Op::GreaterThan => compared(i64::gt),
            Op::LessThan => compared(i64::lt),
        }
    }

    fn check(self) -> Result<Self, SelectorError> {
        let mut errors = Vec::new();
        let wrong = names::qualified(&self.key);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&Path::new("key"), self.key.as_str(), wrong.join("; ")));
        }
        let values = Path::new("values");
        if let LabelOperator::GreaterThan | LabelOperator::LessThan = self.operator {
            for (index, value) in self.values.iter().enumerate() {
                if value.parse::<i64>().is_err() {
                    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                    errors.push(FieldError::invalid(&values.index(index), value.as_str(), why));
                }
            }
        }
        for (index, value) in self.values.iter().enumerate() {
            let wrong = names::label_value(value);
            if !wrong.is_empty() {
                let path = values.index(index).key(&self.key);
                errors.push(FieldError::invalid(&path, value.as_str(), wrong.join("; ")));
            }
        }
        if errors.is_empty() { Ok(self) } else { Err(SelectorError(field::aggregate(&errors))) }
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_str(",")?;
            }
            write!(out, "{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        use LabelOperator as Op;
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Op::Equals => write!(out, "{key}={values}"),
            Op::DoubleEquals => write!(out, "{key}=={values}"),
            Op::NotEquals => write!(out, "{key}!={values}"),
            Op::In => write!(out, "{key} in ({values})"),
            Op::NotIn => write!(out, "{key} notin ({values})"),
            Op::Exists => write!(out, "{key}"),
            Op::DoesNotExist => write!(out, "!{key}"),
            Op::GreaterThan => write!(out, "{key}>{values}"),
            Op::LessThan => write!(out, "{key}<{values}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    End,
    Close,
    Comma,
    Not,
    Open,
    Operator(LabelOperator, &'a str),
    Word(&'a str),
}

impl Token<'_> {
    fn text(&self) -> &str {
        match self {
            Self::End => "",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Not => "!",
            Self::Open => "(",
            Self::Operator(_, text) | Self::Word(text) => text,
        }
    }
}

fn lex(selector: &str) -> Vec<Token<'_>> {
    const SYMBOLS: &[u8] = b"=!(),><";
    const SPACES: &[u8] = b" \t\r\n";
    use LabelOperator as Op;
    let bytes = selector.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let two = bytes.get(at..at + 2).unwrap_or_default();
        let (token, length) = match bytes[at] {
            byte if SPACES.contains(&byte) => {
                at += 1;
                continue;
            }
            // A zero byte is the end of the text.
            0 => break,
            b'=' if two == b"==" => (Token::Operator(Op::DoubleEquals, "=="), 2),
            b'!' if two == b"!=" => (Token::Operator(Op::NotEquals, "!="), 2),
            b'=' => (Token::Operator(Op::Equals, "="), 1),
            b'!' => (Token::Not, 1),
            b'(' => (Token::Open, 1),
            b')' => (Token::Close, 1),
            b',' => (Token::Comma, 1),
            b'>' => (Token::Operator(Op::GreaterThan, ">"), 1),
            b'<' => (Token::Operator(Op::LessThan, "<"), 1),
            _ => {
                let ends = |byte: &u8| *byte == 0 || SYMBOLS.contains(byte) || SPACES.contains(byte);
                let length = bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at);
                // Cut at ASCII, so the pieces are whole.
                match &selector[at..at + length] {
                    "in" => (Token::Operator(Op::In, "in"), length),
                    "notin" => (Token::Operator(Op::NotIn, "notin"), length),
                    // The zero byte after a word is swallowed with it.
                    word => (Token::Word(word), length + usize::from(bytes.get(at + length) == Some(&0))),
                }
            }
        };
        tokens.push(token);
        at += length;
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    /// The next token where `in` and `notin` are ordinary words.
    fn peek(&self) -> Token<'a> {
        match self.tokens.get(self.at).copied().unwrap_or(Token::End) {
            Token::Operator(LabelOperator::In | LabelOperator::NotIn, text) => Token::Word(text),
            token => token,
        }
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirements(&mut self) -> Result<Vec<LabelRequirement>, SelectorError> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::Word(_) | Token::Not => {
                    let requirement = self.requirement().map_err(|SelectorError(error)| {
                        SelectorError(format!("unable to parse requirement: {error}"))
                    })?;
                    requirements.push(requirement);
                }
                Token::End => return Ok(requirements),
                other => return Err(found(other, ", expected: !, identifier, or 'end of string'")),
            }
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Comma => match self.peek() {
                    Token::Word(_) | Token::Not => {}
                    other => return Err(found(other, ", expected: identifier after ','")),
                },
                other => return Err(found(other, ", expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelRequirement, SelectorError> {
        let mut token = self.next();
        let negated = token == Token::Not;
        if negated {
            token = self.next();
        }
        let Token::Word(key) = token else { return Err(found(token, ", expected: identifier")) };
        let wrong = names::qualified(key);
        if !wrong.is_empty() {
            let error = FieldError::invalid(&Path::root(), key, wrong.join("; "));
            return Err(SelectorError(error.to_string()));
        }
        let bare = matches!(self.peek(), Token::End | Token::Comma);
        let (operator, values) = if negated {
            (LabelOperator::DoesNotExist, BTreeSet::new())
        } else if bare {
            (LabelOperator::Exists, BTreeSet::new())
        } else {
            let operator = self.operator()?;
            let values = match operator {
                LabelOperator::In | LabelOperator::NotIn => self.values()?,
                _ => BTreeSet::from([self.exact_value()?]),
            };
            (operator, values)
        };
        let values = values.into_iter().map(str::to_owned).collect();
        LabelRequirement { key: key.to_owned(), operator, values }.check()
    }

    fn operator(&mut self) -> Result<LabelOperator, SelectorError> {
        let token = self.tokens.get(self.at).copied().unwrap_or(Token::End);
        self.at += 1;
        match token {
            Token::Operator(operator, _) => Ok(operator),
            other => Err(found(other, ", expected: in, notin, =, ==, !=, gt, lt")),
        }
    }

    fn exact_value(&mut self) -> Result<&'a str, SelectorError> {
        match self.peek() {
            Token::End | Token::Comma => Ok(""),
            Token::Word(word) => {
                self.at += 1;
                Ok(word)
            }
            other => Err(found(other, ", expected: identifier")),
        }
    }

    /// `(a,b)`; a missing word is the empty value.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, SelectorError> {
        match self.next() {
            Token::Open => {}
            other => return Err(found(other, " expected: '('")),
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            Token::Close => {
                self.at += 1;
                values.insert("");
                return Ok(values);
            }
            Token::Word(_) | Token::Comma => {}
            other => return Err(found(other, ", expected: ',', ')' or identifier")),
        }
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.insert(word);
                    match self.peek() {
                        Token::Comma | Token::Close => {}
                        other => return Err(found(other, ", expected: ',' or ')'")),
                    }
                }
                Token::Comma => {
                    if values.is_empty() || matches!(self.peek(), Token::Comma | Token::Close) {
                        values.insert("");
                    }
                }
                Token::Close => return Ok(values),
                other => return Err(found(other, ", expected: ',', or identifier")),
            }
        }
    }
}

fn found(token: Token<'_>, rest: &str) -> SelectorError {
    SelectorError(format!("found '{}'{rest}", token.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_of_objects_are_read_as_well() {
        let read = |selector: serde_json::Value| Labels::from_json(&selector).map(|read| read.to_string());
        assert_eq!(read(serde_json::Value::Null).as_deref(), Some(""));
        let selector = serde_json::json!({"matchLabels": {"b": "c"}, "matchExpressions": [
            {"key": "a", "operator": "NotIn", "values": ["z", "y"]}, {"key": "x", "operator": "Exists"}]});
        assert_eq!(read(selector).as_deref(), Some("a notin (y,z),b=c,x"));
        assert_eq!(read(serde_json::json!({"matchExpressions": [{"key": "a", "operator": "Near"}]})), None);
    }

    #[test]
    fn label_selectors_read_and_print() {
        for (text, printed) in [
            ("", ""),
            ("a=b", "a=b"),
            ("b==c , a != d", "a!=d,b==c"),
            ("x in (b,a,a)", "x in (a,b)"),
            ("x notin ()", "x notin ()"),
            ("x in (,a,)", "x in (,a)"),
            ("a,!b", "a,!b"),
            ("a>1,b<2", "a>1,b<2"),
            ("in in (in)", "in in (in)"),
            ("a=", "a="),
            ("a=,b", "a=,b"),
        ] {
            let selector = Labels::parse(text).unwrap();
            assert_eq!(selector.to_string(), printed, "{text}");
            assert_eq!(Labels::parse(printed).unwrap(), selector, "{text}");
        }
    }

    #[test]
    fn errors_read_as_the_real_ones() {
        const KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
        for (text, error) in [
            (",", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
            ("a,", "found '', expected: identifier after ','".to_owned()),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
            ("!a=b", "found '=', expected: ',' or 'end of string'".to_owned()),
            ("a in b", "unable to parse requirement: found 'b' expected: '('".to_owned()),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'".to_owned()),
            ("a=(", "unable to parse requirement: found '(', expected: identifier".to_owned()),
            ("-a", format!("unable to parse requirement: <nil>: Invalid value: \"-a\": {KEY}")),
            ("a=-b", format!("unable to parse requirement: values[0][a]: Invalid value: \"-b\": {VALUE}")),
            ("a>b", "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer".to_owned()),
        ] {
            assert_eq!(Labels::parse(text).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn labels_match() {
        for (text, label, expected) in [
            ("a=b", Some("b"), true),
            ("a=b", None, false),
            ("a!=b", None, true),
            ("a notin (b)", Some("b"), false),
            ("a in (b,c)", Some("c"), true),
            ("a", Some(""), true),
            ("!a", None, true),
            ("a>1", Some("2"), true),
            ("a>1", Some("x"), false),
            ("a<1", None, false),
            ("", None, true),
        ] {
            assert_eq!(Labels::parse(text).unwrap().matches(|_| label), expected, "{text}");
        }
    }
}
