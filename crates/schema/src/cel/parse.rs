//! The parser: a syntax tree from an expression's text, with operators by precedence and macros expanded where they are called.

use super::ast::{
    Call, Expr, Fold, Kind, Literal, MOST_DEPTH, MOST_NODES, Message, MessageField, Select, Shape,
};
use super::lex::{Placed, Token, tokens};
use super::{Complaint, Complaints};
use std::sync::OnceLock;

/// How deep parentheses, brackets and arguments may nest.
const MOST_NESTING: usize = 60;

/// Words that no variable may have as its name.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Words of the language itself.
pub(super) const WORDS: [&str; 4] = ["true", "false", "null", "in"];

/// Whether a variable may have this name.
pub fn is_cel_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first == '_' || first.is_ascii_alphabetic())
        && characters.all(|one| one == '_' || one.is_ascii_alphanumeric())
        && !RESERVED.contains(&name)
        && !WORDS.contains(&name)
}

/// Operators from the weakest to the strongest, with the names that error messages know them by.
const OPERATORS: [&[(&str, &str)]; 3] = [
    &[
        ("<", "_<_"),
        ("<=", "_<=_"),
        (">=", "_>=_"),
        (">", "_>_"),
        ("==", "_==_"),
        ("!=", "_!=_"),
        ("in", "@in"),
    ],
    &[("+", "_+_"), ("-", "_-_")],
    &[("*", "_*_"), ("/", "_/_"), ("%", "_%_")],
];

pub(super) fn parse(source: &[char]) -> Result<Expr, Complaints> {
    let tokens = tokens(source).map_err(Complaints::one)?;
    let mut parser = Parser { tokens, next: 0, nesting: 0, nodes: 0 };
    let read = parser.expression().and_then(|expression| match parser.peek() {
        Token::End => Ok(expression),
        _ => Err(parser.unexpected()),
    });
    read.map_err(Complaints::one)
}

struct Parser {
    tokens: Vec<Placed>,
    next: usize,
    nesting: usize,
    nodes: usize,
}

type Read<T> = Result<T, Complaint>;

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(_, token)| token)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |(at, _)| *at)
    }

    fn take(&mut self) -> (usize, Token) {
        let placed = (self.at(), self.peek().clone());
        self.next += 1;
        placed
    }

    fn take_sign(&mut self, sign: &str) -> Option<usize> {
        let matches = matches!(self.peek(), Token::Sign(found) if *found == sign);
        matches.then(|| self.take().0)
    }

    fn expect(&mut self, sign: &str) -> Read<usize> {
        self.take_sign(sign).ok_or_else(|| self.unexpected())
    }

    fn unexpected(&self) -> Complaint {
        let shown = match self.peek() {
            Token::End => "<EOF>".to_owned(),
            Token::Ident(text) | Token::Int(text) | Token::Uint(text) | Token::Double(text) => text.clone(),
            Token::Sign(sign) => (*sign).to_owned(),
            Token::String(text) => format!("{text:?}"),
            Token::Bytes(_) => "bytes".to_owned(),
        };
        Complaint::new(self.at(), format!("Syntax error: unexpected '{shown}'"))
    }

    fn node(&mut self, at: usize, kind: Kind) -> Read<Expr> {
        self.nodes += 1;
        let depth = kind.deepest() + 1;
        if depth > MOST_DEPTH || self.nodes > MOST_NODES {
            let why = format!("expression recursion limit exceeded: {MOST_DEPTH}");
            return Err(Complaint::new(at, why));
        }
        Ok(Expr { at, depth, kind })
    }

    fn call(&mut self, at: usize, function: &str, target: Option<Expr>, args: Vec<Expr>) -> Read<Expr> {
        let call = Call { function: function.to_owned(), target, args, pattern: OnceLock::new() };
        self.node(at, Kind::Call(Box::new(call)))
    }

    fn expression(&mut self) -> Read<Expr> {
        self.nesting += 1;
        if self.nesting > MOST_NESTING {
            let why = format!("expression recursion limit exceeded: {MOST_NESTING}");
            return Err(Complaint::new(self.at(), why));
        }
        let condition = self.logic(false)?;
        let read = match self.take_sign("?") {
            Some(at) => {
                let yes = self.logic(false)?;
                self.expect(":")?;
                let no = self.expression()?;
                self.node(at, Kind::Choice(Box::new([condition, yes, no])))
            }
            None => Ok(condition),
        };
        self.nesting -= 1;
        read
    }

    /// Terms joined by `||`, or by `&&` which binds stronger.
    fn logic(&mut self, and: bool) -> Read<Expr> {
        let sign = if and { "&&" } else { "||" };
        let term = |parser: &mut Self| if and { parser.binary(0) } else { parser.logic(true) };
        let first = term(self)?;
        let at = self.at();
        let mut terms = vec![first];
        while self.take_sign(sign).is_some() {
            terms.push(term(self)?);
        }
        match terms.len() {
            1 => terms.pop().ok_or_else(|| self.unexpected()),
            _ => self.node(at, Kind::Logic(and, terms)),
        }
    }

    fn binary(&mut self, level: usize) -> Read<Expr> {
        let Some(operators) = OPERATORS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        loop {
            let found = match self.peek() {
                Token::Sign(sign) => operators.iter().find(|(text, _)| text == sign),
                Token::Ident(word) => operators.iter().find(|(text, _)| text == word),
                _ => None,
            };
            let Some((_, function)) = found else { return Ok(left) };
            let (at, _) = self.take();
            let right = self.binary(level + 1)?;
            left = self.call(at, function, None, vec![left, right])?;
        }
    }

    fn unary(&mut self) -> Read<Expr> {
        for (sign, function) in [("!", "!_"), ("-", "-_")] {
            let Some(at) = self.take_sign(sign) else { continue };
            let mut count = 1_usize;
            while self.take_sign(sign).is_some() {
                count += 1;
            }
            let number = matches!(self.peek(), Token::Int(_) | Token::Double(_));
            if sign == "-" && number && count == 1 {
                let literal = self.number(at, true)?;
                return self.members(literal);
            }
            let operand = self.member()?;
            return if count.is_multiple_of(2) {
                Ok(operand)
            } else {
                self.call(at, function, None, vec![operand])
            };
        }
        self.member()
    }

    fn member(&mut self) -> Read<Expr> {
        let primary = self.primary()?;
        self.members(primary)
    }

    fn members(&mut self, mut operand: Expr) -> Read<Expr> {
        loop {
            if let Some(at) = self.take_sign(".") {
                let optional = self.take_sign("?").is_some();
                let name = self.name()?;
                operand = match self.take_sign("(") {
                    Some(_) if optional => return Err(self.unexpected()),
                    Some(open) => {
                        let args = self.arguments(")")?;
                        self.receiver_call(open, operand, name, args)?
                    }
                    None => {
                        let select = Select { operand, field: name, test: false, optional };
                        self.node(at, Kind::Select(Box::new(select)))?
                    }
                };
            } else if let Some(at) = self.take_sign("[") {
                let function = if self.take_sign("?").is_some() { "_[?_]" } else { "_[_]" };
                let index = self.expression()?;
                self.expect("]")?;
                operand = self.call(at, function, None, vec![operand, index])?;
            } else {
                return Ok(operand);
            }
        }
    }

    fn name(&mut self) -> Read<String> {
        match self.peek().clone() {
            Token::Ident(name) if !WORDS.contains(&name.as_str()) => {
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn arguments(&mut self, end: &str) -> Read<Vec<Expr>> {
        let mut args = Vec::new();
        if self.take_sign(end).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.take_sign(",").is_none() {
                self.expect(end)?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self) -> Read<Expr> {
        let at = self.at();
        match self.peek().clone() {
            Token::Int(_) | Token::Uint(_) | Token::Double(_) => self.number(at, false),
            Token::String(text) => {
                self.next += 1;
                self.node(at, Kind::Literal(Literal::String(text)))
            }
            Token::Bytes(octets) => {
                self.next += 1;
                self.node(at, Kind::Literal(Literal::Bytes(octets)))
            }
            Token::Ident(word) if word != "in" => self.word(at, word),
            Token::Sign("(") => {
                self.next += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Sign("[") => self.list(),
            Token::Sign("{") => self.map(),
            Token::Sign(".") => {
                self.next += 1;
                let name = self.name()?;
                self.identifier(at, format!(".{name}"))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn word(&mut self, at: usize, word: String) -> Read<Expr> {
        self.next += 1;
        let literal = match word.as_str() {
            "true" => Literal::Bool(true),
            "false" => Literal::Bool(false),
            "null" => Literal::Null,
            word if RESERVED.contains(&word) => {
                return Err(Complaint::new(at, format!("reserved identifier: {word}")));
            }
            _ => return self.identifier(at, word),
        };
        self.node(at, Kind::Literal(literal))
    }

    fn identifier(&mut self, at: usize, name: String) -> Read<Expr> {
        if let Some(open) = self.take_sign("(") {
            let args = self.arguments(")")?;
            return self.global_call(open, &name, args);
        }
        if self.message_follows() {
            return self.message(name);
        }
        let name = name.strip_prefix('.').map_or(name.clone(), str::to_owned);
        self.node(at, Kind::Ident(name))
    }

    /// Does `.a.b{` follow?
    fn message_follows(&self) -> bool {
        let mut rest = self.tokens.get(self.next..).unwrap_or_default();
        loop {
            match rest {
                [(_, Token::Sign("{")), ..] => return true,
                [(_, Token::Sign(".")), (_, Token::Ident(_)), tail @ ..] => rest = tail,
                _ => return false,
            }
        }
    }

    fn message(&mut self, mut name: String) -> Read<Expr> {
        while self.take_sign(".").is_some() {
            name = format!("{name}.{}", self.name()?);
        }
        let at = self.expect("{")?;
        let mut fields = Vec::new();
        while self.take_sign("}").is_none() {
            let optional = self.take_sign("?").is_some();
            let name = self.name()?;
            let at = self.expect(":")?;
            fields.push(MessageField { at, name, value: self.expression()?, optional });
            if self.take_sign(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        self.node(at, Kind::Message(Box::new(Message { name, fields })))
    }

    fn number(&mut self, at: usize, negative: bool) -> Read<Expr> {
        let sign = if negative { "-" } else { "" };
        let radix = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => (format!("{sign}{digits}"), 16),
            None => (format!("{sign}{text}"), 10),
        };
        let literal = match self.take().1 {
            Token::Int(text) => {
                let (text, radix) = radix(&text);
                i64::from_str_radix(&text, radix).map(Literal::Int).map_err(|_| "invalid int literal")
            }
            Token::Uint(text) => {
                let (text, radix) = radix(&text);
                u64::from_str_radix(&text, radix).map(Literal::Uint).map_err(|_| "invalid uint literal")
            }
            Token::Double(text) => {
                let double = format!("{sign}{text}").parse::<f64>().ok().filter(|double| double.is_finite());
                double.map(Literal::Double).ok_or("invalid double literal")
            }
            _ => Err("invalid literal"),
        };
        let literal = literal.map_err(|why| Complaint::new(at, why.to_owned()))?;
        self.node(at, Kind::Literal(literal))
    }

    fn list(&mut self) -> Read<Expr> {
        let at = self.expect("[")?;
        let mut items = Vec::new();
        while self.take_sign("]").is_none() {
            let optional = self.take_sign("?").is_some();
            items.push((self.expression()?, optional));
            if self.take_sign(",").is_none() {
                self.expect("]")?;
                break;
            }
        }
        self.node(at, Kind::List(items))
    }

    fn map(&mut self) -> Read<Expr> {
        let at = self.expect("{")?;
        let mut entries = Vec::new();
        while self.take_sign("}").is_none() {
            let optional = self.take_sign("?").is_some();
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?, optional));
            if self.take_sign(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        self.node(at, Kind::Map(entries))
    }

    fn global_call(&mut self, at: usize, name: &str, mut args: Vec<Expr>) -> Read<Expr> {
        if name != "has" || args.len() != 1 {
            return self.call(at, name.strip_prefix('.').unwrap_or(name), None, args);
        }
        let argument = args.pop().ok_or_else(|| self.unexpected())?;
        match argument.kind {
            Kind::Select(select) if !select.optional && !select.test => {
                self.node(at, Kind::Select(Box::new(Select { test: true, ..*select })))
            }
            _ => Err(Complaint::new(argument.at, "invalid argument to has() macro".to_owned())),
        }
    }

    /// A call of a macro on a receiver becomes a fold; any other stays a call.
    fn receiver_call(&mut self, at: usize, target: Expr, name: String, args: Vec<Expr>) -> Read<Expr> {
        let shape = match (name.as_str(), args.len()) {
            ("all", 2 | 3) => Shape::All,
            ("exists", 2 | 3) => Shape::Exists,
            ("exists_one", 2 | 3) | ("existsOne", 3) => Shape::ExistsOne,
            ("map", 2 | 3) | ("transformList", 3 | 4) => Shape::List,
            ("filter", 2) => Shape::Filter,
            ("transformMap", 3 | 4) => Shape::Map,
            ("transformMapEntry", 3 | 4) => Shape::Entries,
            ("optMap", 2) => Shape::Optional,
            ("optFlatMap", 2) => Shape::OptionalFlat,
            ("sortBy", 2) => Shape::Sort,
            _ => return self.call(at, &name, Some(target), args),
        };
        let two = match name.as_str() {
            "all" | "exists" | "exists_one" => args.len() == 3,
            name => name.starts_with("transform") || name == "existsOne",
        };
        let mut args = args.into_iter();
        let variable = |args: &mut std::vec::IntoIter<Expr>| {
            let given = args.next().ok_or_else(|| self.unexpected())?;
            match given.kind {
                Kind::Ident(variable) if variable == "__result__" || variable == "@result" => {
                    let why = "iteration variable overwrites accumulator variable".to_owned();
                    Err(Complaint::new(given.at, why))
                }
                Kind::Ident(variable) => Ok((variable, given.at)),
                _ => {
                    let why = match name.as_str() {
                        "optMap" | "optFlatMap" => {
                            format!("{name}() variable name must be a simple identifier")
                        }
                        _ => "argument must be a simple name".to_owned(),
                    };
                    Err(Complaint::new(given.at, why))
                }
            }
        };
        let (first, _) = variable(&mut args)?;
        let second = if two { Some(variable(&mut args)?) } else { None };
        if let Some((_, at)) = second.as_ref().filter(|(second, _)| *second == first) {
            return Err(Complaint::new(*at, format!("duplicate variable name: {first}")));
        }
        let second = second.map(|(name, _)| name);
        let mut rest: Vec<Expr> = args.collect();
        let body = rest.pop().ok_or_else(|| self.unexpected())?;
        let fold = Fold { shape, range: target, first, second, filter: rest.pop(), body };
        self.node(at, Kind::Fold(Box::new(fold)))
    }
}
